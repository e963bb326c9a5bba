"""The time a shard goes by: that of the wall, because some of it is written down; but what lasts for a time is not to
end sooner or later because the clock on the wall was set."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.clock import Clock

log = logging.getLogger(__name__)

_WAS_SET_MS: Final = 1_000
"""A clock that moves apart from the time that passes by more than this did not do so by itself."""


class ShardClock:
    """Owner of what is known of the clock; its owner is a runtime."""

    def __init__(self, clock: Clock, was_set: Callable[[int], None]) -> None:
        """`was_set` is told by how many milliseconds."""
        self._clock = clock
        self._was_set = was_set
        self._ahead_ms = self._measure(clock.wall_ms())

    def now(self) -> int:
        """Wall time in milliseconds. If it was set since it was asked for last, that has been told by then."""
        now = self._clock.wall_ms()
        set_by = self._measure(now) - self._ahead_ms
        if not -_WAS_SET_MS < set_by < _WAS_SET_MS:
            log.warning("the clock was set by %d ms", set_by)
            self._ahead_ms += set_by
            self._was_set(set_by)
        return now

    def _measure(self, now: int) -> int:
        return now - int(self._clock.monotonic() * 1000)
