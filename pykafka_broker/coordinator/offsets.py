"""Committed offsets, and those of transactions that are still open. A committed offset is kept as the value of its
record, which has all there is to know of it."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, TypeAlias

from pykafka_broker.coordinator.effects import Record
from pykafka_broker.coordinator.records import CommittedOffset, OffsetCommitKey, OffsetCommitValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pykafka_broker.coordinator.records import CommittedOffsets

NO_PRODUCER = -1

Committed: TypeAlias = OffsetCommitValue | CommittedOffset
"""Read from the log, or committed since."""
ByPartition = dict[int, Committed]
Place = tuple[str, str, int]
"""A group, a topic and a partition."""


class Offsets:
    """Owner of all offsets of a shard. Changed by replaying records, and in no other way."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[str, ByPartition]] = {}
        self._pending: dict[int, dict[Place, OffsetCommitValue | None]] = {}
        """By producer, what its transaction will commit; None where something committed since has overtaken it."""

    def of_group(self, group_id: str) -> Mapping[str, ByPartition]:
        """By topic and partition."""
        return self._committed.get(group_id) or {}

    def tombstones(self, group_id: str) -> list[Record]:
        """What deletes all offsets of the group."""
        places = {(topic, partition) for topic, partition in self._partitions(group_id)}
        pending = {(t, p) for entries in self._pending.values() for g, t, p in entries if g == group_id}
        return [tombstone(group_id, topic, partition) for topic, partition in sorted(places | pending)]

    def tombstones_of_topics(self, names: frozenset[str]) -> list[Record]:
        """What deletes all offsets in these topics, of whatever group."""
        return [
            tombstone(group_id, topic, partition)
            for group_id, topics in self._committed.items()
            for topic in names & topics.keys()
            for partition in topics[topic]
        ]

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction is about to commit an offset here."""
        place = (group_id, topic, partition)
        return any(place in entries for entries in self._pending.values())

    def has_pending(self, group_id: str) -> bool:
        return any(place[0] == group_id for entries in self._pending.values() for place in entries)

    # Replay.

    def put(self, key: OffsetCommitKey, value: OffsetCommitValue, producer_id: int = NO_PRODUCER) -> None:
        if producer_id != NO_PRODUCER:
            place = (key.group, key.topic, key.partition)
            self._pending.setdefault(producer_id, {})[place] = value
            return
        try:
            self._committed[key.group][key.topic][key.partition] = value
        except KeyError:
            topics = self._committed.setdefault(key.group, {})
            topics.setdefault(key.topic, {})[key.partition] = value
        if self._pending:
            self._overtake((key.group, key.topic, key.partition))

    def put_all(self, committed: CommittedOffsets) -> None:
        """As `put` for each of them, outside of a transaction."""
        group, expires = committed.group, committed.expire_timestamp
        topics = self._committed.get(group)
        if topics is None:
            topics = self._committed[group] = {}
        for topic, topic_id, partitions, offsets, epochs, metadata, timestamps in committed.topics:
            by_partition = topics.get(topic)
            if by_partition is None:
                by_partition = topics[topic] = {}
            if len(partitions) == 1:
                by_partition[partitions[0]] = CommittedOffset(
                    offsets[0], epochs[0], metadata[0], timestamps[0], expires, topic_id
                )
            else:
                values = map(
                    CommittedOffset, offsets, epochs, metadata, timestamps, repeat(expires), repeat(topic_id)
                )
                by_partition.update(zip(partitions, values, strict=False))
            if self._pending:
                for partition in partitions:
                    self._overtake((group, topic, partition))

    def remove(self, key: OffsetCommitKey) -> None:
        topics = self._committed.get(key.group, {})
        partitions = topics.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            topics.pop(key.topic, None)
        if not topics:
            self._committed.pop(key.group, None)
        for entries in self._pending.values():
            entries.pop((key.group, key.topic, key.partition), None)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The producer's transaction has ended so."""
        for (group, topic, partition), value in self._pending.pop(producer_id, {}).items():
            if committed and value is not None:
                self.put(OffsetCommitKey(group=group, topic=topic, partition=partition), value)

    def _overtake(self, place: Place) -> None:
        """What is committed later counts, even if a transaction that began earlier ends later."""
        for entries in self._pending.values():
            if place in entries:
                entries[place] = None

    def _partitions(self, group_id: str) -> Iterator[tuple[str, int]]:
        for topic, partitions in self.of_group(group_id).items():
            for partition in partitions:
                yield topic, partition


def tombstone(group_id: str, topic: str, partition: int) -> Record:
    """What deletes one offset."""
    return Record(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
