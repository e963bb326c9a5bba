"""A broker's side of a cluster, on a tree in memory, with a controller that the test plays or a real one."""

from __future__ import annotations

import asyncio
import random
from uuid import UUID

import pytest

from pykafka_broker.clock import SystemClock
from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.controller.loop import Controller
from pykafka_broker.cluster.controller.state import ControllerSettings
from pykafka_broker.cluster.member import Member, WrongCluster, next_broker_id
from pykafka_broker.cluster.store import ConnectionLost, NodeExists
from pykafka_broker.cluster.topics import NewTopic, TopicRules
from pykafka_broker.cluster.znodes import BrokerRegistration, Endpoint
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from pykafka_broker.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

from .memory_store import MemoryTree

ID = UUID(int=7)
RULES = TopicRules(1, 1, lambda config: None)
REGISTRATION = BrokerRegistration(1, (Endpoint("PLAINTEXT", "h", 9001),))


async def eventually(condition):
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 -- the states have no events
            await asyncio.sleep(0.001)


def no_controller(_):
    return None


async def open_member(store, way=no_controller, cluster_id=None):
    controller = Controller(store, SystemClock(), ControllerSettings(1), lambda broker: None)
    return await Member.open(store, SystemClock(), RULES, random.Random(1), controller, way, cluster_id)


@pytest.fixture
async def store():
    return MemoryTree().open()


@pytest.fixture
async def member(store):
    found = await open_member(store)
    await found.join(REGISTRATION, patience_ms=0)
    yield found
    found.leave()
    await found.close()


def update(leaders, epoch=1, topic="t", topic_id=ID, brokers=(1, 2), broker_epoch=-1):
    """What a controller tells; `leaders` by partition."""
    states = [
        UpdateMetadataPartitionState(
            partition_index=n, leader=leader, leader_epoch=3, isr=[1], replicas=[1, 2]
        )
        for n, leader in leaders.items()
    ]
    topics = [UpdateMetadataTopicState(topic_name=topic, topic_id=topic_id, partition_states=states)]
    return UpdateMetadataRequest(
        controller_id=2,
        controller_epoch=epoch,
        broker_epoch=broker_epoch,
        topic_states=topics if leaders else [],
        live_brokers=[
            UpdateMetadataBroker(
                id=b, endpoints=[UpdateMetadataEndpoint(port=9000 + b, host="h", listener="PLAINTEXT")]
            )
            for b in brokers
        ],
    )


async def test_the_view_is_what_the_controller_tells(member):
    await member.learn(update({0: 1, 1: 2}))
    await member.learn(update({1: 1}, brokers=(1,)))
    view = member.view
    assert view.controller_id == 2
    assert set(view.brokers) == {1}
    assert [p.leader for p in view.topics["t"].partitions] == [1, 1]
    assert view.topics_by_id[ID].name == "t"


async def test_a_topic_that_is_being_deleted_is_gone(member):
    await member.learn(update({0: 1}))
    await member.learn(update({0: -2}))
    assert "t" not in member.view.topics


async def test_the_deletion_of_an_older_topic_of_that_name_is_not_heeded(member):
    await member.learn(update({0: 1}))
    await member.learn(update({0: -2}, topic_id=UUID(int=6)))
    assert member.view.topics["t"].topic_id == ID


async def test_controllers_of_old_are_refused(member):
    await member.learn(update({0: 1}, epoch=5))
    with pytest.raises(KafkaError) as caught:
        await member.learn(update({0: 2}, epoch=4))
    assert caught.value.code is ErrorCode.STALE_CONTROLLER_EPOCH
    assert member.view.topics["t"].partitions[0].leader == 1


async def test_requests_meant_for_an_earlier_registration_are_refused(store, member):
    before = member.epoch
    store.expire()
    store.reconnect()
    await eventually(lambda: member.epoch > before)
    with pytest.raises(KafkaError) as caught:
        await member.learn(update({0: 1}, broker_epoch=before))
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH
    await member.learn(update({0: 1}, broker_epoch=member.epoch))


async def test_a_broker_registers_again_when_its_session_was_lost(store, member):
    store.expire()
    assert not await store.exists(znodes.broker_id_path(1))
    store.reconnect()
    await eventually(lambda: znodes.broker_id_path(1) in store.tree.rows)


