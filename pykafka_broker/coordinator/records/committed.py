"""What one OffsetCommit writes: the records of many offsets, kept by column until somebody wants them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

from pykafka_broker.coordinator.effects import Record
from pykafka_broker.coordinator.records.offset import OffsetCommitKey, OffsetCommitValue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID


class CommittedOffset(NamedTuple):
    """How far a group has read a partition: what OffsetCommitValue says, at the cost of a tuple."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: UUID


class TopicOffsets(NamedTuple):
    """Offsets in one topic: the columns are of one length, a row for each partition."""

    topic: str
    topic_id: UUID
    partitions: Sequence[int]
    offsets: Sequence[int]
    leader_epochs: Sequence[int]
    metadata: Sequence[str]
    commit_timestamps: Sequence[int]


class CommittedOffsets(Sequence[Record]):
    """The records of one OffsetCommit, which are all of one group and expire at one time. Reads as these records."""

    __slots__ = ("expire_timestamp", "group", "topics")

    def __init__(self, group: str, topics: Sequence[TopicOffsets], expire_timestamp: int = -1) -> None:
        self.group = group
        self.topics = topics
        self.expire_timestamp = expire_timestamp

    def __len__(self) -> int:
        count = 0
        for topic in self.topics:  # nearly always one: a comprehension would cost more than what it does
            count += len(topic.partitions)
        return count

    def __iter__(self) -> Iterator[Record]:
        for topic in self.topics:
            for partition, offset, epoch, metadata, timestamp in zip(*topic[2:], strict=True):
                yield Record(
                    OffsetCommitKey(group=self.group, topic=topic.topic, partition=partition),
                    OffsetCommitValue(
                        offset=offset,
                        leader_epoch=epoch,
                        metadata=metadata,
                        commit_timestamp=timestamp,
                        expire_timestamp=self.expire_timestamp,
                        topic_id=topic.topic_id,
                    ),
                )

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> list[Record]: ...
    def __getitem__(self, at: int | slice) -> Record | list[Record]:
        return list(self)[at]
