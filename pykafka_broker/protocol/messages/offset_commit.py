"""Storing the offsets of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import (
    array,
    columns,
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
    from collections.abc import Sequence
    from uuid import UUID


@struct
class OffsetCommitRequestPartition:
    """The next offset to read, with a note of the consumer's own."""

    partition_index: int = field(int32, "0+")
    committed_offset: int = field(int64, "0+")
    committed_leader_epoch: int = field(int32, "6+", default=-1)
    commit_timestamp: int = field(int64, "1", default=-1)
    committed_metadata: str | None = field(string, "0+", nullable="0+")


@struct
class OffsetCommitRequestTopic:
    """A topic, by name up to version 9 and by id after it."""

    name: str = field(string, "0-9")
    topic_id: UUID = field(uuid, "10+")
    partitions: Sequence[OffsetCommitRequestPartition] = field(columns(OffsetCommitRequestPartition), "0+")


@message(api_key=8, versions="0-10", flexible="8+")
class OffsetCommitRequest:
    """Offsets to store; generation -1 when there is no membership behind it."""

    group_id: str = field(string, "0+")
    generation_id_or_member_epoch: int = field(int32, "1+", default=-1)
    member_id: str = field(string, "1+")
    group_instance_id: str | None = field(string, "7+", nullable="7+", default=None)
    retention_time_ms: int = field(int64, "2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = field(array(OffsetCommitRequestTopic), "0+")


@struct
class OffsetCommitResponsePartition:
    """Whether one offset was stored."""

    partition_index: int = field(int32, "0+")
    error_code: int = field(int16, "0+")


@struct
class OffsetCommitResponseTopic:
    """The partitions of one topic."""

    name: str = field(string, "0-9")
    topic_id: UUID = field(uuid, "10+")
    partitions: Sequence[OffsetCommitResponsePartition] = field(columns(OffsetCommitResponsePartition), "0+")


@message(api_key=8, versions="0-10", flexible="8+")
class OffsetCommitResponse:
    """Whether each offset was stored."""

    throttle_time_ms: int = field(int32, "3+")
    topics: list[OffsetCommitResponseTopic] = field(array(OffsetCommitResponseTopic), "0+")
