"""SyncGroup and Heartbeat of classic groups: members get their assignments, and say that they are alive.

SyncGroup versions 0 to 5, Heartbeat versions 0 to 4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.classic_group import State
from pykafka_broker.coordinator.classic_image import record_of
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from pykafka_broker.coordinator.classic_group import ClassicGroup
    from pykafka_broker.coordinator.classic_rebalance import Rebalances
    from pykafka_broker.coordinator.effects import Caller
    from pykafka_broker.coordinator.group import Decision
    from pykafka_broker.coordinator.records import GroupMetadataValue

FIRST_VERSION_WITH_PROTOCOL = 5


def sync_refusal(request: SyncGroupRequest, version: int) -> ErrorCode | None:
    """What is wrong with the request itself, whatever the group."""
    named = request.protocol_type is not None and request.protocol_name is not None
    if version >= FIRST_VERSION_WITH_PROTOCOL and not named:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None if request.group_id else ErrorCode.INVALID_GROUP_ID


class ClassicSyncs:
    """Answers SyncGroup and Heartbeat. Owns nothing."""

    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances

    def sync(
        self,
        group: ClassicGroup | None,
        request: SyncGroupRequest,
        caller: Caller,
        now_ms: int,
        decision: Decision,
    ) -> None:
        try:
            if group is None or group.is_empty:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            _check_sync(group, request)
        except KafkaError as error:
            decision.reply(caller.token, SyncGroupResponse(error_code=error.code))
            return
        self._rebalances.synced(group, request.member_id)
        member = group.members[request.member_id]
        if group.state is State.STABLE:
            decision.reply(caller.token, _part(group, member.assignment))
            return
        if member.syncing is not None:
            decision.reply(member.syncing, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = caller.token
        if request.member_id == group.leader:
            self._assign(group, request, now_ms, decision)

    def _assign(
        self, group: ClassicGroup, request: SyncGroupRequest, now_ms: int, decision: Decision
    ) -> None:
        """The leader has decided: once that is written, those who wait are told, and the rest when they ask."""
        parts = {part.member_id: part.assignment for part in request.assignments}
        decision.records.append(record_of(group, parts))
        for member in group.members.values():
            if member.syncing is not None:
                decision.reply(member.syncing, _part(group, parts.get(member.member_id, b"")))
                member.syncing = None
                self._rebalances.touch(group, member, now_ms)

    @staticmethod
    def assigned(group: ClassicGroup, value: GroupMetadataValue) -> None:
        """The assignment of this generation is written."""
        for part in value.members:
            group.members[part.member_id].assignment = part.assignment
        group.previous_state, group.state = group.state, State.STABLE

    def heartbeat(
        self, group: ClassicGroup | None, request: HeartbeatRequest, now_ms: int
    ) -> HeartbeatResponse:
        if group is None:
            return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        try:
            group.check_member(request.member_id, request.group_instance_id)
            if request.generation_id != group.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        except KafkaError as error:
            return HeartbeatResponse(error_code=error.code)
        self._rebalances.touch(group, group.members[request.member_id], now_ms)
        if group.state is State.PREPARING:
            return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return HeartbeatResponse()


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> None:
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if request.protocol_type not in (None, group.protocol_type):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.protocol_name not in (None, group.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is State.PREPARING:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def _part(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment
    )
