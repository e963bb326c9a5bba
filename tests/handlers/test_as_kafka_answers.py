"""Corners that the differential runs found, answered as Apache Kafka 4.3 answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder

from pykafka_broker.broker import Broker
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import describe_topic_partitions as describe
from pykafka_broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka_broker.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestTopic
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import read_header, verify_crc
from tests.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from uuid import UUID

K, E = ApiKey, ErrorCode
TOPIC, GROUP_OF_CONFIGS = 2, 3
SET, APPEND, NO_SUCH_OPERATION = 0, 2, 4
LOG_APPEND_TIME, NO_SUCH_CODEC = 8, 7


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with Broker({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}) as broker:
        connected = await Client.connect(broker.bootstrap_servers)
        await create(connected, CreatableTopic(name="t", num_partitions=1, replication_factor=1))
        yield connected
        await connected.close()


async def create(client: Client, *topics: CreatableTopic) -> list[UUID]:
    answer = await client.call(K.CREATE_TOPICS, 7, CreateTopicsRequest(topics=list(topics)))
    return [topic.topic_id for topic in answer.topics]


def batch(attributes: int = 0, timestamp: int = 5) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    builder.append(0, timestamp, b"k", b"v", [])
    made = bytearray(builder.build())
    made[22] |= attributes
    made[17:21] = _crc(made)
    return bytes(made)


def _crc(made: bytearray) -> bytes:
    return crc32c(bytes(made[21:])).to_bytes(4, "big")


async def produce(
    client: Client, records: bytes, topic: str = "t", acks: int = -1, version: int = 9
) -> tuple[int, int]:
    """Error code and where the log is said to start."""
    data = [PartitionProduceData(index=0, records=records)]
    request = ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )
    answer = (await client.call(K.PRODUCE, version, request)).responses[0].partition_responses[0]
    return answer.error_code, answer.log_start_offset


@pytest.mark.parametrize(
    ("records", "topic", "acks", "version", "told"),
    [
        (batch() * 2, "t", 2, 9, (E.INVALID_RECORD, -1)),
        (batch()[:-3], "missing", -1, 9, (E.UNKNOWN_TOPIC_OR_PARTITION, -1)),
        (batch()[:16] + b"\x03" + batch()[17:], "missing", -1, 9, (E.CORRUPT_MESSAGE, -1)),
        (batch() + bytes(20), "t", -1, 9, (E.CORRUPT_MESSAGE, -1)),
        (batch() + bytes(20), "missing", -1, 9, (E.UNKNOWN_TOPIC_OR_PARTITION, -1)),
        (batch(NO_SUCH_CODEC), "t", -1, 9, (E.UNKNOWN_SERVER_ERROR, 0)),
        (batch(NO_SUCH_CODEC), "t", 2, 6, (E.UNKNOWN_SERVER_ERROR, -1)),
    ],
)
async def test_records_are_taken_apart_before_anything_else_is_looked_at(
    client: Client, records: bytes, topic: str, acks: int, version: int, told: tuple[ErrorCode, int]
) -> None:
    assert await produce(client, records, topic, acks, version) == told


async def test_a_producer_does_not_decide_who_sets_the_time(client: Client) -> None:
    assert await produce(client, batch(LOG_APPEND_TIME)) == (E.NONE, 0)
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_id=-1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )
    data = bytes((await client.call(K.FETCH, 11, request)).responses[0].partitions[0].records)
    header = read_header(data)
    assert not header.attributes & LOG_APPEND_TIME
    assert verify_crc(data, 0, header)


async def test_a_session_that_is_left_without_partitions_ends(client: Client) -> None:
    def ask(
        session: int, epoch: int, topics: list[FetchTopic], forgotten: list[ForgottenTopic]
    ) -> FetchRequest:
        return FetchRequest(
            replica_id=-1,
            session_id=session,
            session_epoch=epoch,
            max_bytes=1 << 20,
            topics=topics,
            forgotten_topics_data=forgotten,
        )

    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    first = await client.call(K.FETCH, 11, ask(0, 0, [FetchTopic(topic="t", partitions=[wanted])], []))
    assert first.session_id
    forgotten = [ForgottenTopic(topic="t", partitions=[0])]
    assert (await client.call(K.FETCH, 11, ask(first.session_id, 1, [], forgotten))).session_id == 0
    gone = await client.call(K.FETCH, 11, ask(first.session_id, 2, [], []))
    assert gone.error_code == E.FETCH_SESSION_ID_NOT_FOUND


async def test_a_session_remembers_a_topic_that_is_deleted(client: Client) -> None:
    [by_id] = await create(client, CreatableTopic(name="u", num_partitions=1, replication_factor=1))
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic_id=by_id, partitions=[wanted])]
    request = FetchRequest(replica_id=-1, session_epoch=0, max_bytes=1 << 20, topics=topics)
    session = (await client.call(K.FETCH, 13, request)).session_id
    by_name = DeleteTopicsRequest(topics=[DeleteTopicState(name="u")], timeout_ms=1000)
    await client.call(K.DELETE_TOPICS, 6, by_name)
    request.session_id, request.session_epoch, request.topics = session, 1, []
    answer = await client.call(K.FETCH, 13, request)
    assert answer.responses[0].partitions[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION


async def test_the_start_of_a_log_that_was_never_written_is_told_with_the_epoch_of_its_leader(
    client: Client,
) -> None:
    asked = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-2)])
    answer = await client.call(K.LIST_OFFSETS, 7, ListOffsetsRequest(replica_id=-1, topics=[asked]))
    [told] = answer.topics[0].partitions
    assert (told.offset, told.leader_epoch) == (0, 0)


@pytest.mark.parametrize(("timestamp", "most", "code"), [(-5, 1, E.UNSUPPORTED_VERSION), (-1, -1, -1)])
async def test_what_the_oldest_version_cannot_be_asked(
    client: Client, timestamp: int, most: int, code: int
) -> None:
    place = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=most)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[place])])
    answer = await client.call(K.LIST_OFFSETS, 0, request)
    assert answer.topics[0].partitions[0].error_code == code


async def test_records_of_a_topic_without_a_cleanup_policy_can_be_deleted(client: Client) -> None:
    kept = CreatableTopicConfig(name="cleanup.policy", value="")
    await create(client, CreatableTopic(name="u", num_partitions=1, replication_factor=1, configs=[kept]))
    place = DeleteRecordsPartition(partition_index=0, offset=0)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="u", partitions=[place])], timeout_ms=1000)
    answer = await client.call(K.DELETE_RECORDS, 2, request)
    assert answer.topics[0].partitions[0].error_code == E.NONE


async def test_who_asks_for_metadata_by_id_is_told_of_ids_only(client: Client) -> None:
    [by_id] = await create(client, CreatableTopic(name="u", num_partitions=1, replication_factor=1))
    topics = [MetadataRequestTopic(topic_id=by_id, name=None), MetadataRequestTopic(name="t")]
    answer = await client.call(K.METADATA, 12, MetadataRequest(topics=topics))
    assert [topic.name for topic in answer.topics] == ["u"]


async def test_metadata_answers_once_and_makes_no_topic_whose_name_collides(client: Client) -> None:
    await create(client, CreatableTopic(name="a.b", num_partitions=1, replication_factor=1))
    names = ["t", "t", "a_b"]
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    answer = await client.call(K.METADATA, 9, asked)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("t", E.NONE),
        ("a_b", E.UNKNOWN_TOPIC_OR_PARTITION),
    ]


async def test_what_may_be_done_with_a_topic_is_told_of_unknown_ones_too(client: Client) -> None:
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name="missing")],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    [topic] = (await client.call(K.METADATA, 9, asked)).topics
    assert (topic.error_code, topic.topic_authorized_operations > 0) == (E.UNKNOWN_TOPIC_OR_PARTITION, True)


async def test_a_cursor_points_at_a_topic_that_is_asked_for(client: Client) -> None:
    def ask(cursor: str | None, *topics: str, most: int = 10) -> describe.DescribeTopicPartitionsRequest:
        return describe.DescribeTopicPartitionsRequest(
            topics=[describe.TopicRequest(name=topic) for topic in topics],
            response_partition_limit=most,
            cursor=None if cursor is None else describe.Cursor(topic_name=cursor, partition_index=0),
        )

    refused = await client.call(K.DESCRIBE_TOPIC_PARTITIONS, 0, ask("s", "t"))
    assert [topic.error_code for topic in refused.topics] == [E.INVALID_REQUEST]
    # A page that is full ends before the next topic, whether there is such a topic or not.
    page = await client.call(K.DESCRIBE_TOPIC_PARTITIONS, 0, ask(None, "t", "unknown", most=1))
    assert [topic.name for topic in page.topics] == ["t"]
    assert (page.next_cursor.topic_name, page.next_cursor.partition_index) == ("unknown", 0)


async def test_a_topic_is_deleted_by_name_or_by_id_and_not_by_both(client: Client) -> None:
    [by_id] = await create(client, CreatableTopic(name="u", num_partitions=1, replication_factor=1))
    both = [DeleteTopicState(name=None, topic_id=by_id), DeleteTopicState(name="u")]
    answer = await client.call(K.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=both, timeout_ms=1000))
    assert [(each.name, each.topic_id, each.error_code) for each in answer.responses] == [
        ("u", by_id, E.INVALID_REQUEST)
    ]


async def test_a_new_topic_repeats_its_configs_as_they_were_written(client: Client) -> None:
    configs = [CreatableTopicConfig(name="retention.ms", value=" 1000 ")]
    topic = CreatableTopic(name="u", num_partitions=1, replication_factor=1, configs=configs)
    answer = await client.call(K.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))
    assert {entry.name: entry.value for entry in answer.topics[0].configs}["retention.ms"] == " 1000 "


async def test_one_resource_of_a_kind_that_does_not_exist_and_none_is_described(client: Client) -> None:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name="t", configuration_keys=None)
        for kind in (TOPIC, GROUP_OF_CONFIGS)
    ]
    answer = await client.call(K.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=resources))
    assert [each.error_code for each in answer.results] == [E.INVALID_REQUEST] * 2


@pytest.mark.parametrize(
    ("operation", "value", "codes"),
    [
        (NO_SUCH_OPERATION, "compact", [E.UNKNOWN_SERVER_ERROR] * 2),
        (APPEND, "", [E.INVALID_CONFIG, E.NONE]),
    ],
)
async def test_an_operation_on_configs_that_cannot_be(
    client: Client, operation: int, value: str, codes: list[ErrorCode]
) -> None:
    await create(client, CreatableTopic(name="u", num_partitions=1, replication_factor=1))
    wrong = AlterableConfig(name="cleanup.policy", config_operation=operation, value=value)
    right = AlterableConfig(name="retention.ms", config_operation=SET, value="1000")
    resources = [
        AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[config])
        for name, config in (("t", wrong), ("u", right))
    ]
    answer = await client.call(
        K.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=resources)
    )
    assert [each.error_code for each in answer.responses] == codes


@pytest.mark.parametrize(
    ("name", "changes", "code"),
    [
        ("", [("retention.ms", SET, "1")], E.INVALID_REQUEST),
        ("a b", [("retention.ms", SET, "nonsense")], E.INVALID_TOPIC_EXCEPTION),
        ("a b", [("retention.ms", APPEND, "1")], E.INVALID_CONFIG),
        ("a b", [("retention.ms", APPEND, "1"), ("segment.bytes", SET, None)], E.INVALID_REQUEST),
        ("missing", [("retention.ms", SET, "nonsense")], E.INVALID_CONFIG),
    ],
)
async def test_of_several_things_wrong_with_a_change_the_same_is_named_first(
    client: Client, name: str, changes: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    configs = [AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in changes]
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = await client.call(K.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert [result.error_code for result in answer.responses] == [code]


async def test_what_is_wrong_in_itself_is_set_aside_before_operations_are_looked_at(client: Client) -> None:
    async def ask(*configs: AlterableConfig) -> list[int]:
        good = AlterableConfig(name="retention.ms", config_operation=SET, value="1")
        resources = [
            AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[good]),
            AlterConfigsResource(resource_type=TOPIC, resource_name="u", configs=list(configs)),
        ]
        request = IncrementalAlterConfigsRequest(resources=resources, validate_only=True)
        answer = await client.call(K.INCREMENTAL_ALTER_CONFIGS, 1, request)
        return [result.error_code for result in answer.responses]

    odd = AlterableConfig(name="segment.ms", config_operation=NO_SUCH_OPERATION, value="1")
    absent = AlterableConfig(name="segment.bytes", config_operation=SET, value=None)
    assert await ask(odd) == [E.UNKNOWN_SERVER_ERROR, E.UNKNOWN_SERVER_ERROR]
    assert await ask(odd, absent) == [E.NONE, E.INVALID_REQUEST]


@pytest.mark.parametrize(
    ("partitions", "factor", "config", "code"),
    [
        (0, 0, {}, E.INVALID_REPLICATION_FACTOR),
        (0, 9, {}, E.INVALID_PARTITIONS),
        (1, 1, {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"}, E.INVALID_CONFIG),
    ],
)
async def test_a_topic_that_cannot_be_is_not_made(
    client: Client, partitions: int, factor: int, config: dict[str, str], code: ErrorCode
) -> None:
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in config.items()]
    wish = CreatableTopic(name="n", num_partitions=partitions, replication_factor=factor, configs=configs)
    answer = await client.call(K.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[wish]))
    assert [topic.error_code for topic in answer.topics] == [code]


async def test_of_topics_without_partitions_only_unknown_ones_are_repeated(client: Client) -> None:
    await client.call(K.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
    names = ["t", "nowhere"]
    for version in (2, 9):
        asked = [OffsetCommitRequestTopic(name=name, partitions=[]) for name in names]
        commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=asked)
        answer = await client.call(K.OFFSET_COMMIT, version, commit)
        assert [topic.name for topic in answer.topics] == ["nowhere"]
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    whole = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[place])],
    )
    await client.call(K.OFFSET_COMMIT, 9, whole)
    wanted = [OffsetDeleteRequestTopic(name=name, partitions=[]) for name in names]
    answer = await client.call(K.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id="g", topics=wanted))
    assert [topic.name for topic in answer.topics] == ["nowhere"]


@pytest.mark.parametrize(("version", "told"), [(6, ""), (7, None)])
async def test_a_protocol_without_a_name_is_none_to_those_who_can_be_told(
    client: Client, version: int, told: str | None
) -> None:
    await client.call(K.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
    protocol = JoinGroupRequestProtocol(name="", metadata=b"")
    request = JoinGroupRequest(
        group_id=f"g{version}",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=1000,
        group_instance_id="i",
        protocol_type="consumer",
        protocols=[protocol],
    )
    answer = await client.call(K.JOIN_GROUP, version, request)
    assert (answer.error_code, answer.protocol_name) == (E.NONE, told)
