"""Applies the records of consumer groups to their state: live after every append, and when loading."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pykafka_broker.coordinator.consumer_group import NO_TARGET, ConsumerGroup, Resolved
from pykafka_broker.coordinator.consumer_group_member import LEAVING, NOTHING_HELD, ConsumerMember
from pykafka_broker.coordinator.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from pykafka_broker.coordinator.effects import Record
    from pykafka_broker.coordinator.group import Group


def is_consumer_group_record(record: Record) -> bool:
    return type(record.key) in _APPLY


def replay(groups: MutableMapping[str, Group], record: Record) -> None:
    """Applies a record of a consumer group. The first one makes the group, the tombstone of its epoch removes it."""
    key = record.key
    found = groups.get(key.group_id)
    if isinstance(found, ConsumerGroup):
        group = found
    elif record.value is None:
        return  # what it removes was removed before, or the group is a classic one by now
    else:
        group = ConsumerGroup(key.group_id)
        groups[key.group_id] = group
    if record.value is None and isinstance(key, ConsumerGroupMetadataKey):
        del groups[key.group_id]
    else:
        apply(group, record)


def apply(group: ConsumerGroup, record: Record) -> None:
    """Applies a record to the group it is of."""
    _APPLY[type(record.key)](group, record.key, record.value)


def _epoch(group: ConsumerGroup, key: Any, value: Any) -> None:
    del key
    if value is not None:
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _topics(group: ConsumerGroup, key: Any, value: Any) -> None:
    del key
    group.has_topics_record = value is not None


def _member(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.remove(key.member_id)
        return
    member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
    group.put(member.described_by(value, frozenset(value.subscribed_topic_names)))


def _target_epoch(group: ConsumerGroup, key: Any, value: Any) -> None:
    del key
    group.target_epoch = NO_TARGET if value is None else value.assignment_epoch
    group.target_timestamp = 0 if value is None else value.assignment_timestamp


def _target(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = {
            topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
        }


def _current(group: ConsumerGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put((member or ConsumerMember(key.member_id)).holding(value))
    elif member is not None:
        group.put(
            replace(
                member, epoch=LEAVING, previous_epoch=LEAVING, assigned=NOTHING_HELD, revoking=NOTHING_HELD
            )
        )


def _regex(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.resolved.pop(key.regular_expression, None)
    else:
        group.resolved[key.regular_expression] = Resolved(
            frozenset(value.topics), value.version, value.timestamp
        )


_APPLY: dict[type[Any], Callable[[ConsumerGroup, Any, Any], None]] = {
    ConsumerGroupMetadataKey: _epoch,
    ConsumerGroupPartitionMetadataKey: _topics,
    ConsumerGroupMemberMetadataKey: _member,
    ConsumerGroupTargetAssignmentMetadataKey: _target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _target,
    ConsumerGroupCurrentMemberAssignmentKey: _current,
    ConsumerGroupRegularExpressionKey: _regex,
}
