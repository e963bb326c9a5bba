"""Where a leader epoch ended, so that a log that diverged can be cut there."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int16, int32, int64, message, string, struct


@struct
class OffsetForLeaderPartition:
    """A partition and the epoch in question."""

    partition: int = field(int32, "0+")
    current_leader_epoch: int = field(int32, "2+", default=-1)
    leader_epoch: int = field(int32, "0+")


@struct
class OffsetForLeaderTopic:
    """The partitions of one topic."""

    topic: str = field(string, "0+")
    partitions: list[OffsetForLeaderPartition] = field(array(OffsetForLeaderPartition), "0+")


@message(api_key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    """Epochs to look up, by a consumer (replica id -1) or a follower."""

    replica_id: int = field(int32, "3+", default=-2)
    topics: list[OffsetForLeaderTopic] = field(array(OffsetForLeaderTopic), "0+")


@struct
class EpochEndOffset:
    """The largest epoch not above the one asked, and the offset it ended at."""

    error_code: int = field(int16, "0+")
    partition: int = field(int32, "0+")
    leader_epoch: int = field(int32, "1+", default=-1)
    end_offset: int = field(int64, "0+", default=-1)


@struct
class OffsetForLeaderTopicResult:
    """The partitions of one topic."""

    topic: str = field(string, "0+")
    partitions: list[EpochEndOffset] = field(array(EpochEndOffset), "0+")


@message(api_key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """The ends of the epochs asked for."""

    throttle_time_ms: int = field(int32, "2+")
    topics: list[OffsetForLeaderTopicResult] = field(array(OffsetForLeaderTopicResult), "0+")
