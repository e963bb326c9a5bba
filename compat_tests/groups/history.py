"""What the members of a group reported, and what must be true of it."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

CLOCK_GRAIN = 0.002
"""Seconds: the members' clocks are one clock, read with a millisecond's grain by some."""
WATCHING_GRAIN = 0.3
"""Seconds that the words of a watched process may be read late."""


class Event(NamedTuple):
    """One line of a program; `member` is unique to one life of one member."""

    at: float
    member: str
    event: str
    what: dict[str, object]


class Owned(NamedTuple):
    """A partition in one member's hands, from being told so to letting go (or to its end)."""

    partition: int
    member: str
    since: float
    until: float


@dataclass(slots=True)
class History:
    """The events of all programs of one group; the threads that read them are its only writers."""

    events: list[Event] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, event: Event) -> None:
        with self._lock:
            self.events.append(event)

    def so_far(self) -> list[Event]:
        """Everything, in the order it happened."""
        with self._lock:
            return sorted(self.events, key=lambda e: e.at)

    def owners(self) -> dict[str, set[int]]:
        """The partitions each living member holds now."""
        held: dict[str, set[int]] = {}
        for event in self.so_far():
            mine = held.setdefault(event.member, set())
            if event.event == "assigned":
                mine.update(event.what["partitions"])
            elif event.event == "revoked":
                mine.difference_update(event.what["partitions"])
            elif event.event in ("left", "gone"):
                mine.clear()
        return {member: partitions for member, partitions in held.items() if partitions}

    def delivered(self) -> dict[tuple[int, int], str]:
        """Every record seen by anybody: partition and offset to value."""
        return {
            (event.what["partition"], offset): value
            for event in self.so_far()
            if event.event == "records"
            for offset, value in event.what["records"]
        }

    def times_delivered(self) -> Counter[tuple[int, int]]:
        return Counter(
            (event.what["partition"], offset)
            for event in self.so_far()
            if event.event == "records"
            for offset, _ in event.what["records"]
        )

    def committed(self) -> dict[int, int]:
        """The last position of each partition that a member saw acknowledged."""
        positions: dict[int, int] = {}
        for event in self.so_far():
            if event.event == "committed":
                positions |= {int(p): offset for p, offset in event.what["positions"].items()}
        return positions

    def of(self, member: str, *kinds: str) -> list[Event]:
        return [e for e in self.so_far() if e.member == member and (not kinds or e.event in kinds)]

    def trouble(self) -> list[str]:
        return [f"{e.member}: {e.what['text']}" for e in self.so_far() if e.event == "trouble"]

    def assert_one_owner_at_a_time(self, grain: float = CLOCK_GRAIN) -> None:
        """No partition was in two hands at once, as far as the clock can tell."""
        by_partition: dict[int, list[Owned]] = {}
        for owned in self._ownerships():
            by_partition.setdefault(owned.partition, []).append(owned)
        for owned in by_partition.values():
            owned.sort(key=lambda o: o.since)
            for before, after in itertools.pairwise(owned):
                assert before.until <= after.since + grain, f"two owners at once: {before}, {after}"

    def _ownerships(self) -> list[Owned]:
        since: dict[tuple[str, int], float] = {}
        done: list[Owned] = []

        def end(member: str, partitions: set[int], at: float) -> None:
            done.extend(Owned(p, member, since.pop((member, p)), at) for p in partitions)

        for event in self.so_far():
            mine = {p for m, p in since if m == event.member}
            if event.event == "assigned":
                fresh = set(event.what["partitions"]) - mine
                since |= {(event.member, p): event.at for p in fresh}
            elif event.event == "revoked":
                end(event.member, mine & set(event.what["partitions"]), event.at)
            elif event.event in ("left", "gone"):
                end(event.member, mine, event.at)
        return done + [Owned(p, member, at, float("inf")) for (member, p), at in since.items()]
