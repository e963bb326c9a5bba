"""Tells stories to ours and to Apache Kafka and reports where the answers differ.

A difference counts when the same story shows it three times: what depends on which of two timers fires first does not.

Apache Kafka differs from itself, too. Beside 3.9.1 a 4.3.1 is asked the same, as a witness: where the two releases
disagree, ours has to answer as one of them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from compat_tests.differential import brokers
from compat_tests.differential.expected import Difference, reason
from compat_tests.differential.settling import clean, forgotten, settle
from compat_tests.differential.sides import Side
from compat_tests.differential.stories import story
from compat_tests.differential.witness import Witness
from pykafka_broker.protocol.api import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from compat_tests.differential.sides import Step
    from compat_tests.servers import Server

TRIES = 3
WITNESS_OF = {"3.9.1": "4.3.1"}
CHANGES_TOPICS = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.METADATA,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_CONFIGS,
}
CHANGES_CONFIGS = {ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS}
APPLIED_SECONDS = 0.05
ABSENT = "not there"


class Cell(NamedTuple):
    """One version of one API."""

    key: ApiKey
    version: int


@dataclass(slots=True)
class Report:
    """What a run found. Owned by the run that fills it."""

    requests: int = 0
    asked: Counter[Cell] = field(default_factory=Counter)
    without_error: Counter[Cell] = field(default_factory=Counter)
    meant: Counter[str] = field(default_factory=Counter)
    witnessed: Counter[str] = field(default_factory=Counter)
    unexplained: list[tuple[int, Difference]] = field(default_factory=list)


class Comparison:
    """The brokers, started, and what they were asked. Owns the brokers."""

    def __init__(self, directory: Path, release: str, *, explore: bool = False) -> None:
        """`explore`: tell every story once and to its end, echoes of differences included."""
        self._explore = explore
        self._release = release
        self._ours = brokers.ours(directory / "ours", release)
        self._theirs = brokers.apache_kafka(directory / "theirs", release)
        self._other = WITNESS_OF.get(release)
        self._third = None if self._other is None else brokers.apache_kafka(directory / "other", self._other)
        self.report = Report()
        self.offered: brokers.Offer = {}
        """Versions of every API that both offer."""
        self._witness: Witness | None = None
        self._started = int(time.time()) * 1000
        self._told = 0
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._sides = [await self._open(server) for server in (self._ours, self._theirs)]
        ours, theirs = [await brokers.offer(side, self._release) for side in self._sides]
        self.offered = brokers.shared(ours, theirs)
        if self._third is not None and self._other is not None:
            side = await self._open(self._third)
            self._witness = Witness(side, await brokers.offer(side, self._other), self._other)
        return self

    async def _open(self, server: Server) -> Side:
        self._resources.callback(server.close)
        await asyncio.to_thread(server.start)
        side = Side(server.bootstrap)
        self._resources.push_async_callback(side.close)
        await brokers.warm(side)
        return side

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._resources.aclose()

    def cells(self) -> list[Cell]:
        """Every version of every API that both offer."""
        return [Cell(key, n) for key, (low, high) in self.offered.items() for n in range(low, high + 1)]

    def never_asked(self) -> list[Cell]:
        return [cell for cell in self.cells() if not self.report.asked[cell]]

    async def tell(self, seed: int) -> list[Difference]:
        """One story; told again if the answers differ. What differed every time is what is returned."""
        found: list[Difference] = []
        for attempt in range(TRIES):
            found = await self._tell_once(seed)
            unexplained = [difference for difference in found if reason(difference) is None]
            if not unexplained or self._explore or attempt == TRIES - 1:
                self.report.unexplained += [(seed, difference) for difference in unexplained]
                self.report.meant.update(why for each in found if (why := reason(each)) is not None)
                return unexplained
        return found

    async def _tell_once(self, seed: int) -> list[Difference]:
        """Up to the first unexplained difference: what follows it would only be its echo."""
        self._told += 1
        prefix = f"story{self._told}-"
        sides = list(self._sides)
        if self._witness is not None:
            self._witness.begin(prefix)
            sides.append(self._witness.side)
        for side in sides:
            side.begin(prefix)

        def known(kind: str) -> int:
            return min(side.symbols.known(kind) for side in sides)

        found: list[Difference] = []
        alone = () if self._witness is None else self._witness.cannot_say(self.cells())
        for step in story(seed, prefix, self.offered, alone, known, self._started):
            if self._witness is not None and not self._witness.is_of_use(step):
                break
            here, goes_on = await self._ask(step)
            found += here
            if self._witness is not None and self._witness.is_lost:
                sides = sides[:2]
            if not goes_on:
                break
            if step.key in CHANGES_TOPICS:
                await settle(sides, prefix)
            if step.key is ApiKey.DELETE_TOPICS:
                await forgotten(sides, prefix)
            if step.key in CHANGES_CONFIGS:
                await asyncio.sleep(APPLIED_SECONDS)
        for side in self._sides if self._witness is None else [*self._sides, self._witness.side]:
            await clean(side, prefix)
        return found

    async def _ask(self, step: Step) -> tuple[list[Difference], bool]:
        """How the answers to one request differ, and whether the story goes on after it."""
        asked = [side.ask(step) for side in self._sides]
        if self._witness is not None:
            asked.append(self._witness.ask(step))
        ours, theirs, *others = await asyncio.gather(*asked)
        self._count(step, theirs)
        here = [Difference(step, *where, self._release) for where in differing(ours, theirs)]
        if self._witness is not None:
            beside = [Difference(step, *where, self._witness.release) for where in differing(ours, others[0])]
            other = {each.path for each in beside if reason(each) is None}
            here = [each for each in here if not self._is_witnessed(each, other)]
        goes_on = not any(reason(difference) is None for difference in here)
        return here, self._explore or goes_on

    def _is_witnessed(self, difference: Difference, other: set[str]) -> bool:
        """Whether it is a difference between two releases of Apache Kafka, of which ours is like the newer."""
        assert self._witness is not None
        if reason(difference) is not None or difference.path in other or not self._witness.answered:
            return False
        self._witness.agreed()
        self.report.witnessed[f"{difference.step.key.name} {difference.path}"] += 1
        return True

    def _count(self, step: Step, answer: Any) -> None:
        cell = Cell(step.key, step.version)
        self.report.requests += 1
        self.report.asked[cell] += 1
        self.report.without_error[cell] += not _has_error(answer)


def _has_error(answer: Any) -> bool:
    """Whether an answer, or anything in it, is a refusal."""
    if isinstance(answer, dict):
        return bool(answer.get("error_code")) or any(map(_has_error, answer.values()))
    if isinstance(answer, list):
        return any(map(_has_error, answer))
    return False


def differing(ours: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two answers differ: path, ours, theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in ours:
            yield from differing(ours[name], theirs[name], f"{path}.{name}" if path else name)
    elif path.endswith("configs") and isinstance(ours, list) and isinstance(theirs, list):
        mine, other = ({config["name"]: config for config in each} for each in (ours, theirs))
        for name in sorted({*mine, *other}):
            yield from differing(mine.get(name, ABSENT), other.get(name, ABSENT), f"{path}[{name}]")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for one, another in zip(ours, theirs, strict=True):
            yield from differing(one, another, f"{path}[]")
    elif ours != theirs:
        yield path, ours, theirs
