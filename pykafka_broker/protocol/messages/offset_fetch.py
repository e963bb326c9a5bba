"""Reading the committed offsets of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import (
    array,
    boolean,
    field,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    uuid,
)

if TYPE_CHECKING:
    from uuid import UUID


@struct
class OffsetFetchRequestTopic:
    """Partitions of a topic, up to version 7."""

    name: str = field(string, "0-7")
    partition_indexes: list[int] = field(array(int32), "0-7")


@struct
class OffsetFetchRequestTopics:
    """Partitions of a topic, by name up to version 9 and by id after it."""

    name: str = field(string, "8-9")
    topic_id: UUID = field(uuid, "10+")
    partition_indexes: list[int] = field(array(int32), "8+")


@struct
class OffsetFetchRequestGroup:
    """A group, the member that asks, and the partitions of interest."""

    group_id: str = field(string, "8+")
    member_id: str | None = field(string, "9+", nullable="9+", default=None)
    member_epoch: int = field(int32, "9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = field(
        array(OffsetFetchRequestTopics), "8+", nullable="8+"
    )


@message(api_key=9, versions="0-10", flexible="6+")
class OffsetFetchRequest:
    """One group up to version 7, several after it; topics None means all."""

    group_id: str = field(string, "0-7")
    topics: list[OffsetFetchRequestTopic] | None = field(
        array(OffsetFetchRequestTopic), "0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = field(array(OffsetFetchRequestGroup), "8+")
    require_stable: bool = field(boolean, "7+")


@struct
class OffsetFetchResponsePartition:
    """A committed offset, -1 if there is none; up to version 7."""

    partition_index: int = field(int32, "0-7")
    committed_offset: int = field(int64, "0-7")
    committed_leader_epoch: int = field(int32, "5-7", default=-1)
    metadata: str | None = field(string, "0-7", nullable="0-7")
    error_code: int = field(int16, "0-7")


@struct
class OffsetFetchResponseTopic:
    """Offsets of a topic, up to version 7."""

    name: str = field(string, "0-7")
    partitions: list[OffsetFetchResponsePartition] = field(array(OffsetFetchResponsePartition), "0-7")


@struct
class OffsetFetchResponsePartitions:
    """A committed offset, -1 if there is none."""

    partition_index: int = field(int32, "8+")
    committed_offset: int = field(int64, "8+")
    committed_leader_epoch: int = field(int32, "8+", default=-1)
    metadata: str | None = field(string, "8+", nullable="8+")
    error_code: int = field(int16, "8+")


@struct
class OffsetFetchResponseTopics:
    """Offsets of a topic, by name up to version 9 and by id after it."""

    name: str = field(string, "8-9")
    topic_id: UUID = field(uuid, "10+")
    partitions: list[OffsetFetchResponsePartitions] = field(array(OffsetFetchResponsePartitions), "8+")


@struct
class OffsetFetchResponseGroup:
    """A group and its offsets."""

    group_id: str = field(string, "8+")
    topics: list[OffsetFetchResponseTopics] = field(array(OffsetFetchResponseTopics), "8+")
    error_code: int = field(int16, "8+")


@message(api_key=9, versions="0-10", flexible="6+")
class OffsetFetchResponse:
    """Offsets of one group up to version 7, of several after it."""

    throttle_time_ms: int = field(int32, "3+")
    topics: list[OffsetFetchResponseTopic] = field(array(OffsetFetchResponseTopic), "0-7")
    error_code: int = field(int16, "2-7")
    groups: list[OffsetFetchResponseGroup] = field(array(OffsetFetchResponseGroup), "8+")
