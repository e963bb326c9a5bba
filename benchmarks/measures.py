"""What is read about a server process from the outside, and how repeated readings become one number."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

MB = 1_000_000
GB = 1_000_000_000
KIB, GIB = 1 << 10, 1 << 30
CPUCLOCK_SCHED = 2


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory in bytes: anonymous (heap, buffers) and pages of files mapped into the process."""

    anonymous: int
    file: int


@dataclass(frozen=True, slots=True)
class Process:
    """A running server, seen from outside."""

    pid: int

    def cpu_seconds(self) -> float:
        """User and system time of all its threads since it started."""
        # Linux's clock of another process: exact, where /proc counts ticks of ten milliseconds.
        return time.clock_gettime((~self.pid << 3) | CPUCLOCK_SCHED)

    def memory(self) -> Memory:
        """Resident memory now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        values = dict(line.split(":", 1) for line in status.splitlines())
        return Memory(_kib(values["RssAnon"]), _kib(values["RssFile"]))


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of several rounds, with the extremes beside it."""

    median: float
    low: float
    high: float
    rounds: int


def spread(values: list[float]) -> Spread:
    """Median and extremes; needs at least one value."""
    return Spread(statistics.median(values), min(values), max(values), len(values))


def percentile(ordered: list[float], share: float) -> float:
    """The value below which `share` of an ordered list lies."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def _kib(text: str) -> int:
    return int(text.split()[0]) * KIB
