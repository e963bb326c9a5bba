"""One run as it was: the outcome of every test that speaks for a client, kept as JSON."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from compat_tests import provision

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BROKERS = ("ours", "kafka-3.9.1", "kafka-4.3.1")
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class ClientName(NamedTuple):
    """A library at a version; the rows of the report."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one test; `why` is the reason of a skip or the last line of a failure."""

    test: str
    client: ClientName
    features: tuple[str, ...]
    outcome: str
    why: str = ""


@dataclass(slots=True)
class Run:
    """All results against one broker, and the APIs it said it serves."""

    against: str
    results: list[Result] = field(default_factory=list)
    served: dict[int, tuple[int, int]] = field(default_factory=dict)

    def outcome(self, client: ClientName, feature: str) -> str | None:
        """The worst that happened to the tests of this cell, or None where there are none."""
        met = {r.outcome for r in self.results if r.client == client and feature in r.features}
        return next((outcome for outcome in (FAILED, PASSED, SKIPPED) if outcome in met), None)


def path_of(against: str) -> Path:
    return provision.cache() / "compat" / f"{against}.json"


@contextlib.contextmanager
def alone(against: str) -> Iterator[None]:
    """Nobody else reads the record of this broker to add to it meanwhile: sessions may end at once."""
    with provision._lock(path_of(against)):
        yield


def save(run: Run) -> None:
    path = path_of(run.against)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(asdict(run), indent=1))


def load(against: str) -> Run | None:
    """The last recorded run against this broker, if there was one."""
    path = path_of(against)
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    results = [
        Result(r["test"], ClientName(*r["client"]), tuple(r["features"]), r["outcome"], r["why"])
        for r in kept["results"]
    ]
    served = {int(key): (versions[0], versions[1]) for key, versions in kept["served"].items()}
    return Run(against, results, served)