def failed_disks_told_of(store):
    found = sorted(path for path in store.tree.rows if path.startswith(znodes.LOG_DIR_EVENT_PREFIX))
    return [znodes.decode_log_dir_event(store.tree.rows[path].data) for path in found]


async def test_a_failed_disk_is_told_of_although_the_connection_breaks(store, member):
    breaks = iter([True, True, False])

    def break_now_and_then(ops):
        if next(breaks):
            raise ConnectionLost(ops[0].path, "the connection broke")

    store.before_multi = break_now_and_then
    member.lost_logs()
    await eventually(lambda: failed_disks_told_of(store) == [1])


async def test_a_failed_disk_is_told_of_in_the_next_session(store, member):
    store.expire()
    member.lost_logs()
    await asyncio.sleep(0)
    store.reconnect()
    await eventually(lambda: failed_disks_told_of(store) == [1])


async def test_a_stop_does_not_wait_until_a_failed_disk_can_be_told_of(store, member):
    store.expire()
    member.lost_logs()
    await asyncio.sleep(0)
    member.leave()
    async with asyncio.timeout(5):
        await member.close()


async def test_topics_deleted_while_nobody_told_are_forgotten(store, member):
    await member.learn(update({0: 1}))
    store.expire()
    store.reconnect()
    await eventually(lambda: "t" not in member.view.topics)


async def test_an_id_that_is_taken_is_refused_after_a_while(store, member):
    other = await open_member(store.tree.open())
    with pytest.raises(NodeExists, match="another broker"):
        await other.join(REGISTRATION, patience_ms=0)


async def test_directories_of_another_cluster_are_refused(store, member):
    with pytest.raises(WrongCluster):
        await open_member(store, cluster_id="x" * 22)


async def test_brokers_without_a_number_get_one_each(store, member):
    assert [await next_broker_id(store) for _ in range(3)] == [1001, 1002, 1003]


async def test_configs_come_from_the_tree_and_follow_it(store, member):
    await store.create(znodes.topic_config_path("t"), znodes.encode_config({"retention.ms": "1"}))
    await member.learn(update({0: 1}))
    assert member.view.topics["t"].config == {"retention.ms": "1"}
    await store.set(znodes.topic_config_path("t"), znodes.encode_config({"retention.ms": "2"}))
    change = znodes.encode_config_change("topics/t")
    await store.create(znodes.CONFIG_CHANGE_PREFIX, change, sequence=True)
    await eventually(lambda: member.view.topics["t"].config == {"retention.ms": "2"})


async def test_any_broker_may_change_configs_and_all_hear_of_it(store, member):
    await store.create(znodes.topic_config_path("t"), znodes.encode_config({}))
    other = await open_member(store.tree.open())
    await other.join(BrokerRegistration(2, REGISTRATION.endpoints), patience_ms=0)
    await member.learn(update({0: 1}))
    await other.learn(update({0: 1}))
    outcome = await other.alter_topic_configs({"t": lambda now: {**now, "retention.ms": "9"}})
    assert outcome["t"].config == {"retention.ms": "9"}
    await eventually(lambda: member.view.topics["t"].config == {"retention.ms": "9"})
    other.leave()


async def test_who_is_not_the_controller_says_so(member):
    outcome = await member.create_topics([NewTopic("t", 1, 1)])
    assert outcome["t"].code is ErrorCode.NOT_CONTROLLER
    outcome = await member.delete_topics(["t"])
    assert outcome["t"].code is ErrorCode.NOT_CONTROLLER


async def test_a_topic_that_is_needed_is_asked_for_and_waited_for(store):
    asked = []

    class Answering:
        async def call(self, request, *, newest=None, timeout_ms=None):
            asked.extend(topic.name for topic in request.topics)
            asyncio.get_running_loop().call_later(0.01, lambda: tasks.append(asyncio.ensure_future(told())))
            return CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])

        def close(self): ...

    async def told():
        await member.learn(update({0: 1}))

    tasks = []
    member = await open_member(store, way=lambda view: Answering())
    await member.join(REGISTRATION, patience_ms=0)
    outcome = await member.ensure_topics([NewTopic("t")])
    assert asked == ["t"]
    assert outcome["t"].topic_id == ID
    member.leave()


async def test_without_a_controller_a_needed_topic_has_to_wait(member):
    outcome = await member.ensure_topics([NewTopic("t")])
    assert outcome["t"].code is ErrorCode.LEADER_NOT_AVAILABLE
