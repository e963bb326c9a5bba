"""ConsumerGroupHeartbeat, versions 0 and 1: members join, say what they own, learn what they may use, and leave.

From version 1 on a member makes its own id and may subscribe by a regular expression.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pykafka_broker.coordinator.classic_group import ClassicGroup
from pykafka_broker.coordinator.consumer_group import ConsumerGroup
from pykafka_broker.coordinator.consumer_group_answer import answer, refusal
from pykafka_broker.coordinator.consumer_group_gathering import Asking
from pykafka_broker.coordinator.consumer_group_member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_NOW,
    NOTHING_HELD,
    ConsumerMember,
    held_since,
)
from pykafka_broker.coordinator.consumer_group_membership import (
    check_epoch,
    check_room,
    find_static,
    take_place_of,
)
from pykafka_broker.coordinator.consumer_group_records import current_record
from pykafka_broker.coordinator.consumer_group_target import is_target_due
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
    from pykafka_broker.coordinator.consumer_group_fence import Fence
    from pykafka_broker.coordinator.consumer_group_gathering import Gathering
    from pykafka_broker.coordinator.consumer_group_progress import Progress
    from pykafka_broker.coordinator.consumer_group_reconcile import Owned
    from pykafka_broker.coordinator.consumer_group_upgrade import Upgrade
    from pykafka_broker.coordinator.effects import Caller, Record
    from pykafka_broker.coordinator.group import Decision

FIRST_VERSION_WITH_OWN_ID = 1


class ConsumerHeartbeats:
    """Answers ConsumerGroupHeartbeat. Owns nothing."""

    def __init__(
        self,
        context: ConsumerContext,
        progress: Progress,
        gathering: Gathering,
        fence: Fence,
        upgrade: Upgrade,
    ) -> None:
        self._context = context
        self._progress = progress
        self._gathering = gathering
        self._fence = fence
        self._upgrade = upgrade

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int, decision: Decision
    ) -> None:
        response: ConsumerGroupHeartbeatResponse | None
        try:
            self._check(request, caller.version)
            if request.member_epoch in (LEAVING, LEAVING_FOR_NOW):
                response = self._leave(request, now_ms, decision)
            else:
                response = self._stay(request, caller, now_ms, decision)
        except KafkaError as error:
            response = refusal(error)
        if response is not None:
            decision.reply(caller.token, response)

    def _check(self, request: ConsumerGroupHeartbeatRequest, version: int) -> None:
        """What is wrong with the request itself, whatever the group."""
        needs_id = (
            version >= FIRST_VERSION_WITH_OWN_ID
            or request.member_epoch > 0
            or request.member_epoch == LEAVING
        )
        if needs_id and not request.member_id.strip():
            raise _invalid("the member id is empty")
        if not request.group_id.strip():
            raise _invalid("the group id is empty")
        for what, text in (("instance", request.instance_id), ("rack", request.rack_id)):
            if text is not None and not text.strip():
                raise _invalid(f"the {what} id is empty")
        if request.member_epoch == JOINING:
            _check_first(request)
        elif request.member_epoch == LEAVING_FOR_NOW and request.instance_id is None:
            raise _invalid("only a member with an instance id can leave for now")
        elif request.member_epoch < LEAVING_FOR_NOW:
            raise _invalid(f"{request.member_epoch} is no member epoch")
        offered = self._context.settings.group_consumer_assignors
        if request.server_assignor is not None and request.server_assignor not in offered:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                f"{request.server_assignor!r} is not offered here, but {', '.join(offered)}",
            )

    # Staying, or joining.

    def _stay(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int, decision: Decision
    ) -> ConsumerGroupHeartbeatResponse | None:
        """None if the member is to wait for a new target."""
        records: list[Record] = []
        group, classic = self._group(request, records)
        check_room(self._context.settings, group, request.member_id)
        owned = _owned(request)
        old = self._member(group, request, owned, records)
        new = _updated(old, request, caller)
        epoch, resubscribed = self._progress.subscribe(group, old, new, now_ms, records)
        is_told_all = request.member_epoch == JOINING or _is_full(request)
        response = None
        if classic is None and is_target_due(self._context, group, epoch, now_ms):
            asking = Asking([caller.token], old.assigned, owned, is_told_all, resubscribed)
            self._gathering.ask(group.group_id, new.member_id, asking, now_ms)
        else:
            stepped = self._progress.advance(
                group, epoch, old, new, owned, now_ms, records, resubscribed=resubscribed
            )
            is_told = is_told_all or stepped.assigned != old.assigned
            response = answer(self._context.settings, stepped, with_assignment=is_told)
        if classic is not None:
            self._upgrade.upgraded(classic, now_ms, decision)
        self._progress.touch(
            group.group_id, new.member_id, self._context.settings.group_consumer_session_timeout_ms, now_ms
        )
        decision.records += records
        group.decided_in = decision
        return response

    def _group(
        self, request: ConsumerGroupHeartbeatRequest, records: list[Record]
    ) -> tuple[ConsumerGroup, ClassicGroup | None]:
        """The group, made for the first member, or of a classic group, which is then given too."""
        group = self._context.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return group, None
        if request.member_epoch != JOINING:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {request.group_id!r}")
        if not isinstance(group, ClassicGroup):
            return ConsumerGroup(request.group_id), None
        if group.is_empty:
            records += group.tombstones()
            return ConsumerGroup(request.group_id), group
        return self._upgrade.convert(group, records), group

    def _member(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        owned: Owned | None,
        records: list[Record],
    ) -> ConsumerMember:
        """The member as it is known, or a new one."""
        joins = request.member_epoch == JOINING
        member_id = request.member_id or self._context.new_id()
        if request.instance_id is None:
            if joins:
                return group.members.get(member_id) or ConsumerMember(member_id)
            member = group.member(member_id)
        elif joins:
            existing = group.static_member(request.instance_id)
            if existing is None:
                return group.members.get(member_id) or ConsumerMember(member_id)
            if not existing.speaks_classic and existing.epoch != LEAVING_FOR_NOW:
                raise KafkaError(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f"{request.instance_id!r} is in use by {existing.member_id!r}",
                )
            return take_place_of(group, existing, member_id, records)
        else:
            member = find_static(group, member_id, request.instance_id)
        check_epoch(member, request.member_epoch, owned)
        return member

    # Leaving.

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest, now_ms: int, decision: Decision
    ) -> ConsumerGroupHeartbeatResponse:
        group = self._context.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {request.group_id!r}")
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = find_static(group, request.member_id, request.instance_id)
        if request.member_epoch == LEAVING_FOR_NOW:
            assigned = held_since({topic: frozenset(held) for topic, held in member.assigned.items()}, 0)
            away = replace(member, epoch=LEAVING_FOR_NOW, assigned=assigned, revoking=NOTHING_HELD)
            decision.records.append(current_record(group.group_id, away))
            group.decided_in = decision
        else:
            self._fence.remove(group, [member], now_ms, decision)
        return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def _check_first(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("a member that joins must give its rebalance timeout")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("a member that joins must own no partitions, and say so")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("a member that joins must subscribe to names or a regular expression")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    return {topic.topic_id: frozenset(topic.partitions) for topic in request.topic_partitions}


def _updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, caller: Caller
) -> ConsumerMember:
    """The member with what it tells; what it leaves out has not changed."""
    told: dict[str, Any] = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        "assignor": request.server_assignor,
        "topic_names": None
        if request.subscribed_topic_names is None
        else frozenset(request.subscribed_topic_names),
        "topic_regex": request.subscribed_topic_regex,
        "client_id": caller.client_id,
        "client_host": caller.client_host,
    }
    changes = {
        name: value for name, value in told.items() if value is not None and value != getattr(member, name)
    }
    if member.speaks_classic:
        changes["classic"] = None
    return replace(member, **changes) if changes else member


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member tells everything, as it does when it does not know what the broker knows."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
