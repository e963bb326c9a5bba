"""All consumer groups of a shard: their requests, their records, their upkeep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.classic_rebalance import refused_join
from pykafka_broker.coordinator.consumer_group import ConsumerGroup
from pykafka_broker.coordinator.consumer_group_classic import ClassicMembers
from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
from pykafka_broker.coordinator.consumer_group_describe import describe_consumer
from pykafka_broker.coordinator.consumer_group_downgrade import Downgrade
from pykafka_broker.coordinator.consumer_group_fence import Fence
from pykafka_broker.coordinator.consumer_group_gathering import Gathering
from pykafka_broker.coordinator.consumer_group_heartbeat import ConsumerHeartbeats
from pykafka_broker.coordinator.consumer_group_progress import Progress
from pykafka_broker.coordinator.consumer_group_replay import is_consumer_group_record, replay
from pykafka_broker.coordinator.consumer_group_upgrade import Upgrade
from pykafka_broker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pykafka_broker.coordinator.classic_groups import ClassicGroups
    from pykafka_broker.coordinator.deadlines import Deadlines
    from pykafka_broker.coordinator.effects import Caller, Record
    from pykafka_broker.coordinator.group import Decision, Group
    from pykafka_broker.coordinator.settings import GroupSettings
    from pykafka_broker.coordinator.topics import Topics
    from pykafka_broker.protocol.messages.consumer_group_describe import DescribedConsumerGroup
    from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
    from pykafka_broker.protocol.messages.join_group import JoinGroupRequest
    from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest
    from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest


class ConsumerGroups:
    """The consumer protocol, and the classic one where the group is a consumer group; requests for classic groups are
    passed on. The groups themselves are in the shard's table, beside those of the other kind."""

    def __init__(
        self,
        settings: GroupSettings,
        topics: Topics,
        groups: dict[str, Group],
        deadlines: Deadlines,
        classic: ClassicGroups,
    ) -> None:
        self._groups = groups
        self._classic = classic
        self._context = ConsumerContext(settings, topics, groups, deadlines, classic.rebalances)
        downgrade = Downgrade(self._context)
        fence = Fence(self._context, downgrade)
        self._progress = Progress(self._context, fence)
        upgrade = Upgrade(self._context, self._progress)
        self._gathering = Gathering(self._context, self._progress)
        self._heartbeats = ConsumerHeartbeats(self._context, self._progress, self._gathering, fence, upgrade)
        self._classics = ClassicMembers(self._context, self._progress, fence, downgrade)
        self._emptied: dict[str, ConsumerGroup] = {}
        """Empty groups that are about to become classic ones, until that is written."""

    def find(self, group_id: str) -> ConsumerGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    # Requests.

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int, decision: Decision
    ) -> None:
        self._heartbeats.heartbeat(request, caller, now_ms, decision)

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int, decision: Decision) -> None:
        group = self.find(request.group_id)
        if group is None:
            self._classic.join(request, caller, now_ms, decision)
        elif not group.is_empty:
            self._classics.join(group, request, caller, now_ms, decision)
        elif request.member_id:
            response = refused_join(caller, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            decision.reply(caller.token, response)
        else:
            self._emptied[group.group_id] = group
            del self._groups[group.group_id]
            decision.records += group.tombstones()
            self._classic.join(request, caller, now_ms, decision)
            if group.group_id not in self._groups:  # it was refused
                self._groups[group.group_id] = self._emptied.pop(group.group_id)
                decision.records.clear()

    def sync(self, request: SyncGroupRequest, caller: Caller, now_ms: int, decision: Decision) -> None:
        group = self.find(request.group_id)
        if group is None:
            self._classic.sync(request, caller, now_ms, decision)
        else:
            self._classics.sync(group, request, caller, now_ms, decision)

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, now_ms: int, decision: Decision) -> None:
        group = self.find(request.group_id)
        if group is None:
            self._classic.heartbeat(request, caller, now_ms, decision)
        else:
            decision.reply(caller.token, self._classics.heartbeat(group, request, now_ms))

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int, decision: Decision) -> None:
        group = self.find(request.group_id)
        if group is None:
            self._classic.leave(request, caller, now_ms, decision)
        else:
            self._classics.leave(group, request, caller, now_ms, decision)

    def describe(self, group_ids: Iterable[str]) -> list[DescribedConsumerGroup]:
        return [
            describe_consumer(self._context, group_id, self._groups.get(group_id)) for group_id in group_ids
        ]

    # Records.

    def replay(self, record: Record) -> None:
        """Records of other kinds are no concern of ours."""
        if is_consumer_group_record(record):
            replay(self._groups, record)
            self._emptied.pop(record.key.group_id, None)

    # Upkeep.

    def loaded(self, now_ms: int) -> None:
        versions = [resolved.version for group in self._all() for resolved in group.resolved.values()]
        # Topics may have come while nobody was here: what was matched then is old.
        self._context.topics_version = max(versions, default=0) + 1
        for group in self._all():
            self._progress.loaded(group, now_ms)

    def topics_changed(self) -> None:
        """Topics were made, grew or are gone: groups look at theirs with the next heartbeat of a member."""
        self._context.topics_changed()
        for group in self._all():
            group.checked_at_epoch = None

    def unload(self, decision: Decision) -> None:
        """Another broker takes over: whoever waits here is sent there."""
        self._gathering.unload(decision)

    def failed(self, records: Sequence[Record], error: ErrorCode, decision: Decision) -> None:
        """These records were not written: what was done ahead of them is undone."""
        self._gathering.failed(records, error, decision)
        for record in records:
            if is_consumer_group_record(record):
                emptied = self._emptied.pop(record.key.group_id, None)
                if emptied is not None:
                    self._groups.setdefault(emptied.group_id, emptied)

    def _all(self) -> Iterator[ConsumerGroup]:
        return (group for group in self._groups.values() if isinstance(group, ConsumerGroup))
