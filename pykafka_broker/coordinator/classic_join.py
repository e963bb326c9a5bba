"""JoinGroup of classic groups: who may join, under which id, and what has to happen then.

Versions 0 to 9. From 4 on a new member is sent away once with its id (MEMBER_ID_REQUIRED), so that a join that is
retried leaves no ghost behind; from 5 on a member can be static."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykafka_broker.coordinator.classic_group import ClassicGroup, ClassicMember, State
from pykafka_broker.coordinator.classic_image import empty_record, record_with_replaced
from pykafka_broker.coordinator.classic_rebalance import joined, refused_join
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponseMember,
)
from pykafka_broker.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.coordinator.classic_group import Protocols
    from pykafka_broker.coordinator.classic_rebalance import Rebalances
    from pykafka_broker.coordinator.effects import Caller
    from pykafka_broker.coordinator.group import Decision, Group
    from pykafka_broker.coordinator.settings import GroupSettings

FIRST_VERSION_WITH_REQUIRED_ID = 4
FIRST_VERSION_WITH_SKIPPED_ASSIGNMENT = 9
NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000
"""How long a member that does not know its id yet may wait: it cannot send heartbeats, and may be long gone."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One JoinGroup request on its way through."""

    request: JoinGroupRequest
    protocols: Protocols
    caller: Caller
    now_ms: int
    decision: Decision

    def member(self, member_id: str) -> ClassicMember:
        """The member that joins, should it be let in under this id."""
        return ClassicMember(
            member_id,
            self.request.group_instance_id,
            self.caller.client_id,
            self.caller.client_host,
            self.request.rebalance_timeout_ms,
            self.request.session_timeout_ms,
            self.protocols,
        )

    def refuse(self, error: ErrorCode, member_id: str) -> None:
        _refuse(self.caller, error, member_id, self.decision)


