"""The groups and offsets of one partition of the offsets topic: a pure state machine.

Requests and the passing of time go in, effects come out. Records change what is kept, and only when they are replayed,
which is how it is loaded too; what is soft (who waits, whose time runs) changes at once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka_broker.coordinator.classic_group import ClassicGroup, State
from pykafka_broker.coordinator.classic_groups import ClassicGroups
from pykafka_broker.coordinator.consumer_groups import ConsumerGroups
from pykafka_broker.coordinator.deadlines import Deadlines
from pykafka_broker.coordinator.failures import failed_replies, told
from pykafka_broker.coordinator.group import Decision
from pykafka_broker.coordinator.listing import describe_classic, list_groups
from pykafka_broker.coordinator.offsets import NO_PRODUCER, Offsets
from pykafka_broker.coordinator.offsets_commit import OffsetCommits
from pykafka_broker.coordinator.offsets_expiry import OffsetExpiry
from pykafka_broker.coordinator.offsets_fetch import OffsetFetches
from pykafka_broker.coordinator.records import CommittedOffsets, GroupMetadataKey, OffsetCommitKey
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest
from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest
from pykafka_broker.protocol.messages.offset_commit import OffsetCommitRequest
from pykafka_broker.protocol.messages.offset_delete import OffsetDeleteRequest
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pykafka_broker.coordinator.effects import Caller, Effects, Record, Reply
    from pykafka_broker.coordinator.group import Group
    from pykafka_broker.coordinator.settings import GroupSettings
    from pykafka_broker.coordinator.topics import Topics
    from pykafka_broker.protocol.messages.consumer_group_describe import DescribedConsumerGroup
    from pykafka_broker.protocol.messages.describe_groups import DescribedGroup
    from pykafka_broker.protocol.messages.list_groups import ListedGroup
    from pykafka_broker.protocol.messages.offset_fetch import (
        OffsetFetchRequestGroup,
        OffsetFetchResponseGroup,
    )

    Handler = Callable[[Any, Caller, int, Decision], None]


class GroupShard:
    """Owner of the groups, offsets and deadlines of one partition."""

    def __init__(self, settings: GroupSettings, topics: Topics) -> None:
        self._groups: dict[str, Group] = {}
        self._offsets = Offsets()
        self._deadlines = Deadlines()
        self._classic = ClassicGroups(settings, self._groups, self._deadlines)
        self._consumer = ConsumerGroups(settings, topics, self._groups, self._deadlines, self._classic)
        self._commits = OffsetCommits(settings, topics, self._offsets)
        self._fetches = OffsetFetches(topics, self._offsets)
        self._expiry = OffsetExpiry(settings, self._groups, self._offsets, self._deadlines)
        self._handlers: dict[type[Any], Handler] = {
            ConsumerGroupHeartbeatRequest: self._consumer.consumer_heartbeat,
            JoinGroupRequest: self._consumer.join,
            SyncGroupRequest: self._consumer.sync,
            HeartbeatRequest: self._consumer.heartbeat,
            LeaveGroupRequest: self._consumer.leave,
            OffsetCommitRequest: self._commit,
            OffsetDeleteRequest: self._delete_offsets,
            DeleteGroupsRequest: self._delete_groups,
        }

    # Events.

    def handle(self, request: Any, caller: Caller, now_ms: int) -> Effects:
        """Decides on a request. Its reply is among the effects, or among those of a later event."""
        decision = Decision()
        self._handlers[type(request)](request, caller, now_ms, decision)
        return decision.effects()

    def looks_at_offsets(self, request: Any) -> bool:
        """Whether what is decided on a request depends on the offsets that are committed before it."""
        return type(request) is not OffsetCommitRequest

    def due(self, now_ms: int) -> list[Callable[[], Effects]]:
        """Everything whose time has come: each to be decided when what was decided before it is replayed."""
        return [partial(_decided, action) for action in self._deadlines.due(now_ms)]

    def next_deadline(self) -> int | None:
        """When `due` is to be asked at the latest. It may turn out that there was nothing to do."""
        return self._deadlines.next()

    def clock_set(self, by_ms: int) -> None:
        """The clock was set forward by so much, or back: what lasts for a time lasts as long as it would have."""
        self._deadlines.shift(by_ms)

    def loaded(self, now_ms: int) -> Effects:
        """All records have been replayed: from now on time runs."""
        decision = Decision()
        self._classic.loaded(now_ms, decision)
        self._consumer.loaded(now_ms)
        self._expiry.start(now_ms)
        return decision.effects()

    def unload(self) -> Effects:
        """Another broker takes over: whoever waits here is sent there."""
        decision = Decision()
        self._classic.unload(decision)
        self._consumer.unload(decision)
        return decision.effects()

    def failed(
        self, records: Sequence[Record], replies: Sequence[Reply], error: ErrorCode, now_ms: int
    ) -> Effects:
        """The records of an effect could not be written: undoes what was only waiting for them and answers."""
        decision = Decision()
        code = told(error)
        decision.replies += failed_replies(replies, code)
        self._classic.failed(records, code, now_ms, decision)
        self._consumer.failed(records, code, decision)
        return decision.effects()

    def topic_deleted(self, names: Iterable[str]) -> Effects:
        """These topics are gone, and with them what was committed for them."""
        decision = Decision(is_divisible=True)
        decision.records += self._offsets.tombstones_of_topics(frozenset(names))
        return decision.effects()

    def topics_changed(self) -> None:
        """Topics were made, grew or are gone: members of consumer groups hear of it with their next heartbeats."""
        self._consumer.topics_changed()

    # Records.

    def replay(self, record: Record, producer_id: int = NO_PRODUCER) -> None:
        """Takes over what is written; with a producer id it is part of a transaction, and waits for its end."""
        key, value = record.key, record.value
        if type(key) is OffsetCommitKey:
            if value is None:
                self._offsets.remove(key)
                return
            self._know(key.group)
            self._offsets.put(key, value, producer_id)
        elif type(key) is GroupMetadataKey:
            self._classic.replay(key, value)
        else:
            self._consumer.replay(record)

    def replay_all(self, records: Sequence[Record]) -> None:
        """As `replay` for each of what this shard decided on."""
        if type(records) is CommittedOffsets:
            self._know(records.group)
            self._offsets.put_all(records)
            return
        for record in records:
            self.replay(record)

    def _know(self, group_id: str) -> None:
        """A group exists by its offsets alone."""
        if group_id not in self._groups:
            self._groups[group_id] = ClassicGroup(group_id)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """A marker in the log: the offsets of the producer's transaction count now, or never."""
        self._offsets.end_transaction(producer_id, committed=committed)

    # Questions.

    def describe(self, group_ids: Iterable[str], version: int) -> list[DescribedGroup]:
        """Classic groups in the form of DescribeGroups."""
        return [describe_classic(group_id, self._groups.get(group_id), version) for group_id in group_ids]

    def describe_consumer(self, group_ids: Iterable[str]) -> list[DescribedConsumerGroup]:
        """Consumer groups in the form of ConsumerGroupDescribe."""
        return self._consumer.describe(group_ids)

    def list(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
        """The groups in one of these states and of one of these types; none given means any."""
        return list_groups(self._groups.values(), states, types)

    def fetch_offsets(
        self, request: OffsetFetchRequestGroup, version: int, *, require_stable: bool = False
    ) -> OffsetFetchResponseGroup:
        """The committed offsets of one group. See `offsets_fetch` for how versions put the question."""
        group = self._groups.get(request.group_id)
        return self._fetches.fetch(group, request, version, require_stable=require_stable)

    # Requests that concern groups of any kind.

    def _commit(self, request: OffsetCommitRequest, caller: Caller, now_ms: int, decision: Decision) -> None:
        group = self._groups.get(request.group_id)
        accepted = self._commits.commit(group, request, caller, now_ms, decision)
        # The first commit of all makes the group, which the next one will look for.
        decision.can_wait = group is not None
        if accepted and isinstance(group, ClassicGroup) and group.state is not State.EMPTY:
            self._classic.committed(group, request.member_id, now_ms)

    def _delete_offsets(
        self, request: OffsetDeleteRequest, caller: Caller, now_ms: int, decision: Decision
    ) -> None:
        del now_ms
        self._commits.delete(self._groups.get(request.group_id), request, caller, decision)

    def _delete_groups(
        self, request: DeleteGroupsRequest, caller: Caller, now_ms: int, decision: Decision
    ) -> None:
        del now_ms
        results = []
        for group_id in dict.fromkeys(request.groups_names):
            group = self._groups.get(group_id)
            try:
                if group is None:
                    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
                group.check_delete()
            except KafkaError as error:
                results.append(DeletableGroupResult(group_id=group_id, error_code=error.code))
                continue
            decision.records += self._offsets.tombstones(group_id)
            decision.records += group.tombstones()
            results.append(DeletableGroupResult(group_id=group_id))
        decision.reply(caller.token, DeleteGroupsResponse(results=results))


def _decided(action: Callable[[Decision], None]) -> Effects:
    decision = Decision()
    action(decision)
    return decision.effects()
