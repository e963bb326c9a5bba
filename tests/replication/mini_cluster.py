"""Brokers reduced to what replication needs, over real sockets, with a controller that a test plays."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from pykafka_broker.clock import SystemClock
from pykafka_broker.config import BrokerConfig
from pykafka_broker.handlers import ROUTES
from pykafka_broker.handlers.dispatch import Dispatcher
from pykafka_broker.handlers.fetch_sessions import FetchSessions
from pykafka_broker.log.log_config import LogConfig
from pykafka_broker.log.partition_log import PartitionLog
from pykafka_broker.network.listener import Limits, Listeners
from pykafka_broker.network.peer import Peer, PeerSettings
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.replication.fetchers import Fetchers
from pykafka_broker.replication.follower_ports import FollowerSettings
from pykafka_broker.replication.partition import Partition, ReplicationContext
from pykafka_broker.replication.replica_state import Accepted, Leadership, Proposal
from tests.log.samples import read_all

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from pykafka_broker.replication.throttle import Throttle

HOST = "127.0.0.1"
TOPIC = "topic"
MIB = 1 << 20
QUICK = PeerSettings(request_timeout_ms=5000, reconnect_backoff_ms=5, reconnect_backoff_max_ms=20)
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


async def eventually(holds: Callable[[], bool], what: str = "it") -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 -- many small states, none with an event of its own
            await asyncio.sleep(0.002)
    assert holds(), what


class Hosted:
    """The partition a node has, found as handlers find partitions."""

    def __init__(self) -> None:
        self.partition: Partition | None = None

    def leader(self, topic: str, index: int) -> Partition:
        partition = self.replica(topic, index)
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def replica(self, topic: str, index: int) -> Partition:
        partition = self.partition
        if partition is None or (topic, index) != (partition.topic, partition.index):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not partition.is_serving:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def leader_by_id(self, topic_id: UUID, index: int) -> Partition:
        self._check_id(topic_id)
        return self.leader(TOPIC, index)

    def replica_by_id(self, topic_id: UUID, index: int) -> Partition:
        self._check_id(topic_id)
        return self.replica(TOPIC, index)

    def _check_id(self, topic_id: UUID) -> None:
        if self.partition is None or self.partition.topic_id != topic_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)


class Node:
    """One broker: a log, a listener, fetchers, and one connection of a client to it."""

    def __init__(self, cluster: MiniCluster, number: int, path: Path, config: dict[str, Any]) -> None:
        self.id = number
        self.cluster = cluster
        self.hosted = Hosted()
        self.fetch_sessions = FetchSessions(10, random.Random(number))
        self.fetchers = Fetchers(self.connect, cluster.settings(number), cluster.clock)
        log = PartitionLog.open(
            path / f"node-{number}" / f"{TOPIC}-0",
            LogConfig(**config),
            cluster.clock,
            recovery_point=0,
            clean=False,
        )
        context = ReplicationContext(
            number,
            cluster.clock,
            cluster.lag_ms,
            cluster.alive.__contains__,
            cluster.propose,
            throttle=cluster.leading,
        )
        self.partition = Partition(TOPIC, 0, cluster.topic_id, log, -1, context)
        self.hosted.partition = self.partition
        properties = {"replica.selector.class": RACK_AWARE}
        services: Any = SimpleNamespace(
            broker_id=number,
            config=BrokerConfig.load(properties),
            clock=cluster.clock,
            metadata=cluster.metadata,
            partitions=self.hosted,
            fetch_sessions=self.fetch_sessions,
            served=ROUTES,
            writes_unseen=False,
            release=None,
        )
        self._dispatch = Dispatcher(services)
        self._listeners = Listeners(Limits())

    async def start(self) -> None:
        _, port = await self._listeners.listen("PLAINTEXT", HOST, 0)
        self.cluster.ports[self.id] = port
        await self._listeners.start(self._dispatch)
        self.client = Peer(HOST, port, "test", QUICK)

    async def stop(self) -> None:
        self.client.close()
        await self.fetchers.close()
        await self._listeners.close()

    def connect(self, broker_id: int) -> Peer:
        return Peer(HOST, self.cluster.ports[broker_id], f"broker-{self.id}", QUICK)

    # What clients do

    async def produce(self, records: bytes, acks: int = -1, timeout_ms: int = 3000) -> Any:
        data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=records)])
        request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])
        answer = await self.client.call(request, newest=12)
        return answer.responses[0].partition_responses[0]

    async def delete_records(self, before: int, timeout_ms: int = 5000) -> Any:
        wanted = DeleteRecordsTopic(
            name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=before)]
        )
        request = DeleteRecordsRequest(topics=[wanted], timeout_ms=timeout_ms)
        return (await self.client.call(request)).topics[0].partitions[0]

    async def consume(self, offset: int = 0, rack: str = "", version: int = 17, epoch: int = -1) -> Any:
        wanted = FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=MIB, current_leader_epoch=epoch
        )
        topic = FetchTopic(topic=TOPIC, topic_id=self.cluster.topic_id, partitions=[wanted])
        request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[topic], rack_id=rack)
        answer = await self.client.call(request, newest=version)
        return answer.responses[0].partitions[0]

    # What the test sees

    @property
    def end(self) -> int:
        return self.partition.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self.partition.high_watermark

    @property
    def batches(self) -> list[bytes]:
        return read_all(self.partition.log)


class MiniCluster:
    """The nodes, and the controller's mind: who leads, who is in sync. Its owner is the test."""

    def __init__(
        self,
        *,
        lag_ms: int = 30_000,
        wait_max_ms: int = 100,
        leading: Throttle | None = None,
        following: Throttle | None = None,
    ) -> None:
        """`leading` and `following` throttle all brokers together."""
        self.leading, self.following = leading, following
        self.clock = SystemClock()
        self.lag_ms = lag_ms
        self.topic_id = uuid4()
        self.ports: dict[int, int] = {}
        self.alive: set[int] = set()
        self.racks: dict[int, str] = {}
        self.nodes: dict[int, Node] = {}
        self.leader_id = -1
        self.leadership = Leadership(0, 0, (), ())
        self.refuse: ErrorCode | None = None
        self.proposals: list[Proposal] = []
        self._wait_max_ms = wait_max_ms
        brokers: Any = _Brokers(self.racks)
        self.metadata: Any = SimpleNamespace(view=SimpleNamespace(brokers=brokers))

    def settings(self, number: int) -> FollowerSettings:
        return FollowerSettings(number, wait_max_ms=self._wait_max_ms, backoff_ms=20, throttle=self.following)

    @property
    def leader(self) -> Node:
        return self.nodes[self.leader_id]

    @property
    def isr(self) -> tuple[int, ...]:
        return self.leadership.isr

    def others(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.id != self.leader_id]

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        """The controller's answer comes a little later."""
        self.proposals.append(proposal)
        asyncio.get_running_loop().call_soon(self._decide, partition, proposal)

    def _decide(self, partition: Partition, proposal: Proposal) -> None:
        now = self.leadership
        if self.refuse is not None:
            partition.isr_answered(proposal, self.refuse)
        elif (proposal.leader_epoch, proposal.partition_epoch) != (now.leader_epoch, now.partition_epoch):
            partition.isr_answered(proposal, ErrorCode.INVALID_UPDATE_VERSION)
        else:
            epoch = now.partition_epoch + 1
            self.leadership = replace(now, isr=proposal.isr, partition_epoch=epoch)
            partition.isr_answered(proposal, Accepted(proposal.isr, now.leader_epoch, epoch))

    def elect(
        self, leader_id: int, *, isr: tuple[int, ...] | None = None, tell: set[int] | None = None
    ) -> None:
        """A new leader epoch. Only those in `tell` hear of it, all who live without."""
        now = self.leadership
        self.leader_id = leader_id
        self.leadership = replace(
            now,
            leader_epoch=now.leader_epoch + 1,
            partition_epoch=now.partition_epoch + 1,
            replicas=tuple(self.nodes),
            isr=now.isr if isr is None else isr,
        )
        for number in sorted(self.alive if tell is None else tell):
            self.tell(self.nodes[number])

    def tell(self, node: Node) -> None:
        """LeaderAndIsr, as a broker takes it."""
        now = self.leadership
        if node.id == self.leader_id:
            node.fetchers.unfollow(node.partition)
            node.partition.become_leader(now)
        elif node.partition.become_follower(self.leader_id, now.leader_epoch, now.partition_epoch):
            node.fetchers.follow(node.partition)

    def shrink(self, isr: tuple[int, ...]) -> None:
        """The controller takes somebody out of the ISR by itself, and tells the leader."""
        now = self.leadership
        self.leadership = replace(now, isr=isr, partition_epoch=now.partition_epoch + 1)
        self.tell(self.leader)

    def cut_off(self, node: Node) -> None:
        """It hears of nothing and fetches nothing, but thinks what it thought."""
        self.alive.discard(node.id)
        node.fetchers.unfollow(node.partition)

    def come_back(self, node: Node) -> None:
        self.alive.add(node.id)
        self.tell(node)
        if node.id != self.leader_id:
            node.fetchers.follow(node.partition)


class _Brokers(dict[int, Any]):
    def __init__(self, racks: dict[int, str]) -> None:
        super().__init__()
        self._racks = racks

    def items(self) -> Any:
        return [(number, SimpleNamespace(rack=rack)) for number, rack in self._racks.items()]


@asynccontextmanager
async def mini_cluster(path: Path, brokers: int = 3, **options: Any) -> AsyncIterator[MiniCluster]:
    """Broker 1 leads, all are in sync and follow."""
    config = options.pop("config", {})
    cluster = MiniCluster(**options)
    for number in range(1, brokers + 1):
        cluster.nodes[number] = Node(cluster, number, path, config)
        cluster.alive.add(number)
    for node in cluster.nodes.values():
        await node.start()
    try:
        cluster.elect(1, isr=tuple(cluster.nodes))
        yield cluster
    finally:
        for node in cluster.nodes.values():
            await node.stop()
        for node in cluster.nodes.values():
            node.partition.log.close()
