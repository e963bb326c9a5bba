"""A broker alone is asked to elect and to reassign: it answers what Apache Kafka with one broker does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykafka_broker.broker import Broker
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from pykafka_broker.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with Broker({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}) as broker:
        connected = await Client.connect(broker.bootstrap_servers)
        topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        await connected.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))
        yield connected
        await connected.close()


@pytest.mark.parametrize("version", range(3))
async def test_no_partition_needs_a_leader_elected(client: Client, version: int) -> None:
    named = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0, 9])])
    answer = await client.call(ApiKey.ELECT_LEADERS, version, named)
    [topic] = answer.replica_election_results
    assert {p.partition_id: p.error_code for p in topic.partition_result} == {
        0: ErrorCode.ELECTION_NOT_NEEDED,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


async def test_of_all_topics_no_partition_is_named(client: Client) -> None:
    answer = await client.call(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(topic_partitions=None))
    assert answer.error_code == ErrorCode.NONE
    assert [topic.partition_result for topic in answer.replica_election_results] == [[]]


async def test_a_partition_may_stay_and_go_nowhere_else(client: Client) -> None:
    wishes = {0: [1], 1: [1, 2], 2: [1]}
    asked = [ReassignablePartition(partition_index=index, replicas=to) for index, to in wishes.items()]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=asked)])
    answer = await client.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
    [topic] = answer.responses
    assert {p.partition_index: p.error_code for p in topic.partitions} == {
        0: ErrorCode.NONE,
        1: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        2: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


async def test_there_is_no_move_to_give_up_or_to_list(client: Client) -> None:
    asked = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=None)])
    request = AlterPartitionReassignmentsRequest(topics=[asked])
    answer = await client.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    listed = await client.call(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(topics=None)
    )
    assert (listed.error_code, listed.topics) == (ErrorCode.NONE, [])


async def test_an_election_of_a_kind_that_does_not_exist_is_refused(client: Client) -> None:
    of_all = ElectLeadersRequest(election_type=2, topic_partitions=None)
    answer = await client.call(ApiKey.ELECT_LEADERS, 2, of_all)
    assert (answer.error_code, answer.replica_election_results) == (ErrorCode.INVALID_REQUEST, [])


async def test_a_partition_that_does_not_exist_is_missing_first_wherever_it_shall_go(client: Client) -> None:
    wishes = {9: [7], 8: None}
    asked = [ReassignablePartition(partition_index=index, replicas=to) for index, to in wishes.items()]
    topics = [ReassignableTopic(name="t", partitions=asked), ReassignableTopic(name="nothing", partitions=[])]
    request = AlterPartitionReassignmentsRequest(topics=topics)
    answer = await client.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
    found = {
        topic.name: {p.partition_index: p.error_code for p in topic.partitions} for topic in answer.responses
    }
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found == {"t": {9: missing, 8: missing}, "nothing": {}}
