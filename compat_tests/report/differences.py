"""What the differential runs asked and found, kept as JSON beside the recorded runs of the client tests."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from compat_tests.report import results

RELEASES = ("3.9.1", "4.3.1")


@dataclass(slots=True)
class Asked:
    """One version of one API: requests sent, and how many of them Apache Kafka answered without an error."""

    api: int
    version: int
    times: int
    without_error: int


@dataclass(slots=True)
class DifferentialRun:
    """One run to its end against one release of Apache Kafka."""

    release: str
    seed: int
    requests: int
    asked: list[Asked] = field(default_factory=list)
    meant: dict[str, int] = field(default_factory=dict)
    witnessed: dict[str, int] = field(default_factory=dict)
    """Where 4.3.1 answered as ours did and not as the release: API and field."""
    unexplained: list[str] = field(default_factory=list)

    def times(self, api: int, version: int) -> int:
        return sum(each.times for each in self.asked if (each.api, each.version) == (api, version))


def save(run: DifferentialRun) -> None:
    path = results.path_of(f"differential-{run.release}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(run), indent=1))


def load(release: str) -> DifferentialRun | None:
    """The last run against this release, if there was one."""
    path = results.path_of(f"differential-{release}")
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    kept["asked"] = [Asked(**each) for each in kept["asked"]]
    return DifferentialRun(**kept)
