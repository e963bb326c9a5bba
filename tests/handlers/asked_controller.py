"""A controller on a tree in memory, asked over the wire format as a broker or a tool asks it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from pykafka_broker.clock import ManualClock
from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.controller.loop import Controller
from pykafka_broker.cluster.controller.state import ControllerSettings
from pykafka_broker.cluster.producer_ids import ProducerIds
from pykafka_broker.cluster.store import Create
from pykafka_broker.cluster.view import ClusterView
from pykafka_broker.cluster.znodes import TopicAssignment
from pykafka_broker.handlers import ROUTES
from pykafka_broker.handlers.cluster_routes import CLUSTER_ROUTES
from pykafka_broker.handlers.dispatch import Dispatcher
from pykafka_broker.network.connection import Client as Peer
from pykafka_broker.protocol.api import APIS, RequestHeader, frame_request, read_response_header
from pykafka_broker.protocol.codec import decode
from pykafka_broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from pykafka_broker.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from pykafka_broker.protocol.messages.update_metadata import UpdateMetadataResponse
from tests.cluster.controlled import make_tree, registration
from tests.cluster.memory_store import MemoryTree


async def eventually(condition):
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 -- any condition will do
            await asyncio.sleep(0.001)


class Obedient:
    """A connection to a broker that does what it is told."""

    async def call(self, request, **_):
        match request:
            case LeaderAndIsrRequest():
                return LeaderAndIsrResponse()
            case StopReplicaRequest():
                return StopReplicaResponse()
        return UpdateMetadataResponse()

    def close(self):
        pass


class Metadata:
    """What this broker has learned; held back while `deaf`."""

    def __init__(self):
        self.view = ClusterView("")
        self.deaf = False
        self.listeners = []

    def learn(self, state):
        if not self.deaf:
            old, self.view = self.view, state.view
            for listener in tuple(self.listeners):
                listener(old, self.view)

    def on_change(self, listener):
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)


class Cluster:
    """Three registered brokers, of which one is asked; it is the controller once it `runs`."""

    def __init__(self):
        self.tree = MemoryTree()
        self.sessions = {}
        self.metadata = Metadata()

    async def begin(self):
        await make_tree(self.tree.open())
        for broker in (1, 2, 3):
            session = self.sessions[broker] = self.tree.open()
            await session.create(znodes.broker_id_path(broker), registration(broker), ephemeral=True)
        settings = ControllerSettings(1, auto_leader_rebalance_enable=False)
        self.controller = Controller(
            self.sessions[1], ManualClock(), settings, lambda _: Obedient(), self.metadata.learn
        )
        office = SimpleNamespace(controller=self.controller)
        self.dispatch = Dispatcher(
            SimpleNamespace(
                served=ROUTES + CLUSTER_ROUTES,
                cluster=office,
                in_cluster=office,
                metadata=self.metadata,
                producer_ids=ProducerIds(self.sessions[1], 1),
            )
        )

    async def run(self):
        await self.controller.start()
        await eventually(lambda: self.controller.is_active and self.view.brokers)

    @property
    def view(self):
        return self.controller.state.view

    def epoch(self, broker):
        return self.view.brokers[broker].epoch

    def partition(self, topic="t", index=0):
        return self.view.partition(topic, index)

    async def create_topic(self, name, *replicas):
        assignment = TopicAssignment(znodes.random_uuid(), {n: tuple(r) for n, r in enumerate(replicas)})
        config = Create(znodes.topic_config_path(name), znodes.encode_config({}))
        await self.tree.stores[0].multi([config, Create(znodes.topic_path(name), assignment.encode())])
        await eventually(lambda: (p := self.partition(name, len(replicas) - 1)) is not None and p.isr)

    async def kill(self, broker):
        self.tree.end_session(self.sessions[broker].session_id)
        await eventually(lambda: broker not in self.view.brokers)

    async def ask(self, key, version, request):
        frame = b"".join(frame_request(RequestHeader(key, version, 7, "test"), request))
        reply = await self.dispatch(Peer("127.0.0.1", 1, "PLAINTEXT"), memoryview(bytearray(frame[4:])))
        answer = memoryview(b"".join(reply))[4:]
        correlation, position = read_response_header(key, version, answer)
        assert correlation == 7
        return decode(APIS[key].response, version, answer, position)
