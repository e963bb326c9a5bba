"""The records a consumer group is written in, made from its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.effects import Record
from pykafka_broker.coordinator.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafka_broker.coordinator.assignors import Assignment
    from pykafka_broker.coordinator.consumer_group import Resolved
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember, Held


def member_record(group_id: str, member: ConsumerMember) -> Record:
    """Who the member is and what it wants."""
    return Record(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
            subscribed_topic_regex=member.topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=member.classic,
        ),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """The group's epoch, and the hash of its topics."""
    return Record(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target_record(group_id: str, member_id: str, assignment: Assignment) -> Record:
    """What the member shall come to hold."""
    topics = [TopicPartition(topic_id=topic, partitions=sorted(held)) for topic, held in assignment.items()]
    return Record(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics),
    )


def target_epoch_record(group_id: str, epoch: int, timestamp: int) -> Record:
    """For which epoch the target was made, and when."""
    return Record(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp),
    )


def current_record(group_id: str, member: ConsumerMember) -> Record:
    """What the member holds and how far it has come."""
    return Record(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_with_epochs(member.assigned),
            partitions_pending_revocation=_with_epochs(member.revoking),
        ),
    )


def regex_record(group_id: str, regex: str, resolved: Resolved) -> Record:
    """What a regular expression matched."""
    return Record(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp
        ),
    )


def regex_tombstone(group_id: str, regex: str) -> Record:
    """Nobody subscribes with it any more."""
    return Record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def topics_tombstone(group_id: str) -> Record:
    """Removes what releases before 4.1 kept of the topics."""
    return Record(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Removes a member, in the order its records depend on each other."""
    return [
        Record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        Record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        Record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> list[Record]:
    """Removes a group with all its members."""
    removed = [tombstone for member_id in member_ids for tombstone in member_tombstones(group_id, member_id)]
    removed.append(Record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None))
    removed += [regex_tombstone(group_id, regex) for regex in regexes]
    removed.append(topics_tombstone(group_id))
    removed.append(Record(ConsumerGroupMetadataKey(group_id=group_id), None))
    return removed


def _with_epochs(held: Held) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic, epochs in held.items()
    ]
