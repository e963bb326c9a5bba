"""Requests that can be read but ask for what cannot be: answered, never stumbled over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from pykafka_broker.broker import Broker
from pykafka_broker.handlers.dispatch import Dispatcher
from pykafka_broker.handlers.services import Route
from pykafka_broker.network.connection import Client as Peer
from pykafka_broker.network.connection import ProtocolViolation
from pykafka_broker.protocol.api import APIS, ApiKey, RequestHeader, frame_request
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from pykafka_broker.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with Broker({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}) as broker:
        connected = await Client.connect(broker.bootstrap_servers)
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        await connected.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))
        yield connected
        await connected.close()


async def test_a_resource_named_twice_is_not_altered(client: Client) -> None:
    resources = [
        AlterConfigsResource(
            resource_type=2,
            resource_name="t",
            configs=[AlterableConfig(name="retention.ms", config_operation=0, value=value)],
        )
        for value in ("1", "2")
    ]
    request = IncrementalAlterConfigsRequest(resources=resources)
    response = await client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert [each.error_code for each in response.responses] == [ErrorCode.INVALID_REQUEST] * 2


async def test_a_list_grows_no_longer_than_a_response_can_tell(client: Client) -> None:
    async def append(first: int) -> ErrorCode:
        items = ",".join(f"{number}:{number}" for number in range(first, first + 2000))
        config = AlterableConfig(
            name="leader.replication.throttled.replicas", config_operation=2, value=items
        )
        resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        response = await client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        return ErrorCode(response.responses[0].error_code)

    assert [await append(10_000), await append(20_000)] == [ErrorCode.NONE, ErrorCode.INVALID_CONFIG]
    for version in (1, 4):
        asked = DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None)
        described = await client.call(
            ApiKey.DESCRIBE_CONFIGS, version, DescribeConfigsRequest(resources=[asked])
        )
        assert described.results[0].error_code == ErrorCode.NONE


async def test_an_error_repeats_no_more_than_a_response_can_tell(client: Client) -> None:
    config = AlterableConfig(name="retention.ms", config_operation=0, value="x" * 32_700)
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    for version in (0, 1):
        response = await client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, request)
        assert response.responses[0].error_code == ErrorCode.INVALID_CONFIG


async def test_a_request_makes_no_more_partitions_than_kafka_allows(client: Client) -> None:
    topics = [CreatableTopic(name=f"t{n}", num_partitions=5_001, replication_factor=1) for n in range(2)]
    request = CreateTopicsRequest(topics=topics, validate_only=True)
    response = await client.call(ApiKey.CREATE_TOPICS, 7, request)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.POLICY_VIOLATION] * 2


async def test_a_protocol_that_is_switched_off_is_not_spoken(tmp_path: Path) -> None:
    properties = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}
    async with Broker(properties | {"group.coordinator.rebalance.protocols": "classic"}) as broker:
        client = await Client.connect(broker.bootstrap_servers)
        asked = {
            ApiKey.CONSUMER_GROUP_HEARTBEAT: ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"),
            ApiKey.CONSUMER_GROUP_DESCRIBE: ConsumerGroupDescribeRequest(group_ids=["g"]),
        }
        beat, described = [await client.call(key, 1, request) for key, request in asked.items()]
        assert beat.error_code == described.groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION
        await client.close()


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(
    "odd", [MetadataRequestTopic(name=None), MetadataRequestTopic(name="t", topic_id=UUID(int=5))]
)
async def test_metadata_looks_ids_up_from_version_12_only(
    client: Client, version: int, odd: MetadataRequestTopic
) -> None:
    request = MetadataRequest(topics=[odd, MetadataRequestTopic(name="t")])
    response = await client.call(ApiKey.METADATA, version, request)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize(
    ("epoch", "found"), [(-1, (-1, -1)), (-2, (-2, 0)), (-(2**31), (-(2**31), 0)), (2**31 - 1, (-1, -1))]
)
async def test_an_impossible_epoch_is_answered_as_by_kafka(
    client: Client, epoch: int, found: tuple[int, int]
) -> None:
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-2, topics=[OffsetForLeaderTopic(topic="t", partitions=[asked])]
    )
    response = await client.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request)
    [answer] = response.topics[0].partitions
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (ErrorCode.NONE, *found)


@pytest.mark.parametrize("later", [False, True])
async def test_a_response_that_cannot_be_written_ends_the_connection(later: bool) -> None:
    unwritable = MetadataResponse(topics=[MetadataResponseTopic(name=None)])

    async def eventually() -> MetadataResponse:
        return unwritable

    class OneRoute:
        served = (Route(APIS[ApiKey.METADATA], lambda *_: eventually() if later else unwritable, 0, 9, 0),)

    services: Any = OneRoute()
    frame = b"".join(frame_request(RequestHeader(ApiKey.METADATA, 9, 1, None), MetadataRequest()))

    async def ask() -> None:
        reply: Any = Dispatcher(services)(Peer("127.0.0.1", 1, "PLAINTEXT"), memoryview(bytearray(frame[4:])))
        await reply

    with pytest.raises(ProtocolViolation, match="MetadataResponse cannot be written"):
        await ask()
