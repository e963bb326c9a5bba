"""Consumer groups as people see them: ConsumerGroupDescribe, versions 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.assignors import NOTHING
from pykafka_broker.coordinator.consumer_group import ConsumerGroup
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.consumer_group_describe import (
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    DescribedTopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember
    from pykafka_broker.coordinator.group import Group

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def describe_consumer(context: ConsumerContext, group_id: str, group: Group | None) -> DescribedConsumerGroup:
    """A consumer group, or that there is none of this name."""
    if not group_id:
        return DescribedConsumerGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
    if not isinstance(group, ConsumerGroup):
        reason = "not found" if group is None else "is not a consumer group"
        return DescribedConsumerGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {reason}.",
        )
    return DescribedConsumerGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor() or context.settings.group_consumer_assignors[0],
        members=[_member(context, group, member) for member in group.members.values()],
    )


def _member(
    context: ConsumerContext, group: ConsumerGroup, member: ConsumerMember
) -> DescribedConsumerMember:
    held: dict[UUID, list[int]] = {}
    for part in (member.assigned, member.revoking):
        for topic, partitions in part.items():
            held.setdefault(topic, []).extend(partitions)
    return DescribedConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(context, held),
        target_assignment=_assignment(context, group.target.get(member.member_id, NOTHING)),
        member_type=CLASSIC_MEMBER if member.speaks_classic else CONSUMER_MEMBER,
    )


def _assignment(context: ConsumerContext, held: Mapping[UUID, Iterable[int]]) -> DescribedAssignment:
    """Topics that are gone are left out."""
    named = ((topic, context.topics.name(topic), partitions) for topic, partitions in held.items())
    return DescribedAssignment(
        topic_partitions=[
            DescribedTopicPartitions(topic_id=topic, topic_name=name, partitions=sorted(partitions))
            for topic, name, partitions in named
            if name is not None
        ]
    )
