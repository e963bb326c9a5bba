"""The one request members of the new consumer protocol (KIP-848) live by: join, keep alive, acknowledge, leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import array, field, int16, int32, message, string, struct, uuid

if TYPE_CHECKING:
    from uuid import UUID


@struct
class HeartbeatTopicPartitions:
    """Partitions of a topic: those a member owns, or those it may use."""

    topic_id: UUID = field(uuid, "0+")
    partitions: list[int] = field(array(int32), "0+")


@message(api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    """Epoch 0 joins, -1 leaves, -2 is a static member that will come back. None means: as last told."""

    group_id: str = field(string, "0+")
    member_id: str = field(string, "0+")
    member_epoch: int = field(int32, "0+")
    instance_id: str | None = field(string, "0+", nullable="0+", default=None)
    rack_id: str | None = field(string, "0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = field(int32, "0+", default=-1)
    subscribed_topic_names: list[str] | None = field(array(string), "0+", nullable="0+", default=None)
    subscribed_topic_regex: str | None = field(string, "1+", nullable="1+", default=None)
    server_assignor: str | None = field(string, "0+", nullable="0+", default=None)
    topic_partitions: list[HeartbeatTopicPartitions] | None = field(
        array(HeartbeatTopicPartitions), "0+", nullable="0+", default=None
    )


@struct
class HeartbeatAssignment:
    """All partitions the member may use from now on."""

    topic_partitions: list[HeartbeatTopicPartitions] = field(array(HeartbeatTopicPartitions), "0+")


@message(api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, and its assignment where it has news for the member."""

    throttle_time_ms: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+", default=None)
    member_id: str | None = field(string, "0+", nullable="0+", default=None)
    member_epoch: int = field(int32, "0+")
    heartbeat_interval_ms: int = field(int32, "0+")
    assignment: HeartbeatAssignment | None = field(HeartbeatAssignment, "0+", nullable="0+", default=None)
