"""Members of consumer groups that still speak the classic protocol, while a group is on its way from one to the other.

JoinGroup leads such a member one step on and is answered at once: nobody waits for the others, and nobody is a leader.
SyncGroup tells it what it may use. Heartbeat tells it to join again when there is another step to take.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.coordinator.classic_rebalance import refused_join
from pykafka_broker.coordinator.consumer_group_context import join_key, sync_key
from pykafka_broker.coordinator.consumer_group_member import ConsumerMember, MemberState
from pykafka_broker.coordinator.consumer_group_membership import check_room, find_static, take_place_of
from pykafka_broker.coordinator.consumer_group_progress import must_look_at_topics
from pykafka_broker.coordinator.consumer_group_target import present_target
from pykafka_broker.coordinator.consumer_protocol import read_subscription, version_of, write_assignment
from pykafka_broker.coordinator.group import CONSUMER_PROTOCOL
from pykafka_broker.coordinator.records import ClassicMemberMetadata, ClassicProtocol
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, MalformedError
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from pykafka_broker.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from pykafka_broker.coordinator.consumer_group import ConsumerGroup
    from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
    from pykafka_broker.coordinator.consumer_group_downgrade import Downgrade
    from pykafka_broker.coordinator.consumer_group_fence import Fence
    from pykafka_broker.coordinator.consumer_group_progress import Progress
    from pykafka_broker.coordinator.consumer_group_reconcile import Owned
    from pykafka_broker.coordinator.consumer_protocol import Subscription
    from pykafka_broker.coordinator.effects import Caller, Record
    from pykafka_broker.coordinator.group import Decision

FIRST_VERSION_WITH_REQUIRED_ID = 4
FIRST_LEAVE_OF_SEVERAL = 3


class ClassicMembers:
    """Answers the classic protocol for consumer groups that are not empty. Owns nothing."""

    def __init__(
        self, context: ConsumerContext, progress: Progress, fence: Fence, downgrade: Downgrade
    ) -> None:
        self._context = context
        self._progress = progress
        self._fence = fence
        self._downgrade = downgrade

    # Joining.

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now_ms: int, decision: Decision
    ) -> None:
        try:
            response = self._join(group, request, caller, now_ms, decision)
        except KafkaError as error:
            response = refused_join(caller, error.code, request.member_id)
        decision.reply(caller.token, response)

    def _join(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now_ms: int, decision: Decision
    ) -> JoinGroupResponse:
        self._check_join(request)
        member_id = request.member_id or self._context.new_id()
        check_room(self._context.settings, group, member_id)
        if not group.supports_classic(request.protocol_type, [p.name for p in request.protocols]):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        is_static = request.group_instance_id is not None
        if not request.member_id and not is_static and caller.version >= FIRST_VERSION_WITH_REQUIRED_ID:
            return refused_join(caller, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        subscription = _subscription(request)
        replaced = group.static_member(request.group_instance_id)
        records: list[Record] = []
        old = _joining_member(group, request, member_id, records)
        new = _updated(old, request, subscription, caller)
        epoch, resubscribed = self._progress.subscribe(group, old, new, now_ms, records)
        owned = self._owned(subscription)
        if replaced is not None and self._downgrade.is_due_when_replaced(group, replaced):
            if group.target_epoch >= epoch:
                target = present_target(group, new)
                new = self._progress.step(
                    group, new, target, owned, now_ms, records, resubscribed=resubscribed
                )
            self._downgrade.with_replaced(group, replaced, new, now_ms, records)
        else:
            new = self._progress.advance(
                group, epoch, old, new, owned, now_ms, records, resubscribed=resubscribed
            )
            self._progress.touch(group.group_id, member_id, request.session_timeout_ms, now_ms)
            self._expect(sync_key(group.group_id, member_id), group.group_id, new, now_ms)
        self._context.deadlines.cancel(join_key(group.group_id, member_id))
        decision.records += records
        group.decided_in = decision
        return JoinGroupResponse(
            member_id=member_id,
            generation_id=new.epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=request.protocols[0].name,
        )

    def _check_join(self, request: JoinGroupRequest) -> None:
        settings = self._context.settings
        shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
        if settings.group_consumer_migration_policy.lower() == "disabled":
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _owned(self, subscription: Subscription) -> Owned:
        ids = ((self._context.topics.topic_id(topic.topic), topic) for topic in subscription.owned_partitions)
        return {topic_id: frozenset(topic.partitions) for topic_id, topic in ids if topic_id is not None}

    def _expect(self, key: tuple[str, str, str], group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """The member is to take its next step within its rebalance timeout, or it is given up."""
        action = partial(self._fence.expired, group_id, member.member_id)
        self._context.deadlines.set(key, now_ms + member.rebalance_timeout_ms, action)

    # Between joins.

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, caller: Caller, now_ms: int, decision: Decision
    ) -> None:
        try:
            response = self._sync(group, request, now_ms)
        except KafkaError as error:
            response = SyncGroupResponse(error_code=error.code)
        decision.reply(caller.token, response)

    def _sync(self, group: ConsumerGroup, request: SyncGroupRequest, now_ms: int) -> SyncGroupResponse:
        member, classic = _classic_member(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        first = classic.supported_protocols[0]
        if request.protocol_type not in (None, CONSUMER_PROTOCOL) or request.protocol_name not in (
            None,
            first.name,
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED:
            self._expect_join(group, member, now_ms)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._context.deadlines.cancel(sync_key(group.group_id, member.member_id))
        self._progress.touch(group.group_id, member.member_id, classic.session_timeout_ms, now_ms)
        named = ((self._context.topics.name(topic), set(held)) for topic, held in member.assigned.items())
        assignment = {name: held for name, held in named if name is not None}
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(assignment, version_of(first.metadata)),
        )

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, now_ms: int) -> HeartbeatResponse:
        try:
            member, classic = _classic_member(
                group, request.member_id, request.group_instance_id, request.generation_id
            )
        except KafkaError as error:
            return HeartbeatResponse(error_code=error.code)
        self._progress.touch(group.group_id, member.member_id, classic.session_timeout_ms, now_ms)
        may_step = (
            member.epoch < group.target_epoch
            or member.state is MemberState.UNREVOKED
            or (member.state is MemberState.UNRELEASED and not group.awaits_others(member))
            or _nobody_else_makes_the_target(group)
        )
        if not may_step:
            return HeartbeatResponse()
        self._expect_join(group, member, now_ms)
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)

    def _expect_join(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        key = join_key(group.group_id, member.member_id)
        if not self._context.deadlines.is_set(key):
            self._expect(key, group.group_id, member, now_ms)

    # Leaving.

    def leave(
        self,
        group: ConsumerGroup,
        request: LeaveGroupRequest,
        caller: Caller,
        now_ms: int,
        decision: Decision,
    ) -> None:
        identities = request.members
        if caller.version < FIRST_LEAVE_OF_SEVERAL:
            identities = [MemberIdentity(member_id=request.member_id)]
        gone: dict[str, ConsumerMember] = {}
        answers = []
        for identity in identities:
            answer = MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id
            )
            answers.append(answer)
            try:
                member = _leaving_member(group, identity)
            except KafkaError as error:
                answer.error_code = error.code
            else:
                gone[member.member_id] = member
        self._fence.remove(group, list(gone.values()), now_ms, decision)
        response = LeaveGroupResponse(members=answers)
        if caller.version < FIRST_LEAVE_OF_SEVERAL:
            response = LeaveGroupResponse(error_code=answers[0].error_code)
        decision.reply(caller.token, response)


def _subscription(request: JoinGroupRequest) -> Subscription:
    try:
        return read_subscription(bytes(request.protocols[0].metadata))
    except MalformedError:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _joining_member(
    group: ConsumerGroup, request: JoinGroupRequest, member_id: str, records: list[Record]
) -> ConsumerMember:
    if request.group_instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    existing = group.static_member(request.group_instance_id)
    if request.member_id:
        return find_static(group, member_id, request.group_instance_id)
    if existing is None:
        return ConsumerMember(member_id)
    return take_place_of(group, existing, member_id, records)


def _updated(
    member: ConsumerMember, request: JoinGroupRequest, subscription: Subscription, caller: Caller
) -> ConsumerMember:
    timeout_ms = request.session_timeout_ms if caller.version == 0 else request.rebalance_timeout_ms
    protocols = [ClassicProtocol(name=p.name, metadata=bytes(p.metadata)) for p in request.protocols]
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms, supported_protocols=protocols
        ),
    )


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    """The member that speaks, at its own generation."""
    member = group.member(member_id) if instance_id is None else find_static(group, member_id, instance_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.epoch != generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def _nobody_else_makes_the_target(group: ConsumerGroup) -> bool:
    """Whether the group has to move on and has only classic members, who do that by joining. Kafka leaves such a group,
    possible only where downgrades are switched off, until somebody joins by chance."""
    is_behind = group.epoch > group.target_epoch or must_look_at_topics(group)
    return is_behind and group.classic_members == len(group.members)


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    member = group.static_member(identity.group_instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return find_static(group, identity.member_id or member.member_id, identity.group_instance_id)
