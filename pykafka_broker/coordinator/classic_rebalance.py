"""How a classic group gets from one generation to the next, and how silent members are noticed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.coordinator.classic_group import ClassicGroup, State
from pykafka_broker.coordinator.classic_image import record_of
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from pykafka_broker.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from pykafka_broker.coordinator.classic_group import ClassicMember
    from pykafka_broker.coordinator.deadlines import Deadlines
    from pykafka_broker.coordinator.effects import Caller
    from pykafka_broker.coordinator.group import Decision, Group
    from pykafka_broker.coordinator.settings import GroupSettings


FIRST_VERSION_WITH_NULL_PROTOCOL = 7


def session_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return "classic session", group_id, member_id


def _join_key(group: ClassicGroup) -> tuple[str, str]:
    return "classic join", group.group_id


def _sync_key(group: ClassicGroup) -> tuple[str, str]:
    return "classic sync", group.group_id


def joined(group: ClassicGroup, member: ClassicMember, version: int) -> JoinGroupResponse:
    """What a member is told of the present generation; its leader is told the members too."""
    members = []
    if member.member_id == group.leader:
        members = [
            JoinGroupResponseMember(
                member_id=other.member_id,
                group_instance_id=other.instance_id,
                metadata=other.metadata(group.protocol_name),
            )
            for other in group.members.values()
        ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name or no_protocol(version),
        leader=group.leader or "",
        member_id=member.member_id,
        members=members,
    )


def refused_join(caller: Caller, error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=no_protocol(caller.version))


def no_protocol(version: int) -> str | None:
    """Older versions have no way to say that there is no protocol; to newer ones one without a name is none."""
    return None if version >= FIRST_VERSION_WITH_NULL_PROTOCOL else ""


class Rebalances:
    """Moves the classic groups of a shard through their states. Owns nothing: groups and deadlines are the shard's."""

    def __init__(self, settings: GroupSettings, groups: dict[str, Group], deadlines: Deadlines) -> None:
        self._settings = settings
        self._groups = groups
        self._deadlines = deadlines

    # Beginning.

    def prepare_or_complete(self, group: ClassicGroup, now_ms: int, decision: Decision) -> None:
        """Begins a rebalance; if one is being prepared already, sees whether all have come."""
        if group.state is State.PREPARING:
            self.complete_if_all_joined(group, now_ms, decision)
        else:
            self.prepare(group, now_ms, decision)

    def prepare(self, group: ClassicGroup, now_ms: int, decision: Decision) -> None:
        """Has everybody join again."""
        if group.state is State.COMPLETING:
            self.refuse_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms, decision)
        group.pending_syncs.clear()
        self._deadlines.cancel(_sync_key(group))
        if group.state is State.EMPTY:
            # More members may be about to start: wait a little, so that they need not rebalance one by one.
            delay = self._settings.group_initial_rebalance_delay_ms
            remaining = max(group.rebalance_timeout_ms - delay, 0)
            group.transition(State.PREPARING, now_ms)
            self._delay_first(group, delay, remaining, now_ms)
            return
        group.transition(State.PREPARING, now_ms)
        if group.all_have_joined:
            self._complete(group, now_ms, decision)
        else:
            self._complete_later(group, now_ms)

    def complete_if_all_joined(self, group: ClassicGroup, now_ms: int, decision: Decision) -> None:
        """The first rebalance of a group is not completed so: it takes the time it was given."""
        if (
            group.state is State.PREPARING
            and group.previous_state is not State.EMPTY
            and group.all_have_joined
        ):
            self._complete(group, now_ms, decision)

    def _delay_first(self, group: ClassicGroup, delay: int, remaining: int, now_ms: int) -> None:
        action = partial(self._first_delay_over, group, delay, remaining)
        self._deadlines.set(_join_key(group), now_ms + delay, action)

    def _first_delay_over(
        self, group: ClassicGroup, delay: int, remaining: int, now_ms: int, decision: Decision
    ) -> None:
        if not self._is_here(group):
            return
        if group.joined_late and remaining:
            group.joined_late = False
            again = min(self._settings.group_initial_rebalance_delay_ms, remaining)
            self._delay_first(group, again, max(remaining - delay, 0), now_ms)
        else:
            self._complete(group, now_ms, decision)

    # Completing the join.

    def _complete_later(self, group: ClassicGroup, now_ms: int) -> None:
        action = partial(self._join_time_over, group)
        self._deadlines.set(_join_key(group), now_ms + group.rebalance_timeout_ms, action)

    def _join_time_over(self, group: ClassicGroup, now_ms: int, decision: Decision) -> None:
        if self._is_here(group) and group.state is State.PREPARING:
            self._complete(group, now_ms, decision)

    def _complete(self, group: ClassicGroup, now_ms: int, decision: Decision) -> None:
        """Those who have joined make up the next generation, with the static members who may come back."""
        self._deadlines.cancel(_join_key(group))
        group.joined_late = False
        late = [m.member_id for m in group.members.values() if m.joining is None and m.instance_id is None]
        for member_id in late:
            self.forget(group, member_id)
        if group.members and not _elect(group):
            # Only static members are left and none is back: their sessions decide.
            self._complete_later(group, now_ms)
            return
        group.next_generation(now_ms)
        if group.state is State.EMPTY:
            decision.records.append(record_of(group))
            return
        for member in group.members.values():
            caller = group.set_joining(member, None)
            if caller is not None:
                decision.reply(caller.token, joined(group, member, caller.version))
            self.touch(group, member, now_ms)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        action = partial(self._sync_time_over, group, group.generation)
        self._deadlines.set(_sync_key(group), now_ms + group.rebalance_timeout_ms, action)

    # Completing the sync.

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        """A member has asked for its assignment, so it need not be waited for."""
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self._deadlines.cancel(_sync_key(group))

    def _sync_time_over(self, group: ClassicGroup, generation: int, now_ms: int, decision: Decision) -> None:
        if not self._is_here(group) or generation != group.generation or not group.pending_syncs:
            return
        if group.state in (State.COMPLETING, State.STABLE):
            for member_id in tuple(group.pending_syncs):
                self.forget(group, member_id)
            self.prepare(group, now_ms, decision)

    def refuse_syncs(self, group: ClassicGroup, error: ErrorCode, now_ms: int, decision: Decision) -> None:
        for member in group.members.values():
            member.assignment = b""
            if member.syncing is not None:
                decision.reply(member.syncing, SyncGroupResponse(error_code=error))
                member.syncing = None
                self.touch(group, member, now_ms)

    # Members that come and go.

    def touch(
        self, group: ClassicGroup, member: ClassicMember, now_ms: int, timeout_ms: int | None = None
    ) -> None:
        """The member is alive: its session starts anew."""
        self.expect(group, member.member_id, now_ms, timeout_ms or member.session_timeout_ms)

    def expect(self, group: ClassicGroup, member_id: str, now_ms: int, timeout_ms: int) -> None:
        """Whoever has this id is to be heard of within the time, or is given up."""
        action = partial(self._session_over, group, member_id)
        self._deadlines.set(session_key(group.group_id, member_id), now_ms + timeout_ms, action)

    def _session_over(self, group: ClassicGroup, member_id: str, now_ms: int, decision: Decision) -> None:
        if not self._is_here(group):
            return
        if member_id in group.pending_joins:
            group.remove(member_id)
            if group.state is State.PREPARING and group.all_have_joined:
                self._complete(group, now_ms, decision)
            return
        member = group.members.get(member_id)
        if member is None or member.is_excused:
            return
        self.dismiss(group, member, decision)
        if group.state in (State.STABLE, State.COMPLETING):
            self.prepare(group, now_ms, decision)
        elif group.state is State.PREPARING and group.all_have_joined:
            self._complete(group, now_ms, decision)

    def dismiss(self, group: ClassicGroup, member: ClassicMember, decision: Decision) -> None:
        """Removes a member; should it still wait for something, it learns that it is unknown and joins anew."""
        self._deadlines.cancel(session_key(group.group_id, member.member_id))
        group.remove(member.member_id)
        _refuse(member, ErrorCode.UNKNOWN_MEMBER_ID, "", decision)

    def forget(self, group: ClassicGroup, member_id: str) -> None:
        """Drops a member nobody waits for, or an id that was given out for one."""
        group.remove(member_id)
        self._deadlines.cancel(session_key(group.group_id, member_id))

    def refuse_all(self, group: ClassicGroup, error: ErrorCode, decision: Decision) -> None:
        """Answers everybody who waits."""
        for member in group.members.values():
            _refuse(member, error, member.member_id, decision)
            group.set_joining(member, None)
            member.syncing = None

    def _is_here(self, group: ClassicGroup) -> bool:
        """Whether the group is still the one of its name."""
        return self._groups.get(group.group_id) is group


def _refuse(member: ClassicMember, error: ErrorCode, member_id: str, decision: Decision) -> None:
    if member.joining is not None:
        decision.reply(member.joining.token, refused_join(member.joining, error, member_id))
    if member.syncing is not None:
        decision.reply(member.syncing, SyncGroupResponse(error_code=error))


def _elect(group: ClassicGroup) -> bool:
    """Makes sure that the leader is one who has joined; False if nobody has."""
    leader = group.members.get(group.leader or "")
    if leader is not None and leader.joining is not None:
        return True
    candidate = next((m.member_id for m in group.members.values() if m.joining is not None), None)
    if candidate is None:
        return False
    group.leader = candidate
    return True
