"""Makes the target of a consumer group: what every member shall come to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.assignors import ASSIGNORS, NOTHING, MemberWish, Wishes
from pykafka_broker.coordinator.consumer_group_records import target_epoch_record, target_record

if TYPE_CHECKING:
    from uuid import UUID

    from pykafka_broker.coordinator.assignors import Assignment
    from pykafka_broker.coordinator.consumer_group import ConsumerGroup
    from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember
    from pykafka_broker.coordinator.effects import Record


def target_for(
    context: ConsumerContext,
    group: ConsumerGroup,
    epoch: int,
    old: ConsumerMember,
    new: ConsumerMember,
    now_ms: int,
    records: list[Record],
) -> tuple[int, Assignment]:
    """The epoch of the target and the part of `new` in it, which is about to replace `old`.

    A new target is made if the group has moved on, but not more often than the settings allow: then the present one
    has to do until somebody asks again.
    """
    interval = context.settings.group_consumer_assignment_interval_ms
    too_soon = group.target_timestamp and interval and now_ms < group.target_timestamp + interval
    if group.target_epoch >= epoch or too_soon:
        return group.target_epoch, group.target_of(new.member_id, new.instance_id)
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
    return epoch, assignments.get(new.member_id, NOTHING)


def _wishes(context: ConsumerContext, group: ConsumerGroup, new: ConsumerMember) -> Wishes:
    members = dict(group.members)
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
