"""A shard with a log of its own, a clock and clients: everything around a coordinator that a test needs.

What the shard decides is appended, encoded and decoded on the way, and replayed, as the broker does it. Every token
must get one reply at most, which is checked here for all tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from pykafka_broker.coordinator.consumer_group_gathering import QUIET_MS
from pykafka_broker.coordinator.effects import Caller, Effects, Record
from pykafka_broker.coordinator.records import decode_record, encode_record
from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.coordinator.shard import GroupShard
from pykafka_broker.protocol.codec import encode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NAMESPACE = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
START_MS = 1_000_000
SUBSCRIPTION_TO_T = bytes.fromhex("0000 00000001 000174 ffffffff")


@dataclass
class KnownTopics:
    """Topics by name, with their numbers of partitions."""

    counts: dict[str, int] = field(default_factory=lambda: {"t": 3, "u": 1})

    def partition_count(self, name: str) -> int | None:
        return self.counts.get(name)

    def topic_id(self, name: str) -> UUID | None:
        return uuid5(NAMESPACE, name) if name in self.counts else None

    def name(self, topic_id: UUID) -> str | None:
        return next((name for name in self.counts if self.topic_id(name) == topic_id), None)

    def names(self) -> Iterable[str]:
        return self.counts

    def racks(self, name: str) -> list[frozenset[str]] | None:
        return [frozenset() for _ in range(self.counts[name])] if name in self.counts else None


class Harness:
    def __init__(self, settings: GroupSettings | None = None, topics: KnownTopics | None = None) -> None:
        self.settings = settings or GroupSettings(group_initial_rebalance_delay_ms=0)
        self.topics = topics or KnownTopics()
        self.now_ms = START_MS
        self.log: list[tuple[bytes, bytes | None]] = []
        self.replies: dict[int, Any] = {}
        self.versions: dict[int, int] = {}
        self.refuse_appends: ErrorCode | None = None
        self.shard = GroupShard(self.settings, self.topics)
        self.apply(self.shard.loaded(self.now_ms))

    # The runtime.

    def apply(self, effects: Effects) -> None:
        if effects.records and self.refuse_appends is not None:
            self.apply(self.shard.failed(effects.records, effects.replies, self.refuse_appends, self.now_ms))
            return
        for record in effects.records:
            key, value = encode_record(record)
            self.log.append((key, value))
            decoded = decode_record(key, value)
            assert decoded is not None
            self.shard.replay(decoded)
        for reply in effects.replies:
            assert reply.token not in self.replies, "a token is answered once"
            encode(reply.response, self.versions[reply.token])
            self.replies[reply.token] = reply.response

    def send(self, request: Any, version: int, client_id: str = "client", host: str = "/127.0.0.1") -> int:
        """Hands a request over. Gives its token: the reply may come at once or later."""
        token = len(self.versions)
        self.versions[token] = version
        self.apply(self.shard.handle(request, Caller(token, version, client_id, host), self.now_ms))
        return token

    def call(self, request: Any, version: int) -> Any:
        """Sends it and gives the reply, which may take the moment in which members that need a target are gathered."""
        token = self.send(request, version)
        if self.waits(token):
            self.pass_time(QUIET_MS)
        return self.replies[token]

    def pass_time(self, ms: int = 0) -> None:
        """Lets time go by, with every deadline in it met in time."""
        end = self.now_ms + ms
        while (deadline := self.shard.next_deadline()) is not None and deadline <= end:
            self.now_ms = max(self.now_ms, deadline)
            for decide in self.shard.due(self.now_ms):
                self.apply(decide())
        self.now_ms = end

    def reloaded(self) -> Harness:
        """Another coordinator with the same log."""
        other = Harness(self.settings, self.topics)
        other.shard = GroupShard(self.settings, self.topics)
        other.now_ms, other.log = self.now_ms, list(self.log)
        for key, value in self.log:
            record = decode_record(key, value)
            assert record is not None
            other.shard.replay(record)
        other.apply(other.shard.loaded(other.now_ms))
        return other

    def records(self) -> list[Record]:
        return [record for record in (decode_record(*pair) for pair in self.log) if record is not None]

    def waits(self, token: int) -> bool:
        return token not in self.replies

    # What members send.

    def join(
        self,
        member_id: str = "",
        *,
        version: int = 9,
        group: str = "g",
        instance: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        client_id: str = "client",
    ) -> int:
        protocols = {"range": SUBSCRIPTION_TO_T} if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols.items()],
        )
        return self.send(request, version, client_id)

    def new_member(self, **options: Any) -> tuple[str, int]:
        """Asks for an id and joins with it. Gives the id and the token of the join."""
        required = self.replies[self.join(**options)]
        assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return required.member_id, self.join(required.member_id, **options)

    def sync(
        self,
        member_id: str,
        generation: int,
        parts: Mapping[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        version: int = 5,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
    ) -> int:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=who, assignment=part)
                for who, part in (parts or {}).items()
            ],
        )
        return self.send(request, version)

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return ErrorCode(self.call(request, 4).error_code)

    def leave(self, *members: str | MemberIdentity, group: str = "g", version: int = 5) -> Any:
        identities = [MemberIdentity(member_id=who) if isinstance(who, str) else who for who in members]
        request = LeaveGroupRequest(group_id=group, members=identities)
        if version < 3:
            request = LeaveGroupRequest(group_id=group, member_id=identities[0].member_id)
        return self.call(request, version)

    def commit(
        self,
        offsets: Mapping[tuple[str, int], int],
        *,
        member_id: str = "",
        generation: int = -1,
        group: str = "g",
        instance: str | None = None,
        version: int = 9,
        metadata: str | None = "",
        epoch: int = -1,
        retention_ms: int = -1,
        timestamp: int = -1,
    ) -> dict[tuple[str, int], ErrorCode]:
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=self.topics.topic_id(topic) or UUID(int=9),
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_leader_epoch=epoch,
                            commit_timestamp=timestamp,
                            committed_metadata=metadata,
                        )
                    ],
                )
                for (topic, partition), offset in offsets.items()
            ],
        )
        response = self.call(request, version)
        places = list(offsets)
        results = [partition.error_code for topic in response.topics for partition in topic.partitions]
        return {place: ErrorCode(code) for place, code in zip(places, results, strict=True)}

    def offsets(self, group: str = "g") -> dict[tuple[str, int], int]:
        """Everything committed."""
        answer = self.shard.fetch_offsets(OffsetFetchRequestGroup(group_id=group, topics=None), 9)
        return {(t.name, p.partition_index): p.committed_offset for t in answer.topics for p in t.partitions}

    def offset(self, topic: str, partition: int, group: str = "g") -> Any:
        wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        answer = self.shard.fetch_offsets(OffsetFetchRequestGroup(group_id=group, topics=wanted), 9)
        return answer.topics[0].partitions[0]

    def describe(self, group: str = "g", version: int = 6) -> Any:
        return self.shard.describe([group], version)[0]

    def state(self, group: str = "g") -> str:
        return str(self.describe(group).group_state)

    # Stories in short.

    def stable_group(self, size: int = 1, **options: Any) -> list[str]:
        """A stable group of so many members, the leader first; each member's part is its own id."""
        joins = dict(self.new_member(**options) for _ in range(size))
        self.pass_time(self.settings.group_initial_rebalance_delay_ms)
        answers = [self.replies[token] for token in joins.values()]
        leader, generation = answers[0].leader, answers[0].generation_id
        group = options.get("group", "g")
        for member in joins:
            if member != leader:
                self.sync(member, generation, group=group)
        self.sync(leader, generation, {member: member.encode() for member in joins}, group=group)
        assert self.state(group) == "Stable"
        return [leader, *(member for member in joins if member != leader)]

    def generation(self, group: str = "g") -> int:
        """As the last record of the group says."""
        values = [r.value for r in self.records() if getattr(r.key, "group", None) == group and r.value]
        return max(getattr(value, "generation", 0) for value in values)