class ClassicJoins:
    """Answers JoinGroup. Owns nothing but `arriving`; groups are the shard's."""

    def __init__(
        self,
        settings: GroupSettings,
        groups: dict[str, Group],
        rebalances: Rebalances,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._settings = settings
        self._groups = groups
        self._rebalances = rebalances
        self._new_id = new_id
        self.unborn: set[str] = set()
        """Groups whose first record is not written yet."""
        self.arriving: dict[str, ClassicMember] = {}
        """By their ids, static members about to take the place of others, until that is written."""

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int, decision: Decision) -> None:
        error = self._refusal(request)
        if error is not None:
            _refuse(caller, error, request.member_id, decision)
            return
        if caller.version == 0:
            request.rebalance_timeout_ms = request.session_timeout_ms
        group = self._groups.get(request.group_id)
        if group is None:
            if request.member_id:
                _refuse(caller, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id, decision)
                return
            group = self._groups[request.group_id] = ClassicGroup(request.group_id, now_ms)
            self.unborn.add(request.group_id)
            decision.records.append(empty_record(group))
        assert isinstance(group, ClassicGroup)
        protocols = tuple((protocol.name, protocol.metadata) for protocol in request.protocols)
        self._join(group, _Attempt(request, protocols, caller, now_ms, decision))

    def _refusal(self, request: JoinGroupRequest) -> ErrorCode | None:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        settings = self._settings
        shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        return None

    def _join(self, group: ClassicGroup, attempt: _Attempt) -> None:
        request = attempt.request
        if not self._has_room(group, request.member_id):
            self._drop(group, request.member_id, attempt.decision)
            attempt.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
            self._rebalances.complete_if_all_joined(group, attempt.now_ms, attempt.decision)
        elif not group.supports(request.protocol_type, attempt.protocols):
            attempt.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        elif request.member_id:
            self._join_known(group, attempt)
        else:
            self._join_new(group, attempt)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        limit = self._settings.group_max_size
        if group.state is State.EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is State.PREPARING:
            # Those who wait are counted, not the members: so the last to come back to a group that has
            # become too large are the ones turned away.
            return (member is not None and member.joining is not None) or group.joining_count < limit
        return member is not None or len(group.members) < limit

    def _drop(self, group: ClassicGroup, member_id: str, decision: Decision) -> None:
        member = group.members.get(member_id)
        if member is not None:
            self._rebalances.dismiss(group, member, decision)
        else:
            group.remove(member_id)

    # A member without an id.

    def _join_new(self, group: ClassicGroup, attempt: _Attempt) -> None:
        instance_id, caller = attempt.request.group_instance_id, attempt.caller
        member_id = f"{caller.client_id if instance_id is None else instance_id}-{self._new_id()}"
        if instance_id is not None and instance_id in group.static_members:
            self._replace_static(group, attempt, member_id)
        elif instance_id is None and caller.version >= FIRST_VERSION_WITH_REQUIRED_ID:
            group.pending_joins.add(member_id)
            self._rebalances.expect(group, member_id, attempt.now_ms, attempt.request.session_timeout_ms)
            attempt.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(group, attempt, member_id)

    def _add(self, group: ClassicGroup, attempt: _Attempt, member_id: str) -> None:
        member = attempt.member(member_id)
        member.joining, member.is_new = attempt.caller, True
        if group.state is State.PREPARING and group.previous_state is State.EMPTY:
            group.joined_late = True
        group.add(member, attempt.request.protocol_type)
        self._rebalances.touch(group, member, attempt.now_ms, NEW_MEMBER_TIMEOUT_MS)
        self._rebalances.prepare_or_complete(group, attempt.now_ms, attempt.decision)

    # A static member that has lost its id: it takes the place of what it was.

    def _replace_static(self, group: ClassicGroup, attempt: _Attempt, new_id: str) -> None:
        request, decision = attempt.request, attempt.decision
        old = group.members[group.static_members[request.group_instance_id or ""]]
        if group.state is State.STABLE and group.protocol_name == group.select_protocol(
            old, attempt.protocols
        ):
            self._replace_quietly(group, attempt, old, new_id)
            return
        old, new = group.replace_static(old.member_id, new_id)
        _fence(old, decision)
        self._rebalances.touch(group, new, attempt.now_ms)
        group.update(new, attempt.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
        group.set_joining(new, attempt.caller)
        # While others sync, the leader may have made an assignment for the old id: that calls for a new round.
        self._rebalances.prepare_or_complete(group, attempt.now_ms, decision)

    def _replace_quietly(
        self, group: ClassicGroup, attempt: _Attempt, old: ClassicMember, new_id: str
    ) -> None:
        """The group goes on as it was, under the same generation; only the id changes, once that is written."""
        new = attempt.member(new_id)
        new.client_id, new.client_host, new.assignment = old.client_id, old.client_host, old.assignment
        self.arriving[new_id] = new
        self._rebalances.touch(group, new, attempt.now_ms)
        attempt.decision.records.append(record_with_replaced(group, old, new))
        response = joined(group, new, attempt.caller.version)
        if group.leader == old.member_id and attempt.caller.version >= FIRST_VERSION_WITH_SKIPPED_ASSIGNMENT:
            # It is told that it leads, so that it watches the topics, but not to assign anything. An older
            # client is told the leader that was: it then takes itself for a follower.
            response.leader = new_id
            response.skip_assignment = True
            response.members = _members_with(group, old, new)
        attempt.decision.reply(attempt.caller.token, response)

    def replaced(self, group: ClassicGroup, member_id: str, instance_id: str) -> None:
        """It is written that `member_id` stands in for the member that had this instance id."""
        old_id = group.static_members[instance_id]
        _, new = group.replace_static(old_id, member_id)
        arrived = self.arriving.pop(member_id, None)
        if arrived is not None:
            group.update(new, arrived.protocols, arrived.rebalance_timeout_ms, arrived.session_timeout_ms)

    # A member with an id.

    def _join_known(self, group: ClassicGroup, attempt: _Attempt) -> None:
        request, protocols, decision = attempt.request, attempt.protocols, attempt.decision
        if request.member_id in group.pending_joins and request.group_instance_id is None:
            self._add(group, attempt, request.member_id)
            return
        try:
            group.check_member(request.member_id, request.group_instance_id)
        except KafkaError as error:
            attempt.refuse(error.code, request.member_id)
            return
        member = group.members[request.member_id]
        unchanged = member.protocols == protocols
        # A leader that joins a stable group has seen something only it can see, such as new partitions.
        wants_rebalance = group.state is State.STABLE and member.member_id == group.leader
        if group.state is State.PREPARING or wants_rebalance or not unchanged:
            group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
            displaced = group.set_joining(member, attempt.caller)
            if displaced is not None:
                _refuse(displaced, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id, decision)
            self._rebalances.prepare_or_complete(group, attempt.now_ms, decision)
        else:
            # It may have missed the answer to its last join.
            decision.reply(attempt.caller.token, joined(group, member, attempt.caller.version))


def _members_with(
    group: ClassicGroup, old: ClassicMember, new: ClassicMember
) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=new.member_id if member is old else member.member_id,
            group_instance_id=member.instance_id,
            metadata=(new if member is old else member).metadata(group.protocol_name),
        )
        for member in group.members.values()
    ]


def _refuse(caller: Caller, error: ErrorCode, member_id: str, decision: Decision) -> None:
    decision.reply(caller.token, refused_join(caller, error, member_id))


def _fence(member: ClassicMember, decision: Decision) -> None:
    error = ErrorCode.FENCED_INSTANCE_ID
    if member.joining is not None:
        _refuse(member.joining, error, member.member_id, decision)
    if member.syncing is not None:
        decision.reply(member.syncing, SyncGroupResponse(error_code=error))
