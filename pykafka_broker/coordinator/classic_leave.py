"""LeaveGroup of classic groups, versions 0 to 5: members leave by their ids, or are removed by their instance ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafka_broker.coordinator.classic_group import ClassicGroup
    from pykafka_broker.coordinator.classic_rebalance import Rebalances
    from pykafka_broker.coordinator.effects import Caller
    from pykafka_broker.coordinator.group import Decision

FIRST_VERSION_WITH_SEVERAL = 3


def leaving(request: LeaveGroupRequest, version: int) -> list[MemberIdentity]:
    """Who is to leave, whichever way the version says it."""
    if version < FIRST_VERSION_WITH_SEVERAL:
        return [MemberIdentity(member_id=request.member_id)]
    return request.members


def left(members: Iterable[tuple[MemberIdentity, ErrorCode]], version: int) -> LeaveGroupResponse:
    """The response for these results. One member's is that of the whole response where it has no members."""
    results = [
        MemberResponse(member_id=who.member_id, group_instance_id=who.group_instance_id, error_code=error)
        for who, error in members
    ]
    if version < FIRST_VERSION_WITH_SEVERAL:
        return LeaveGroupResponse(error_code=results[0].error_code)
    return LeaveGroupResponse(members=results)


class ClassicLeaves:
    """Answers LeaveGroup. Owns nothing."""

    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances

    def leave(
        self,
        group: ClassicGroup | None,
        request: LeaveGroupRequest,
        caller: Caller,
        now_ms: int,
        decision: Decision,
    ) -> None:
        if not request.group_id:
            decision.reply(caller.token, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return
        results = [
            (who, ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._leave(group, who, decision))
            for who in leaving(request, caller.version)
        ]
        if group is not None and not group.is_empty and any(not error for _, error in results):
            self._rebalances.prepare_or_complete(group, now_ms, decision)
        decision.reply(caller.token, left(results, caller.version))

    def _leave(self, group: ClassicGroup, who: MemberIdentity, decision: Decision) -> ErrorCode:
        member_id = who.member_id
        if not member_id:
            # An operator removes whoever has this instance id at the moment.
            owner = group.static_members.get(who.group_instance_id or "")
            if who.group_instance_id is None or owner is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = owner
        elif member_id in group.pending_joins:
            self._rebalances.forget(group, member_id)
            return ErrorCode.NONE
        else:
            try:
                group.check_member(member_id, who.group_instance_id)
            except KafkaError as error:
                return error.code
        self._rebalances.dismiss(group, group.members[member_id], decision)
        return ErrorCode.NONE
