"""Deleting committed offsets of a group."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int16, int32, message, string, struct


@struct
class OffsetDeleteRequestPartition:
    """One partition."""

    partition_index: int = field(int32, "0+")


@struct
class OffsetDeleteRequestTopic:
    """The partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[OffsetDeleteRequestPartition] = field(array(OffsetDeleteRequestPartition), "0+")


@message(api_key=47, versions="0", flexible="none")
class OffsetDeleteRequest:
    """Partitions whose committed offsets are to go."""

    group_id: str = field(string, "0+")
    topics: list[OffsetDeleteRequestTopic] = field(array(OffsetDeleteRequestTopic), "0+")


@struct
class OffsetDeleteResponsePartition:
    """Whether one offset was deleted."""

    partition_index: int = field(int32, "0+")
    error_code: int = field(int16, "0+")


@struct
class OffsetDeleteResponseTopic:
    """The partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[OffsetDeleteResponsePartition] = field(array(OffsetDeleteResponsePartition), "0+")


@message(api_key=47, versions="0", flexible="none")
class OffsetDeleteResponse:
    """What became of each offset."""

    error_code: int = field(int16, "0+")
    throttle_time_ms: int = field(int32, "0+")
    topics: list[OffsetDeleteResponseTopic] = field(array(OffsetDeleteResponseTopic), "0+")
