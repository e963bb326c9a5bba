"""Settings of all unit tests."""

import os

from hypothesis import HealthCheck, settings

# Time says nothing on a busy machine; what is slow is found by the benchmarks. In CI the same examples are tried each
# time, so that a red run is the change's own; people try new ones whenever they run the tests.
settings.register_profile(
    "here",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("here")
