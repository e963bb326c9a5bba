"""Offsets by time, and the two ends of a partition."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int8, int16, int32, int64, message, string, struct


@struct
class ListOffsetsPartition:
    """A partition and the timestamp to look up."""

    partition_index: int = field(int32, "0+")
    current_leader_epoch: int = field(int32, "4+", default=-1)
    timestamp: int = field(int64, "0+")
    max_num_offsets: int = field(int32, "0", default=1)


@struct
class ListOffsetsTopic:
    """The partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[ListOffsetsPartition] = field(array(ListOffsetsPartition), "0+")


@message(api_key=2, versions="0-11", flexible="6+")
class ListOffsetsRequest:
    """Timestamps to look up; below zero they name an end of the log."""

    replica_id: int = field(int32, "0+")
    isolation_level: int = field(int8, "2+")
    topics: list[ListOffsetsTopic] = field(array(ListOffsetsTopic), "0+")
    timeout_ms: int = field(int32, "10+")


@struct
class ListOffsetsPartitionResponse:
    """The first offset at or after the timestamp, or -1."""

    partition_index: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    old_style_offsets: list[int] = field(array(int64), "0")
    timestamp: int = field(int64, "1+", default=-1)
    offset: int = field(int64, "1+", default=-1)
    leader_epoch: int = field(int32, "4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    """The partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[ListOffsetsPartitionResponse] = field(array(ListOffsetsPartitionResponse), "0+")


@message(api_key=2, versions="0-11", flexible="6+")
class ListOffsetsResponse:
    """The offsets found."""

    throttle_time_ms: int = field(int32, "2+")
    topics: list[ListOffsetsTopicResponse] = field(array(ListOffsetsTopicResponse), "0+")
