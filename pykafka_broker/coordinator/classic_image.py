"""A classic group as its record, and back: a record holds the whole group, as of its last completed generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.classic_group import ClassicGroup, ClassicMember, State
from pykafka_broker.coordinator.effects import Record
from pykafka_broker.coordinator.records import GroupMetadataKey, GroupMetadataValue, MemberMetadata

if TYPE_CHECKING:
    from collections.abc import Mapping


def record_of(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> Record:
    """The group with these assignments, or those its members have."""
    members = [
        _member_of(
            member,
            group.protocol_name,
            member.assignment if assignments is None else assignments.get(name, b""),
        )
        for name, member in group.members.items()
    ]
    return _record(group, group.leader, members)


def record_with_replaced(group: ClassicGroup, old: ClassicMember, new: ClassicMember) -> Record:
    """The group as it will be when `new` has taken the place of `old`."""
    members = [
        _member_of(new if member is old else member, group.protocol_name, member.assignment)
        for member in group.members.values()
    ]
    return _record(group, new.member_id if group.leader == old.member_id else group.leader, members)


def empty_record(group: ClassicGroup) -> Record:
    """A group at its birth, whoever may be about to join it."""
    value = GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=-1 if group.state_timestamp is None else group.state_timestamp,
        members=[],
    )
    return Record(GroupMetadataKey(group=group.group_id), value)


def group_from(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group a record tells of: Empty, or Stable with its members as they were."""
    timestamp = value.current_state_timestamp
    group = ClassicGroup(group_id, None if timestamp == -1 else timestamp)
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader = value.leader
    for member in value.members:
        group.add(_member_from(member, value.protocol), value.protocol_type)
    group.state = State.STABLE if value.members else State.EMPTY
    group.note_subscriptions()
    return group


def _record(group: ClassicGroup, leader: str | None, members: list[MemberMetadata]) -> Record:
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=leader,
        current_state_timestamp=-1 if group.state_timestamp is None else group.state_timestamp,
        members=members,
    )
    return Record(GroupMetadataKey(group=group.group_id), value)


def _member_of(member: ClassicMember, protocol: str | None, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=assignment,
    )


def _member_from(value: MemberMetadata, protocol: str | None) -> ClassicMember:
    rebalance_timeout = value.rebalance_timeout
    return ClassicMember(
        value.member_id,
        value.group_instance_id,
        value.client_id,
        value.client_host,
        value.session_timeout if rebalance_timeout == -1 else rebalance_timeout,
        value.session_timeout,
        ((protocol or "", value.subscription),),
        value.assignment,
    )
