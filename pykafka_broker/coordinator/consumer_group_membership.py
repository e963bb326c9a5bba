"""Who may be a member of a consumer group, and at which epoch it may speak."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pykafka_broker.coordinator.consumer_group_member import JOINING
from pykafka_broker.coordinator.consumer_group_records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.coordinator.consumer_group import ConsumerGroup
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember
    from pykafka_broker.coordinator.consumer_group_reconcile import Owned
    from pykafka_broker.coordinator.effects import Record
    from pykafka_broker.coordinator.settings import GroupSettings


def check_room(settings: GroupSettings, group: ConsumerGroup, member_id: str) -> None:
    """GROUP_MAX_SIZE_REACHED if the group is full and this is not one of its members."""
    if len(group.members) >= settings.group_consumer_max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"the group has all the {settings.group_consumer_max_size} members it may have",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """FENCED_MEMBER_EPOCH unless it is the member's epoch, or the one before and the member owns no more than it was
    given since: then the answer to its last heartbeat was lost."""
    if epoch == member.epoch or epoch == JOINING:
        return
    if epoch == member.previous_epoch and epoch < member.epoch and owned is not None:
        held = member.assigned
        if all(topic in held and partitions <= held[topic].keys() for topic, partitions in owned.items()):
            return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"the member is at epoch {member.epoch}, not {epoch}: give up all partitions and join again",
    )


def find_static(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """UNKNOWN_MEMBER_ID if nobody has the instance id, FENCED_INSTANCE_ID if somebody else has it."""
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"nobody has the instance id {instance_id!r}")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"{instance_id!r} belongs to {member.member_id!r}, not {member_id!r}",
        )
    return member


def take_place_of(
    group: ConsumerGroup, old: ConsumerMember, member_id: str, records: list[Record]
) -> ConsumerMember:
    """A static member comes back under another id, or the same, to what it had."""
    new = replace(old, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
    records += member_tombstones(group.group_id, old.member_id)
    records += [
        member_record(group.group_id, new),
        target_record(group.group_id, member_id, group.target_of(old.member_id, None)),
        current_record(group.group_id, new),
    ]
    return new
