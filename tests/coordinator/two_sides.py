"""Apache Kafka and a shard of ours behind one interface, to be asked the same things."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pykafka_broker.coordinator.offsets_fetch import groups_of, response_of
from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.protocol.api import APIS, ApiKey
from pykafka_broker.protocol.codec import decode, encode
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka_broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.client import Client

from .harness import SUBSCRIPTION_TO_T, Harness, KnownTopics

if TYPE_CHECKING:
    from collections.abc import Awaitable

DELAY_MS = 300
MAX_SIZE = 3
KEYS = {api.request: ApiKey(key) for key, api in APIS.items()}
GENERATED_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?=')")
NOWHERE = UUID(int=77)


class Kafka:
    """The one side: a broker of Apache Kafka. Each request has a connection of its own, so that it may wait."""

    def __init__(self, bootstrap: str, topic_id: UUID) -> None:
        self._bootstrap = bootstrap
        self.topic_id = topic_id

    async def send(self, request: Any, version: int) -> Awaitable[Any]:
        key = KEYS[type(request)]
        client = await Client.connect(self._bootstrap)
        await client.send(key, version, request)

        async def answer() -> Any:
            try:
                return await asyncio.wait_for(client.receive(key, version), 30)
            finally:
                await client.close()

        return asyncio.ensure_future(answer())


class Ours:
    """The other side: a shard, whose time passes when an answer is waited for."""

    def __init__(self) -> None:
        settings = GroupSettings(group_initial_rebalance_delay_ms=DELAY_MS, group_max_size=MAX_SIZE)
        self._harness = Harness(settings, KnownTopics({"t": 2}))
        self.topic_id = self._harness.topics.topic_id("t") or NOWHERE

    async def send(self, request: Any, version: int) -> Awaitable[Any]:
        request = _over_the_wire(request, version)
        shard = self._harness.shard
        if isinstance(request, OffsetFetchRequest):
            parts = [shard.fetch_offsets(group, version) for group in groups_of(request, version)]
            return self._answer(response_of(parts, request, version), version)
        if isinstance(request, DescribeGroupsRequest):
            return self._answer(
                DescribeGroupsResponse(groups=shard.describe(request.groups, version)), version
            )
        return self._wait(self._harness.send(request, version, client_id="test"), version)

    async def _wait(self, token: int, version: int) -> Any:
        if self._harness.waits(token):
            self._harness.pass_time(3 * DELAY_MS)
        return await self._answer(self._harness.replies[token], version)

    async def _answer(self, response: Any, version: int) -> Any:
        return _over_the_wire(response, version)


def _over_the_wire(message: Any, version: int) -> Any:
    """Without what the version cannot say."""
    data = b"".join(bytes(piece) for piece in encode(message, version))
    return decode(type(message), version, memoryview(data))


class Side:
    """A side, with what it answered so far, and requests in short. Every group of a story is named after it."""

    def __init__(self, side: Kafka | Ours, story: str) -> None:
        self._side = side
        self.group = story
        self.answers: list[str] = []

    async def send(self, request: Any, version: int) -> Awaitable[Any]:
        return await self._side.send(request, version)

    async def ask(self, request: Any, version: int) -> Any:
        return await self.hear(await self.send(request, version))

    async def hear(self, answer: Awaitable[Any]) -> Any:
        response = await answer
        self.answers.append(GENERATED_ID.sub("ID", repr(response)).replace(repr(self._side.topic_id), "T"))
        return response

    def join(self, member: str = "", protocols: Any = None, **options: Any) -> JoinGroupRequest:
        protocols = {"range": SUBSCRIPTION_TO_T} if protocols is None else protocols
        fields = {
            "group_id": self.group,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 15_000,
            "protocol_type": "consumer",
        }
        listed = [JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols.items()]
        return JoinGroupRequest(**{**fields, **options}, member_id=member, protocols=listed)  # type: ignore[arg-type]

    def sync(self, member: str, generation: int, *receivers: str, **options: Any) -> SyncGroupRequest:
        fields = {"group_id": self.group, "protocol_type": "consumer", "protocol_name": "range"}
        parts = [SyncGroupRequestAssignment(member_id=who, assignment=b"part") for who in receivers]
        return SyncGroupRequest(
            **{**fields, **options},
            member_id=member,
            generation_id=generation,
            assignments=parts,
        )

    def heartbeat(self, member: str, generation: int, instance: str | None = None) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.group, member_id=member, generation_id=generation, group_instance_id=instance
        )

    def leave(self, *members: MemberIdentity) -> LeaveGroupRequest:
        return LeaveGroupRequest(group_id=self.group, members=list(members))

    def describe(self) -> DescribeGroupsRequest:
        return DescribeGroupsRequest(groups=[self.group])

    def commit(
        self,
        member: str = "",
        generation: int = -1,
        topic: str = "t",
        partition: int = 0,
        metadata: str | None = "",
        group: str | None = None,
    ) -> OffsetCommitRequest:
        part = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=5, committed_metadata=metadata
        )
        topic_id = self._side.topic_id if topic == "t" else NOWHERE
        return OffsetCommitRequest(
            group_id=self.group if group is None else group,
            member_id=member,
            generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[part])],
        )

    def fetch(self, *places: tuple[str, int], group: str | None = None) -> OffsetFetchRequest:
        """The offsets of these places; all if there are none."""
        group = self.group if group is None else group
        old = [OffsetFetchRequestTopic(name=t, partition_indexes=[p]) for t, p in places]
        ids = {"t": self._side.topic_id}
        new = [
            OffsetFetchRequestTopics(name=t, topic_id=ids.get(t, NOWHERE), partition_indexes=[p])
            for t, p in places
        ]
        asked = OffsetFetchRequestGroup(group_id=group, topics=new or None)
        return OffsetFetchRequest(group_id=group, topics=old or None, groups=[asked])

    def delete(self, topic: str, partition: int, group: str | None = None) -> OffsetDeleteRequest:
        parts = [OffsetDeleteRequestPartition(partition_index=partition)]
        group = self.group if group is None else group
        return OffsetDeleteRequest(
            group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=parts)]
        )

    async def stable(self, size: int = 1, **options: Any) -> list[str]:
        """The members of a group in its first generation, the leader first."""
        ids = [(await self.ask(self.join(**options), 9)).member_id for _ in range(size)]
        waiting = [await self.send(self.join(member, **options), 9) for member in ids]
        # Not heard, as who leads depends on which request came first.
        joined = [await answer for answer in waiting]
        leader = joined[0].leader
        others = [member for member in ids if member != leader]
        kind = options.get("protocol_type", "consumer")
        for member in (leader, *others):
            receivers = ids if member == leader else ()
            await self.ask(self.sync(member, 1, *receivers, protocol_type=kind), 5)
        return [leader, *others]
