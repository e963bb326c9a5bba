"""What clients of a cluster saw of one topic, and what must be true of it whatever happened to the brokers.

Pure: no clock, no network. Values are unique, so that a record in the log can be traced to its sending.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Record(NamedTuple):
    """A value at its place, as a client was told it."""

    partition: int
    offset: int
    value: bytes


NO_PLACE = -1
"""The offset of a write that the producer knows to be stored, but not where: a later one was, so it was too."""

Log = dict[int, dict[int, bytes]]
"""All that a newcomer reads in the end: partition to offset to value, in the order it was read."""


@dataclass(slots=True)
class History:
    """All that was seen; each list has one writer, the client whose view it is."""

    exactly_once: bool = True
    """Whether the producer promised order and no duplicates: an idempotent one does."""
    sent: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    """By partition, in the order the application handed them over."""
    acknowledged: list[Record] = field(default_factory=list)
    reads: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    """By reader, in the order they were delivered."""
    committed: dict[int, int] = field(default_factory=dict)
    """The last position of the group that was acknowledged, by partition."""


def violations(history: History, log: Mapping[int, Mapping[int, bytes]]) -> list[str]:
    """Every promise that was broken, in words; empty when all were kept."""
    return [
        *_acknowledged_writes_lost(history, log),
        *_offsets_told_differently(history),
        *_committed_reads_lost(history, log),
        *_wrong_stories(history, log),
    ]


def group_violations(
    history: History,
    members: Sequence[str],
    log: Mapping[int, Mapping[int, bytes]],
    positions: Mapping[int, int],
) -> list[str]:
    """What a group was promised: each record reaches a member, a committed position is not forgotten."""
    seen = {(r.partition, r.offset) for member in members for r in history.reads.get(member, ())}
    missed = [
        f"no member saw {partition}@{offset}"
        for partition, stored in log.items()
        for offset in stored
        if (partition, offset) not in seen
    ]
    forgotten = [
        f"position {told} of partition {partition} was committed, and is now {positions.get(partition)}"
        for partition, told in history.committed.items()
        if positions.get(partition, -1) < told
    ]
    return missed + forgotten


def _acknowledged_writes_lost(history: History, log: Mapping[int, Mapping[int, bytes]]) -> Iterator[str]:
    everything = {partition: set(stored.values()) for partition, stored in log.items()}
    for partition, offset, value in history.acknowledged:
        if offset == NO_PLACE:
            if value not in everything.get(partition, ()):
                yield f"acknowledged write lost: {value!r} is nowhere in partition {partition}"
            continue
        found = log.get(partition, {}).get(offset)
        if found != value:
            yield f"acknowledged write lost: {value!r} at {partition}@{offset}, where {found!r} is found"


def _offsets_told_differently(history: History) -> Iterator[str]:
    """Two clients, or one client twice, were told different bytes for one offset."""
    told: dict[tuple[int, int], tuple[str, bytes]] = {}
    sources = [("the producer", history.acknowledged), *history.reads.items()]
    for who, records in sources:
        for partition, offset, value in records:
            if offset == NO_PLACE:
                continue
            before = told.setdefault((partition, offset), (who, value))
            if before[1] != value:
                yield (
                    f"two values at {partition}@{offset}: {before[0]} saw {before[1]!r}, {who} saw {value!r}"
                )


def _committed_reads_lost(history: History, log: Mapping[int, Mapping[int, bytes]]) -> Iterator[str]:
    for reader, records in history.reads.items():
        for partition, offset, value in records:
            found = log.get(partition, {}).get(offset)
            if found != value:
                yield (
                    f"committed read lost: {reader} saw {value!r} at {partition}@{offset}, "
                    f"where {found!r} is found"
                )


def _wrong_stories(history: History, log: Mapping[int, Mapping[int, bytes]]) -> Iterator[str]:
    """What the log tells was sent, and, if that was promised, once and in this order."""
    for partition, stored in log.items():
        place = {value: number for number, value in enumerate(history.sent.get(partition, ()))}
        yield from (
            f"nobody sent {value!r}, found at {partition}@{offset}"
            for offset, value in stored.items()
            if value not in place
        )
        yield from (
            f"partition {partition} went from offset {one} to {two}"
            for one, two in itertools.pairwise(itertools.chain([-1], stored))
            if two != one + 1
        )
        if history.exactly_once:
            numbers = [place[value] for value in stored.values() if value in place]
            yield from (
                f"partition {partition} has number {two} after {one}: "
                f"{'written twice' if two == one else 'out of order or written twice'}"
                for one, two in itertools.pairwise(numbers)
                if two <= one
            )
