"""The controller at work, on a tree in memory and on ZooKeeper, with brokers that only take notes."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from kazoo.client import KazooClient

from compat_tests.servers import HOST
from pykafka_broker.clock import ManualClock
from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.controller import events
from pykafka_broker.cluster.controller.isr import IsrWish
from pykafka_broker.cluster.controller.loop import Controller
from pykafka_broker.cluster.controller.state import ControllerSettings
from pykafka_broker.cluster.store import ConnectionLost, Create
from pykafka_broker.cluster.znodes import TopicAssignment
from pykafka_broker.cluster.zookeeper_store import ZookeeperStore
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from pykafka_broker.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from pykafka_broker.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

from .controlled import make_tree, registration
from .memory_store import MemoryTree
from .relay import Relay


async def eventually(condition, what="it"):
    """Waits until the condition, plain or awaitable, holds."""
    async with asyncio.timeout(20):
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.005)


class NoteTaker:
    """A broker: it keeps what it is told and answers; `refusals` times it cannot be reached first."""

    def __init__(self, broker, notes):
        self.broker = broker
        self.notes = notes
        self.closed = False

    async def call(self, request, *, newest=None, timeout_ms=None):
        await asyncio.sleep(0)
        if self.notes.refusals.get(self.broker.id, 0) > 0:
            self.notes.refusals[self.broker.id] -= 1
            raise ConnectionRefusedError("nobody there")
        self.notes.told.append((self.broker.id, request))
        match request:
            case LeaderAndIsrRequest():
                return LeaderAndIsrResponse(error_code=0, partition_errors=[], topics=[])
            case UpdateMetadataRequest():
                return UpdateMetadataResponse(error_code=0)
            case StopReplicaRequest():
                errors = [
                    StopReplicaPartitionError(t.topic_name, p.partition_index, 0)
                    for t in request.topic_states
                    for p in t.partition_states
                ]
                return StopReplicaResponse(error_code=0, partition_errors=errors)

    def close(self):
        self.closed = True


class Notes:
    def __init__(self):
        self.told = []
        self.refusals = {}

    def connect(self, broker):
        return NoteTaker(broker, self)

    def of(self, broker, kind=object):
        return [request for b, request in self.told if b == broker and isinstance(request, kind)]

    def hosted(self, broker):
        """(topic, partition) -> last (leader, leader epoch) the broker was told."""
        return {
            (topic.topic_name, p.partition_index): (p.leader, p.leader_epoch)
            for request in self.of(broker, LeaderAndIsrRequest)
            for topic in request.topic_states
            for p in topic.partition_states
        }


class Sleeper:
    """Sleeps as long as it likes: not at all for backoffs, for ever for what comes now and then."""

    async def __call__(self, seconds):
        await asyncio.sleep(0.001 if seconds < 1 else 1000)


class World:
    """A tree, brokers with a session each, and the controllers among them."""

    def __init__(self):
        self.tree = MemoryTree()
        self.notes = Notes()
        self.stores = {}
        self.controllers = {}

    async def begin(self, *brokers):
        await make_tree(self.tree.open())
        for broker in brokers:
            await self.register(broker)
        return self

    async def register(self, broker):
        store = self.stores[broker] = self.tree.open()
        await store.create(znodes.broker_id_path(broker), registration(broker), ephemeral=True)

    async def candidate(self, broker, **settings):
        controller = Controller(
            self.stores[broker],
            ManualClock(),
            ControllerSettings(broker, **settings),
            self.notes.connect,
            sleep=Sleeper(),
        )
        self.controllers[broker] = controller
        await controller.start()
        return controller

    async def active(self, broker, **settings):
        controller = await self.candidate(broker, **settings)
        await eventually(lambda: controller.is_active and controller.state.view.brokers)
        return controller

    async def create_topic(self, store, name, *replicas):
        assignment = TopicAssignment(znodes.random_uuid(), {n: tuple(r) for n, r in enumerate(replicas)})
        await store.multi(
            [
                Create(znodes.topic_config_path(name), znodes.encode_config({})),
                Create(znodes.topic_path(name), assignment.encode()),
            ]
        )

    def written(self, topic, partition=0):
        row = self.tree.rows.get(znodes.partition_state_path(topic, partition))
        return row and json.loads(row.data)

    def leader(self, topic, partition=0):
        return (self.written(topic, partition) or {}).get("leader")

    async def close(self):
        for controller in self.controllers.values():
            await controller.close()


@pytest.fixture
async def world():
    made = await World().begin(1, 2, 3)
    yield made
    await made.close()


async def test_the_first_candidate_is_elected_and_bumps_the_epoch(world):
    controller = await world.active(1)
    assert world.tree.rows[znodes.CONTROLLER_EPOCH].data == b"1"
    claim = json.loads(world.tree.rows[znodes.CONTROLLER].data)
    assert (claim["brokerid"], claim["version"]) == (1, 2)
    assert world.tree.rows[znodes.CONTROLLER].ephemeral_owner == world.stores[1].session_id
    assert controller.controller_id == 1
    assert controller.state.view.controller_epoch == 1


async def test_all_brokers_hear_who_is_alive_from_a_new_controller(world):
    await world.active(1)
    for broker in (1, 2, 3):
        await eventually(lambda b=broker: world.notes.of(b, UpdateMetadataRequest))
        first = world.notes.of(broker)[0]
        assert [b.id for b in first.live_brokers] == [1, 2, 3]
        assert (first.controller_id, first.controller_epoch) == (1, 1)
        assert first.live_brokers[0].endpoints[0].port == 9001


async def test_only_one_of_many_candidates_is_elected_and_the_others_know_it(world):
    for broker in (1, 2, 3):
        await world.candidate(broker)
    await eventually(lambda: all(c.controller_id == 1 for c in world.controllers.values()))
    assert [c.is_active for c in world.controllers.values()] == [True, False, False]
    with pytest.raises(KafkaError) as refused:
        await world.controllers[2].submit(events.BalanceLeaders())
    assert refused.value.code is ErrorCode.NOT_CONTROLLER


async def test_a_topic_that_appears_in_the_tree_gets_leaders(world):
    await world.active(1)
    await world.create_topic(world.stores[3], "orders", [2, 3], [3, 1])
    await eventually(lambda: world.leader("orders", 1) == 3)
    assert world.written("orders") == {
        "controller_epoch": 1, "leader": 2, "version": 1, "leader_epoch": 0, "isr": [2, 3],
    }  # fmt: skip
    await eventually(lambda: world.notes.hosted(3) == {("orders", 0): (2, 0), ("orders", 1): (3, 0)})
    request = world.notes.of(3, LeaderAndIsrRequest)[-1]
    assert all(p.is_new for t in request.topic_states for p in t.partition_states)
    assert {(b.broker_id, b.port) for b in request.live_leaders} == {(2, 9002), (3, 9003)}


async def test_partitions_that_are_added_get_leaders(world):
    controller = await world.active(1)
    await world.create_topic(world.stores[1], "orders", [2])
    await eventually(lambda: world.leader("orders"))
    node = await world.stores[1].get(znodes.topic_path("orders"))
    old = TopicAssignment.decode(node.data)
    grown = TopicAssignment(old.topic_id, {0: (2,), 1: (3, 2)})
    await world.stores[2].set(znodes.topic_path("orders"), grown.encode(), node.version)
    await eventually(lambda: world.leader("orders", 1) == 3)
    await eventually(lambda: len(controller.state.view.topics["orders"].partitions) == 2)


async def test_when_a_broker_dies_its_partitions_move_and_the_others_hear_of_it(world):
    await world.active(1)
    await world.create_topic(world.stores[1], "orders", [2, 3])
    await eventually(lambda: world.leader("orders") == 2)
    world.stores[2].expire()
    await eventually(lambda: world.leader("orders") == 3)
    assert world.written("orders")["isr"] == [3]
    await eventually(lambda: world.notes.hosted(3).get(("orders", 0), (0, 0))[0] == 3)
    epoch = world.written("orders")["leader_epoch"]
    assert epoch > 0
    assert world.notes.hosted(3)["orders", 0] == (3, epoch)
    last = world.notes.of(1, UpdateMetadataRequest)[-1]
    await eventually(
        lambda: [b.id for b in world.notes.of(1, UpdateMetadataRequest)[-1].live_brokers] == [1, 3]
    )
    assert last.controller_id == 1


async def test_another_candidate_takes_over_and_carries_on(world):
    await world.active(1)
    second = await world.candidate(2)
    await world.create_topic(world.stores[3], "orders", [1, 2, 3])
    await eventually(lambda: world.leader("orders") == 1)
    world.stores[1].expire()
    await eventually(lambda: second.is_active and world.leader("orders") == 2)
    assert not world.controllers[1].is_active
    assert world.tree.rows[znodes.CONTROLLER_EPOCH].data == b"2"
    assert world.written("orders")["controller_epoch"] == 2
    await eventually(lambda: world.notes.of(3, LeaderAndIsrRequest)[-1].controller_epoch == 2)


async def test_a_controller_whose_session_expired_is_a_candidate_again(world):
    controller = await world.active(1)
    world.stores[1].expire()
    assert not controller.is_active
    world.stores[1].reconnect()
    await eventually(lambda: controller.is_active)
    assert world.tree.rows[znodes.CONTROLLER_EPOCH].data == b"2"


async def test_a_fenced_controller_resigns_before_it_changes_anything(world):
    controller = await world.active(1)
    await world.create_topic(world.stores[1], "orders", [2, 3])
    await eventually(lambda: world.leader("orders") == 2)
    before = world.written("orders")
    # Another was elected and this one has not heard of it yet.
    await world.stores[3].set(znodes.CONTROLLER_EPOCH, b"9")
    with pytest.raises(KafkaError) as refused:
        await controller.submit(events.ControlledShutdown(2, -1))
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    assert world.written("orders") == before


async def test_a_topic_is_deleted_when_all_its_replicas_are(world):
    controller = await world.active(1)
    await world.create_topic(world.stores[1], "orders", [1, 2], [2, 3])
    await eventually(lambda: world.leader("orders", 1))
    await world.stores[2].create(znodes.delete_topic_path("orders"))
    await eventually(lambda: znodes.topic_path("orders") not in world.tree.rows)
    await eventually(lambda: "orders" not in controller.state.view.topics)
    assert not [path for path in world.tree.rows if "orders" in path]
    stopped = [
        p
        for b in (1, 2, 3)
        for r in world.notes.of(b, StopReplicaRequest)
        for t in r.topic_states
        for p in t.partition_states
    ]
    assert len(stopped) == 4
    assert all(p.delete_partition and p.leader_epoch == -2 for p in stopped)


async def test_a_mark_for_a_topic_that_does_not_exist_is_removed(world):
    await world.active(1)
    await world.stores[2].create(znodes.delete_topic_path("nothing"))
    await eventually(lambda: znodes.delete_topic_path("nothing") not in world.tree.rows)


async def test_requests_reach_a_broker_in_order_however_often_it_is_not_there(world):
    world.notes.refusals[3] = 7
    await world.active(1)
    for name in ("a", "b", "c"):
        await world.create_topic(world.stores[1], name, [3])
        await eventually(lambda n=name: world.leader(n) == 3)
    await eventually(lambda: len(world.notes.hosted(3)) == 3)
    seen = [t.topic_name for r in world.notes.of(3, LeaderAndIsrRequest) for t in r.topic_states]
    assert seen == ["a", "b", "c"]
    assert world.notes.refusals[3] == 0


async def test_what_was_meant_for_a_broker_that_died_is_dropped(world):
    world.notes.refusals[3] = 10**9
    controller = await world.active(1)
    await world.create_topic(world.stores[1], "orders", [3])
    await eventually(lambda: world.leader("orders") == 3)
    world.stores[3].expire()
    await eventually(lambda: 3 not in controller.state.view.brokers)
    world.notes.refusals[3] = 0
    await world.register(3)
    await eventually(lambda: world.notes.hosted(3))
    epoch = world.tree.rows[znodes.broker_id_path(3)].czxid
    assert {r.broker_epoch for r in world.notes.of(3)} == {epoch}


async def test_a_change_by_somebody_else_makes_the_controller_read_again_and_answer_nevertheless(world):
    controller = await world.active(1)
    await world.create_topic(world.stores[1], "orders", [2, 3])
    await eventually(lambda: world.leader("orders") == 2)
    path = znodes.partition_state_path("orders", 0)
    await world.stores[3].set(path, world.tree.rows[path].data)
    assert await controller.submit(events.ControlledShutdown(2, -1)) == ()
    assert world.leader("orders") == 3
    assert controller.is_active


@pytest.mark.parametrize("happened", [True, False])
async def test_a_commit_whose_answer_was_lost_is_found_out_about(world, happened):
    controller = await world.active(1)
    await world.create_topic(world.stores[1], "orders", [2, 3])
    await eventually(lambda: world.leader("orders") == 2)
    store = world.stores[1]

    def lose(ops):
        store.before_multi = None
        if happened:
            world.tree.commit(ops, store.session_id)
        raise ConnectionLost(ops[0].path, "cut")

    store.before_multi = lose
    assert await controller.submit(events.ControlledShutdown(2, -1)) == ()
    assert world.leader("orders") == 3
    assert world.written("orders")["leader_epoch"] == 1


async def test_a_claim_whose_answer_was_lost_is_recognised(world):
    store = world.stores[1]

    def lose(ops):
        store.before_multi = None
        world.tree.commit(ops, store.session_id)
        raise ConnectionLost(ops[0].path, "cut")

    store.before_multi = lose
    await world.active(1)
    assert world.tree.rows[znodes.CONTROLLER_EPOCH].data == b"1"


async def test_a_leader_changes_its_isr(world):
    controller = await world.active(1)
    await world.create_topic(world.stores[1], "orders", [2, 3])
    await eventually(lambda: world.leader("orders") == 2)
    epoch = world.tree.rows[znodes.broker_id_path(2)].czxid
    wish = IsrWish(0, 0, (2,))
    outcome = await controller.submit(events.AlterPartition(2, epoch, 1, {("orders", 0): wish}))
    assert (outcome["orders", 0].isr, outcome["orders", 0].partition_epoch) == ((2,), 1)
    assert world.written("orders")["isr"] == [2]


async def test_a_reassignment_written_into_the_tree_runs_and_is_taken_out_when_done(world):
    controller = await world.active(1)
    await world.create_topic(world.stores[1], "orders", [1, 2])
    await eventually(lambda: world.leader("orders") == 1)
    wanted = znodes.encode_reassignments({("orders", 0): (3, 2), ("unknown", 0): (1,)})
    await world.stores[2].create(znodes.REASSIGN_PARTITIONS, wanted)
    path = znodes.topic_path("orders")
    await eventually(lambda: TopicAssignment.decode(world.tree.rows[path].data).adding == {0: (3,)})
    left = world.tree.rows[znodes.REASSIGN_PARTITIONS].data
    assert znodes.decode_reassignments(left) == {("orders", 0): (3, 2)}
    p = controller.state.view.partition("orders", 0)
    epoch = world.tree.rows[znodes.broker_id_path(1)].czxid
    wish = IsrWish(p.leader_epoch, p.partition_epoch, (1, 2, 3))
    await controller.submit(events.AlterPartition(1, epoch, 1, {("orders", 0): wish}))
    assert znodes.REASSIGN_PARTITIONS not in world.tree.rows
    assert TopicAssignment.decode(world.tree.rows[path].data).replicas == {0: (3, 2)}
    assert (world.leader("orders"), world.written("orders")["isr"]) == (3, [2, 3])


async def test_preferred_elections_asked_for_in_the_tree_are_held(world):
    await world.active(1)
    await world.create_topic(world.stores[1], "orders", [2, 3])
    await eventually(lambda: world.leader("orders") == 2)
    world.stores[2].expire()
    await eventually(lambda: world.leader("orders") == 3)
    await world.register(2)
    controller = world.controllers[1]
    await eventually(lambda: 2 in controller.state.view.brokers)
    p = controller.state.view.partition("orders", 0)
    epoch = world.tree.rows[znodes.broker_id_path(3)].czxid
    wish = IsrWish(p.leader_epoch, p.partition_epoch, (3, 2))
    await controller.submit(events.AlterPartition(3, epoch, 1, {("orders", 0): wish}))
    asked = b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
    await world.stores[3].create(znodes.PREFERRED_REPLICA_ELECTION, asked)
    await eventually(lambda: world.leader("orders") == 2)
    await eventually(lambda: znodes.PREFERRED_REPLICA_ELECTION not in world.tree.rows)


async def test_unclean_election_is_held_as_soon_as_the_topic_allows_it(world):
    controller = await world.active(1)
    await world.create_topic(world.stores[1], "orders", [2, 3])
    await eventually(lambda: world.leader("orders") == 2)
    world.stores[3].expire()
    await eventually(lambda: world.written("orders")["isr"] == [2])
    world.stores[2].expire()
    await eventually(lambda: world.leader("orders") == -1)
    await world.register(3)
    await eventually(lambda: 3 in controller.state.view.brokers)
    assert world.leader("orders") == -1
    config = znodes.encode_config({"unclean.leader.election.enable": "true"})
    await world.stores[1].set(znodes.topic_config_path("orders"), config)
    change = znodes.encode_config_change("topics/orders")
    await world.stores[1].create(znodes.CONFIG_CHANGE_PREFIX, change, sequence=True)
    await eventually(lambda: world.leader("orders") == 3)
    assert world.written("orders")["leader_recovery_state"] == 1


async def test_notifications_of_brokers_are_read_and_removed(world):
    await world.active(1)
    await world.create_topic(world.stores[1], "orders", [2, 3])
    await eventually(lambda: world.leader("orders") == 2)
    before = len(world.notes.of(3, LeaderAndIsrRequest))
    event = b'{"version":1,"broker":3,"event":1}'
    await world.stores[3].create(f"{znodes.LOG_DIR_EVENTS}/log_dir_event_", event, sequence=True)
    await eventually(lambda: len(world.notes.of(3, LeaderAndIsrRequest)) > before)
    note = b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}'
    await world.stores[2].create(f"{znodes.ISR_CHANGES}/isr_change_", note, sequence=True)
    for parent in (znodes.LOG_DIR_EVENTS, znodes.ISR_CHANGES):
        await eventually(lambda p=parent: not any(path.startswith(p + "/") for path in world.tree.rows))


class OnZookeeper:
    """Two brokers on the real ZooKeeper, the first of them behind a network that can be cut."""

    def __init__(self, zookeeper, settings):
        self.zookeeper = zookeeper
        self.settings = settings
        self.notes = Notes()
        self.relay = Relay(HOST, zookeeper.port)

    async def begin(self):
        await self.relay.open()
        chroot = self.settings.connect.partition("/")[2]
        far = replace(self.settings, connect=f"{HOST}:{self.relay.port}/{chroot}")
        self.stores = {1: await ZookeeperStore.open(far), 2: await ZookeeperStore.open(self.settings)}
        await make_tree(self.stores[2])
        for broker, store in self.stores.items():
            await store.create(znodes.broker_id_path(broker), registration(broker), ephemeral=True)
        self.controllers = {broker: self.controller(broker) for broker in self.stores}
        return self

    def controller(self, broker):
        settings = ControllerSettings(broker)
        return Controller(self.stores[broker], ManualClock(), settings, self.notes.connect, sleep=Sleeper())

    async def end_session_of_1(self):
        """As a session that ran out: the broker is cut off and hears of it later."""
        client = self.stores[1]._session._client
        await self.relay.cut()
        thief = KazooClient(self.zookeeper.connect, client_id=(client._session_id, client._session_passwd))
        await asyncio.to_thread(thief.start)
        await asyncio.to_thread(thief.stop)
        thief.close()

    async def state(self):
        found = await self.stores[2].get_many([znodes.partition_state_path("orders", 0)])
        return json.loads(found[0].data) if found[0] else {}

    async def led_by(self, broker):
        return (await self.state()).get("leader") == broker

    async def close(self):
        for broker, controller in self.controllers.items():
            await controller.close()
            await self.stores[broker].close()
        await self.relay.cut()


@pytest.fixture
async def on_zookeeper(zookeeper, settings):
    made = await OnZookeeper(zookeeper, settings).begin()
    yield made
    await made.close()


async def test_of_two_controllers_on_zookeeper_one_wins_the_race(on_zookeeper):
    controllers = on_zookeeper.controllers
    await asyncio.gather(*(c.start() for c in controllers.values()))
    await eventually(lambda: len({c.controller_id for c in controllers.values()} - {-1}) == 1)
    await eventually(lambda: sum(c.is_active for c in controllers.values()) == 1)
    assert (await on_zookeeper.stores[2].get(znodes.CONTROLLER_EPOCH)).data == b"1"


async def test_a_zombie_on_zookeeper_is_replaced_fenced_and_a_candidate_again(on_zookeeper):
    zombie, second = on_zookeeper.controllers.values()
    await zombie.start()
    await eventually(lambda: zombie.is_active and len(zombie.state.view.brokers) == 2)
    await second.start()
    await World().create_topic(on_zookeeper.stores[2], "orders", [1, 2])
    await eventually(lambda: on_zookeeper.led_by(1))
    await on_zookeeper.end_session_of_1()
    await eventually(lambda: second.is_active)
    await eventually(lambda: on_zookeeper.led_by(2))
    state = await on_zookeeper.state()
    assert (state["controller_epoch"], state["isr"]) == (2, [2])
    # It still believes in its office: what it tries now must fail.
    assert zombie.is_active
    late = asyncio.ensure_future(zombie.submit(events.ControlledShutdown(2, -1)))
    await on_zookeeper.relay.open()
    with pytest.raises(KafkaError) as refused:
        await late
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    assert await on_zookeeper.led_by(2)
    await eventually(lambda: not zombie.is_active and zombie.controller_id == 2)
    await second.close()
    await on_zookeeper.stores[2].close()
    on_zookeeper.stores[2] = await ZookeeperStore.open(on_zookeeper.settings)
    await eventually(lambda: zombie.is_active)
    assert (await on_zookeeper.stores[2].get(znodes.CONTROLLER_EPOCH)).data == b"3"
