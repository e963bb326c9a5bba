"""What only the controller answers, asked over the wire format of every version, with the tree in memory."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.znodes import ProducerIdBlock
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from pykafka_broker.protocol.messages.alter_partition import (
    AlterPartitionData,
    AlterPartitionRequest,
    AlterPartitionTopic,
    IsrMember,
)
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pykafka_broker.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from pykafka_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.cluster.controlled import registration
from tests.handlers.asked_controller import Cluster, eventually

MOVING = [2, 3]


@pytest.fixture
async def idle():
    """The office is held by somebody else, for all this broker knows."""
    cluster = Cluster()
    await cluster.begin()
    yield cluster
    await cluster.controller.close()


@pytest.fixture
async def cluster(idle):
    await idle.run()
    return idle


# AlterPartition


async def alter_isr(cluster, version, isr, *, broker=1, topic="t", **changes):
    known = cluster.partition(topic)
    info = cluster.view.topics[topic]
    data = AlterPartitionData(
        partition_index=0, leader_epoch=known.leader_epoch, partition_epoch=known.partition_epoch
    )
    if version >= 3:
        data.new_isr_with_epochs = [IsrMember(b, cluster.epoch(b)) for b in isr]
    else:
        data.new_isr = list(isr)
    for name, value in changes.items():
        setattr(data, name, value)
    named = (
        AlterPartitionTopic(topic_name=topic) if version < 2 else AlterPartitionTopic(topic_id=info.topic_id)
    )
    named.partitions = [data]
    request = AlterPartitionRequest(broker_id=broker, broker_epoch=cluster.epoch(broker), topics=[named])
    response = await cluster.ask(ApiKey.ALTER_PARTITION, version, request)
    assert response.error_code == ErrorCode.NONE
    [answered] = response.topics
    assert (answered.topic_name, answered.topic_id) == (named.topic_name, named.topic_id)
    return answered.partitions[0]


@pytest.mark.parametrize("version", range(4))
async def test_a_leader_changes_the_isr_in_every_version(cluster, version):
    await cluster.create_topic("t", [1, 2, 3])
    before = cluster.partition()
    told = await alter_isr(cluster, version, [1, 3])
    assert told.error_code == ErrorCode.NONE
    assert (told.leader_id, told.leader_epoch, told.isr) == (1, before.leader_epoch, [1, 3])
    assert told.partition_epoch == before.partition_epoch + 1
    assert cluster.partition().isr == (1, 3)


@pytest.mark.parametrize("version", range(4))
async def test_a_leader_that_is_behind_is_told_so(cluster, version):
    await cluster.create_topic("t", [1, 2, 3])
    await alter_isr(cluster, version, [1, 3])
    told = await alter_isr(cluster, version, [1], partition_epoch=0)
    assert told.error_code == ErrorCode.INVALID_UPDATE_VERSION
    told = await alter_isr(cluster, version, [1], leader_epoch=-1)
    assert told.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (told.leader_id, told.isr) == (0, [])


async def test_a_leader_does_not_take_in_a_follower_that_came_back_since_it_looked(cluster):
    await cluster.create_topic("t", [1, 2, 3])
    await alter_isr(cluster, 3, [1, 3])
    earlier = IsrMember(2, cluster.epoch(2) - 1)
    told = await alter_isr(cluster, 3, [1, 3], new_isr_with_epochs=[IsrMember(1, cluster.epoch(1)), earlier])
    assert told.error_code == ErrorCode.INELIGIBLE_REPLICA


async def test_a_topic_that_is_gone_is_named_by_what_it_was_asked_by(cluster):
    unknown = znodes.random_uuid()
    topics = [AlterPartitionTopic(topic_name="gone", topic_id=unknown, partitions=[AlterPartitionData()])]
    request = AlterPartitionRequest(broker_id=1, broker_epoch=cluster.epoch(1), topics=topics)
    by_name = (await cluster.ask(ApiKey.ALTER_PARTITION, 1, request)).topics[0]
    by_id = (await cluster.ask(ApiKey.ALTER_PARTITION, 2, request)).topics[0]
    assert (by_name.topic_name, by_name.partitions[0].error_code) == (
        "gone",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
    assert (by_id.topic_id, by_id.partitions[0].error_code) == (unknown, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("version", range(4))
async def test_a_zombie_cannot_change_any_isr(cluster, version):
    request = AlterPartitionRequest(broker_id=2, broker_epoch=cluster.epoch(2) - 1)
    response = await cluster.ask(ApiKey.ALTER_PARTITION, version, request)
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH


# ElectLeaders


def elections(response):
    return {
        (topic.topic, result.partition_id): result.error_code
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


def preferred(*names):
    return ElectLeadersRequest(topic_partitions=[TopicPartitions(name, [0]) for name in names])


async def shut_down(cluster, broker, version=3):
    epoch = cluster.epoch(broker) if version >= 2 else -1
    request = ControlledShutdownRequest(broker_id=broker, broker_epoch=epoch)
    return await cluster.ask(ApiKey.CONTROLLED_SHUTDOWN, version, request)


async def led_by_another(cluster, name):
    """A topic whose preferred leader is in sync and does not lead."""
    await cluster.create_topic(name, [3, 1])
    await shut_down(cluster, 3)
    await cluster.kill(3)
    session = cluster.sessions[3] = cluster.tree.open()
    await session.create(znodes.broker_id_path(3), registration(3), ephemeral=True)
    await eventually(lambda: 3 in cluster.view.brokers)
    told = await alter_isr(cluster, 3, [1, 3], topic=name)
    assert told.error_code == ErrorCode.NONE
    assert cluster.partition(name).leader == 1


@pytest.mark.parametrize("version", range(3))
async def test_a_preferred_leader_is_elected_in_every_version(cluster, version):
    await led_by_another(cluster, "t")
    response = await cluster.ask(ApiKey.ELECT_LEADERS, version, preferred("t"))
    assert elections(response) == {("t", 0): ErrorCode.NONE}
    assert cluster.partition().leader == 3


async def test_each_partition_has_an_answer_of_its_own(cluster):
    await led_by_another(cluster, "moves")
    await cluster.create_topic("stays", [1, 2])
    await cluster.create_topic("alone", [2])
    await cluster.kill(2)
    asked = preferred("moves", "stays", "alone", "unknown")
    response = await cluster.ask(ApiKey.ELECT_LEADERS, 2, asked)
    assert elections(response) == {
        ("moves", 0): ErrorCode.NONE,
        ("stays", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("alone", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ("unknown", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


async def test_asked_for_all_only_those_are_answered_that_needed_it(cluster):
    await led_by_another(cluster, "moves")
    await cluster.create_topic("stays", [1, 2])
    response = await cluster.ask(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(topic_partitions=None))
    assert elections(response) == {("moves", 0): ErrorCode.NONE}


async def test_an_unclean_election_takes_who_is_alive(cluster):
    await cluster.create_topic("t", [1, 2])
    await alter_isr(cluster, 3, [1])
    request = ElectLeadersRequest(election_type=1, topic_partitions=[TopicPartitions("t", [0])])
    response = await cluster.ask(ApiKey.ELECT_LEADERS, 2, request)
    assert elections(response) == {("t", 0): ErrorCode.ELECTION_NOT_NEEDED}
    await cluster.create_topic("u", [3, 2])
    await alter_isr(cluster, 3, [3], broker=3, topic="u")
    await cluster.kill(3)
    request.topic_partitions = [TopicPartitions("u", [0])]
    response = await cluster.ask(ApiKey.ELECT_LEADERS, 2, request)
    assert elections(response) == {("u", 0): ErrorCode.NONE}
    assert (cluster.partition("u").leader, cluster.partition("u").isr) == (2, (2,))


async def test_the_answer_waits_until_this_broker_has_heard_of_the_leader(cluster):
    await led_by_another(cluster, "t")
    cluster.metadata.deaf = True
    waiting = asyncio.ensure_future(cluster.ask(ApiKey.ELECT_LEADERS, 2, preferred("t")))
    await eventually(lambda: cluster.partition().leader == 3)
    assert not waiting.done()
    cluster.metadata.deaf = False
    cluster.metadata.learn(cluster.controller.state)
    assert elections(await waiting) == {("t", 0): ErrorCode.NONE}
    assert not cluster.metadata.listeners


async def test_a_leader_this_broker_never_hears_of_is_answered_when_the_time_is_up(cluster):
    await led_by_another(cluster, "t")
    cluster.metadata.deaf = True
    request = preferred("t")
    request.timeout_ms = 1
    response = await cluster.ask(ApiKey.ELECT_LEADERS, 2, request)
    assert elections(response) == {("t", 0): ErrorCode.REQUEST_TIMED_OUT}


async def test_an_election_of_a_kind_that_does_not_exist_is_refused(cluster):
    request = ElectLeadersRequest(election_type=9, topic_partitions=[TopicPartitions("t", [0])])
    response = await cluster.ask(ApiKey.ELECT_LEADERS, 1, request)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert elections(response) == {("t", 0): ErrorCode.INVALID_REQUEST}


# Reassignments


async def move(cluster, replicas, topic="t", version=0, may_resize=True):
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(topic, [partition])])
    request.allow_replication_factor_change = may_resize
    response = await cluster.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, request)
    assert response.allow_replication_factor_change == may_resize
    assert response.error_code == ErrorCode.NONE
    [answered] = response.responses
    assert answered.name == topic
    return answered.partitions[0]


async def moves(cluster, topics=None):
    request = ListPartitionReassignmentsRequest(topics=topics)
    response = await cluster.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    return {
        topic.name: [
            (p.partition_index, p.replicas, p.adding_replicas, p.removing_replicas) for p in topic.partitions
        ]
        for topic in response.topics
    }


async def test_a_move_is_listed_until_its_target_is_in_sync(cluster):
    await cluster.create_topic("t", [1, 2])
    await cluster.create_topic("still", [1, 2])
    told = await move(cluster, MOVING)
    assert (told.error_code, told.error_message) == (ErrorCode.NONE, None)
    expected = {"t": [(0, [2, 3, 1], [3], [1])]}
    assert await moves(cluster) == expected
    asked = [ListPartitionReassignmentsTopics(name, [0, 1]) for name in ("t", "still", "unknown")]
    assert await moves(cluster, asked) == expected
    assert (await alter_isr(cluster, 2, [1, 2, 3])).error_code == ErrorCode.NEW_LEADER_ELECTED
    assert await moves(cluster) == {}
    assert (cluster.partition().replicas, cluster.partition().leader) == ((2, 3), 2)


async def test_a_move_can_be_given_up_once(cluster):
    await cluster.create_topic("t", [1, 2])
    await move(cluster, MOVING)
    assert (await move(cluster, None)).error_code == ErrorCode.NONE
    assert cluster.partition().replicas == (2, 1), "as in Kafka, in the order of the target"
    told = await move(cluster, None)
    assert told.error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert told.error_message


@pytest.mark.parametrize("replicas", [[], [1, 1], [1, -3], [1, 9]])
async def test_replicas_that_cannot_be_are_refused(cluster, replicas):
    await cluster.create_topic("t", [1, 2])
    told = await move(cluster, replicas)
    assert told.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert await moves(cluster) == {}


async def test_a_move_may_be_asked_to_keep_the_number_of_replicas(cluster):
    await cluster.create_topic("t", [1, 2])
    for replicas in ([1], [1, 2, 3]):
        told = await move(cluster, replicas, version=1, may_resize=False)
        assert told.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert await moves(cluster) == {}
    assert (await move(cluster, MOVING, version=1, may_resize=False)).error_code == ErrorCode.NONE
    told = await move(cluster, [1, 2, 3], version=1, may_resize=False)
    assert told.error_message == "The replication factor is changed from 2 to 3"
    assert (await move(cluster, None, version=1, may_resize=False)).error_code == ErrorCode.NONE
    assert (await move(cluster, [1, 2, 3], version=1)).error_code == ErrorCode.NONE


async def test_a_partition_nobody_knows_cannot_be_moved(cluster):
    told = await move(cluster, MOVING, "unknown")
    assert told.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# ControlledShutdown


@pytest.mark.parametrize("version", range(4))
async def test_a_broker_that_stops_hands_over_what_others_can_lead(cluster, version):
    await cluster.create_topic("t", [2, 3])
    await cluster.create_topic("held", [2, 3])
    await alter_isr(cluster, 3, [2], broker=2, topic="held")
    response = await shut_down(cluster, 2, version)
    assert response.error_code == ErrorCode.NONE
    remaining = [(p.topic_name, p.partition_index) for p in response.remaining_partitions]
    assert remaining == [("held", 0)]
    assert (cluster.partition().leader, cluster.partition("held").leader) == (3, 2)


async def test_a_zombie_does_not_shut_its_successor_down(cluster):
    request = ControlledShutdownRequest(broker_id=2, broker_epoch=cluster.epoch(2) - 1)
    response = await cluster.ask(ApiKey.CONTROLLED_SHUTDOWN, 3, request)
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH


async def test_a_broker_nobody_knows_cannot_shut_down(cluster):
    request = ControlledShutdownRequest(broker_id=9)
    response = await cluster.ask(ApiKey.CONTROLLED_SHUTDOWN, 1, request)
    assert response.error_code == ErrorCode.BROKER_NOT_AVAILABLE


# AllocateProducerIds


async def allocate(cluster, broker, epoch=None):
    request = AllocateProducerIdsRequest(broker, cluster.epoch(broker) if epoch is None else epoch)
    return await cluster.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, request)


async def test_every_block_of_producer_ids_is_given_to_one_broker(cluster):
    first, second = await allocate(cluster, 2), await allocate(cluster, 3)
    assert (first.error_code, first.producer_id_start, first.producer_id_len) == (ErrorCode.NONE, 0, 1000)
    assert (second.producer_id_start, second.producer_id_len) == (1000, 1000)
    written = cluster.tree.rows[znodes.PRODUCER_ID_BLOCK].data
    assert ProducerIdBlock.decode(written) == ProducerIdBlock(3, 1000, 1999)


async def test_only_live_brokers_are_given_producer_ids(cluster):
    assert (await allocate(cluster, 9, 0)).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert (await allocate(cluster, 2, 0)).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.tree.rows[znodes.PRODUCER_ID_BLOCK].data == b""


# Asked elsewhere


async def test_a_broker_that_is_not_the_controller_says_so(idle):
    for key, version, request in (
        (ApiKey.ALTER_PARTITION, 3, AlterPartitionRequest(broker_id=1)),
        (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, AlterPartitionReassignmentsRequest()),
        (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest()),
        (ApiKey.ALLOCATE_PRODUCER_IDS, 0, AllocateProducerIdsRequest(broker_id=1)),
    ):
        assert (await idle.ask(key, version, request)).error_code == ErrorCode.NOT_CONTROLLER


async def test_kafka_has_another_word_for_it_in_controlled_shutdown(idle):
    response = await idle.ask(ApiKey.CONTROLLED_SHUTDOWN, 3, ControlledShutdownRequest(broker_id=1))
    assert response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH


async def test_and_says_it_for_each_partition_in_elections(idle):
    response = await idle.ask(ApiKey.ELECT_LEADERS, 2, preferred("a", "b"))
    assert response.error_code == ErrorCode.NONE
    assert elections(response) == dict.fromkeys([("a", 0), ("b", 0)], ErrorCode.NOT_CONTROLLER)
