"""Rounds that alternate between the brokers, and what is kept of them."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from benchmarks.contenders import KAFKA, OURS, Contender, running
from benchmarks.measures import Spread, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.java_client import JavaClient

Sample = dict[str, float]
"""One reading: the name of a metric and its value."""


class Named(Protocol):
    """One side of a comparison: a broker, or a cluster of them."""

    @property
    def name(self) -> str: ...


Side = TypeVar("Side", bound=Named)


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on ours over Kafka's."""

    bound: float
    at_least: bool

    def met(self, ratio: float) -> bool:
        return ratio >= self.bound if self.at_least else ratio <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Metric:
    """A column: its key in samples, its heading, and the goal it is held to, if any."""

    key: str
    heading: str
    goal: Goal | None = None


@dataclass(slots=True)
class Row:
    """One line of a table: for each broker either readings a metric or the reason there are none."""

    title: str
    metrics: tuple[Metric, ...]
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def spread(self, name: str, metric: Metric) -> Spread | None:
        """Median and extremes of one broker's readings."""
        values = [sample[metric.key] for sample in self.samples.get(name, []) if metric.key in sample]
        return spread(values) if values and name not in self.missing else None

    def ratio(self, metric: Metric) -> float | None:
        """Ours over Kafka's."""
        ours, kafka = self.spread(OURS, metric), self.spread(KAFKA, metric)
        return ours.median / kafka.median if ours and kafka and kafka.median else None


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table with the sentences that belong to it."""

    title: str
    rows: list[Row]
    note: str = ""
    compared: bool = True


@dataclass(frozen=True, slots=True)
class Lab:
    """What every case works with: how often, how much, where, and with which brokers."""

    rounds: int
    quick: bool
    directory: Path
    names: list[str]
    java: Callable[[], JavaClient]
    say: Callable[[str], None]

    def scaled(self, full: int, quick: int | None = None) -> int:
        """An amount of work: all of it, or a tenth (or what is given) of it in a quick run."""
        return (quick if quick is not None else max(full // 10, 1)) if self.quick else full

    @contextlib.contextmanager
    def running(self, *names: str, properties: Mapping[str, str] | None = None) -> Iterator[list[Contender]]:
        """The named brokers (all) on empty logs; what they complained about is said when they are stopped."""
        with running(list(names) or self.names, self.directory, properties or {}) as contenders:
            yield contenders
            for contender in contenders:
                if said := contender.complaints():
                    self.say(f"!! {contender.name} printed {len(said)} complaints, the last: {said[-1]}")

    def alternate(
        self,
        row: Row,
        contenders: Sequence[Side],
        run: Callable[[Side, int], Sample],
    ) -> Row:
        """Fill a row: every round runs each broker once, in turning order; round 0 warms up and is not kept.

        A broker that fails keeps its reason in the row and is left out of the remaining rounds.
        """
        started = time.monotonic()
        for number in range(self.rounds + 1):
            for contender in contenders if number % 2 else reversed(contenders):
                if contender.name in row.missing:
                    continue
                try:
                    sample = run(contender, number)
                except Exception as error:  # noqa: BLE001 - a row that fails must not cost the other rows
                    row.missing[contender.name] = _reason(error)
                    continue
                if number:
                    row.samples.setdefault(contender.name, []).append(sample)
        self.say(f"{row.title}: {self.told(row)}  [{time.monotonic() - started:.0f} s]")
        return row

    def told(self, row: Row) -> str:
        """A row in one line, for whoever watches."""
        parts = []
        for name in self.names:
            medians = [(metric, row.spread(name, metric)) for metric in row.metrics]
            if name in row.missing:
                parts.append(f"{name} {row.missing[name]}")
            elif name in row.samples:
                parts.append(f"{name} " + ", ".join(f"{m.heading} {s.median:.4g}" for m, s in medians if s))
        return "; ".join(parts)


def _reason(error: Exception) -> str:
    # The report goes where other people read it: no paths of this machine in it.
    text = re.sub(r"(?<!\w)/[\w.+/-]+", "(path)", " ".join(str(error).split()))
    return f"failed: {type(error).__name__}: {text[:200]}"
