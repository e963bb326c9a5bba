"""What members of consumer groups are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    HeartbeatTopicPartitions,
)

if TYPE_CHECKING:
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember, Held
    from pykafka_broker.coordinator.settings import GroupSettings
    from pykafka_broker.protocol.errors import KafkaError


def answer(
    settings: GroupSettings, member: ConsumerMember, *, with_assignment: bool
) -> ConsumerGroupHeartbeatResponse:
    """Where the member stands, and what it may use if it is to be told."""
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
        assignment=_assignment(member.assigned) if with_assignment else None,
    )


def refusal(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.text)


def _assignment(held: Held) -> HeartbeatAssignment:
    return HeartbeatAssignment(
        topic_partitions=[
            HeartbeatTopicPartitions(topic_id=topic, partitions=list(partitions))
            for topic, partitions in held.items()
        ]
    )
