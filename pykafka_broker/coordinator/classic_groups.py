"""All classic groups of a shard: their requests, their records, their upkeep."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.coordinator.classic_group import ClassicGroup, State
from pykafka_broker.coordinator.classic_image import group_from
from pykafka_broker.coordinator.classic_join import ClassicJoins
from pykafka_broker.coordinator.classic_leave import ClassicLeaves
from pykafka_broker.coordinator.classic_rebalance import Rebalances
from pykafka_broker.coordinator.classic_sync import ClassicSyncs, sync_refusal
from pykafka_broker.coordinator.records import GroupMetadataKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.heartbeat import HeartbeatResponse
from pykafka_broker.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pykafka_broker.coordinator.deadlines import Deadlines
    from pykafka_broker.coordinator.effects import Caller, Record
    from pykafka_broker.coordinator.group import Decision, Group
    from pykafka_broker.coordinator.records import GroupMetadataValue, MemberMetadata
    from pykafka_broker.coordinator.settings import GroupSettings
    from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
    from pykafka_broker.protocol.messages.join_group import JoinGroupRequest
    from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest
    from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest


class ClassicGroups:
    """The classic protocol. The groups themselves are in the shard's table, beside those of the other kind."""

    def __init__(self, settings: GroupSettings, groups: dict[str, Group], deadlines: Deadlines) -> None:
        self._settings = settings
        self._groups = groups
        self._deadlines = deadlines
        self._live = False
        self.rebalances = Rebalances(settings, groups, deadlines)
        self.joins = ClassicJoins(settings, groups, self.rebalances)
        self._syncs = ClassicSyncs(self.rebalances)
        self._leaves = ClassicLeaves(self.rebalances)

    def find(self, group_id: str) -> ClassicGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    # Requests. Those for groups of the other kind do not come here.

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int, decision: Decision) -> None:
        self.joins.join(request, caller, now_ms, decision)

    def sync(self, request: SyncGroupRequest, caller: Caller, now_ms: int, decision: Decision) -> None:
        error = sync_refusal(request, caller.version)
        if error is None:
            self._syncs.sync(self.find(request.group_id), request, caller, now_ms, decision)
        else:
            decision.reply(caller.token, SyncGroupResponse(error_code=error))

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, now_ms: int, decision: Decision) -> None:
        if request.group_id:
            response = self._syncs.heartbeat(self.find(request.group_id), request, now_ms)
        else:
            response = HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        decision.reply(caller.token, response)

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int, decision: Decision) -> None:
        self._leaves.leave(self.find(request.group_id), request, caller, now_ms, decision)

    def committed(self, group: ClassicGroup, member_id: str, now_ms: int) -> None:
        """A member has committed offsets, so it is alive."""
        member = group.members.get(member_id)
        if member is not None:
            self.rebalances.touch(group, member, now_ms)

    # Records.

    def replay(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        self.joins.unborn.discard(key.group)
        group = self.find(key.group)
        if value is None:
            if group is not None:
                del self._groups[key.group]
        elif not self._live:
            self._groups[key.group] = group_from(key.group, value)
        elif group is None:
            self._adopt(group_from(key.group, value))
        elif group.state is State.COMPLETING and value.members and value.generation == group.generation:
            self._syncs.assigned(group, value)
        elif group.state is State.STABLE:
            for member in _newcomers(group, value.members):
                self.joins.replaced(group, member.member_id, member.group_instance_id or "")

    def _adopt(self, group: ClassicGroup) -> None:
        """A group of the other kind has become a classic one: its members have to agree on a generation."""
        self._groups[group.group_id] = group
        self._deadlines.set(("classic adopted", group.group_id), 0, partial(self._welcome, group))

    def _welcome(self, group: ClassicGroup, now_ms: int, decision: Decision) -> None:
        if self._groups.get(group.group_id) is group:
            self._watch(group, now_ms)
            if group.state is State.STABLE:
                self.rebalances.prepare(group, now_ms, decision)

    # Upkeep.

    def loaded(self, now_ms: int, decision: Decision) -> None:
        self._live = True
        for group in self._all():
            self._watch(group, now_ms)
            if len(group.members) > self._settings.group_max_size:
                # The limit was lowered since: who comes back last is turned away.
                self.rebalances.prepare(group, now_ms, decision)

    def unload(self, decision: Decision) -> None:
        for group in self._all():
            self.rebalances.refuse_all(group, ErrorCode.NOT_COORDINATOR, decision)

    def failed(self, records: Sequence[Record], error: ErrorCode, now_ms: int, decision: Decision) -> None:
        """These records were not written: what waited for them is undone."""
        self.joins.arriving.clear()
        for record in records:
            key, value = record.key, record.value
            group = self.find(key.group) if isinstance(key, GroupMetadataKey) else None
            if group is None or value is None:
                continue
            if group.group_id in self.joins.unborn:
                self.joins.unborn.remove(group.group_id)
                self.rebalances.refuse_all(group, error, decision)
                del self._groups[group.group_id]
            elif group.state is State.COMPLETING and value.members:
                self.rebalances.prepare(group, now_ms, decision)

    def _watch(self, group: ClassicGroup, now_ms: int) -> None:
        for member in group.members.values():
            self.rebalances.touch(group, member, now_ms)

    def _all(self) -> Iterator[ClassicGroup]:
        return (group for group in self._groups.values() if isinstance(group, ClassicGroup))


def _newcomers(group: ClassicGroup, members: Iterable[MemberMetadata]) -> list[MemberMetadata]:
    """Static members that the record knows by other ids than the group does."""
    return [
        member
        for member in members
        if member.member_id not in group.members and member.group_instance_id in group.static_members
    ]
