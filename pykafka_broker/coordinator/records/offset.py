"""Records of committed offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import field, int32, int64, message, string, uuid

if TYPE_CHECKING:
    from uuid import UUID


@message(api_key=1, versions="0", flexible="none")
class OffsetCommitKey:
    """A partition as one group reads it."""

    group: str = field(string, "0")
    topic: str = field(string, "0")
    partition: int = field(int32, "0")


@message(api_key=1, versions="0-4", flexible="4+")
class OffsetCommitValue:
    """How far the group has read."""

    offset: int = field(int64, "0+")
    leader_epoch: int = field(int32, "3+", default=-1)
    metadata: str = field(string, "0+")
    commit_timestamp: int = field(int64, "0+")
    expire_timestamp: int = field(int64, "1", default=-1)
    topic_id: UUID = field(uuid, "4+", tag=0)
