"""Makes the target of a consumer group: what every member shall come to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pykafka_broker.coordinator.assignors import ASSIGNORS, NOTHING, MemberWish, Wishes
from pykafka_broker.coordinator.consumer_group_records import target_epoch_record, target_record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from pykafka_broker.coordinator.assignors import Assignment
    from pykafka_broker.coordinator.consumer_group import ConsumerGroup
    from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember
    from pykafka_broker.coordinator.effects import Record


class Target(NamedTuple):
    """What every member shall come to hold, and from which of the group's epochs on."""

    epoch: int
    parts: Mapping[str, Assignment]


def is_target_due(context: ConsumerContext, group: ConsumerGroup, epoch: int, now_ms: int) -> bool:
    """Whether the group has moved on to `epoch` and needs a new target. One is not made more often than the settings
    allow: then the present one has to do until somebody asks again."""
    interval = context.settings.group_consumer_assignment_interval_ms
    too_soon = group.target_timestamp and interval and now_ms < group.target_timestamp + interval
    return group.target_epoch < epoch and not too_soon


def present_target(group: ConsumerGroup, member: ConsumerMember) -> Target:
    """The target there is, as far as it concerns a member, which may be about to take the place of another."""
    return Target(
        group.target_epoch, {member.member_id: group.target_of(member.member_id, member.instance_id)}
    )


def make_target(
    context: ConsumerContext,
    group: ConsumerGroup,
    epoch: int,
    now_ms: int,
    records: list[Record],
    old: ConsumerMember | None = None,
    new: ConsumerMember | None = None,
) -> Target:
    """A target for this epoch; `new`, if there is one, is about to replace `old` then."""
    name = group.preferred_assignor(old, new)
    if name not in context.settings.group_consumer_assignors:
        name = context.settings.group_consumer_assignors[0]
    wishes = _wishes(context, group, new)
    assignments = ASSIGNORS[name](wishes)
    for member_id in wishes.members:
        assignment = assignments.get(member_id, NOTHING)
        present = group.target.get(member_id)
        if assignment is not present and assignment != present:  # most stay as they are
            records.append(target_record(group.group_id, member_id, assignment))
    records.append(target_epoch_record(group.group_id, epoch, now_ms))
    return Target(epoch, assignments)


def _wishes(context: ConsumerContext, group: ConsumerGroup, new: ConsumerMember | None) -> Wishes:
    members = group.members
    if new is not None:
        members = dict(members)
        if new.instance_id is not None:
            members.pop(group.static_members.get(new.instance_id, ""), None)
        members[new.member_id] = new
    ids: dict[frozenset[str], frozenset[UUID]] = {}
    wishes: dict[str, MemberWish] = {}
    for member_id, member in members.items():
        names = group.subscription_of(member) if member.topic_regex else member.topic_names
        topics = ids.get(names)
        if topics is None:
            topics = ids[names] = context.topic_ids(names)
        if member is new:
            assigned = group.target.get(member_id) or group.target_of(member_id, new.instance_id)
        else:
            assigned = group.target.get(member_id, NOTHING)
        wishes[member_id] = MemberWish(topics, assigned, member.instance_id)
    counts: dict[UUID, int] = {}
    for names in ids:
        for name in names:
            topic_id, count = context.topics.topic_id(name), context.topics.partition_count(name)
            if topic_id is not None and count is not None:
                counts[topic_id] = count
    return Wishes(wishes, counts, alike=len(set(ids.values())) <= 1)
