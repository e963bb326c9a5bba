"""What may change about a broker while it runs, and what a legacy AlterConfigs leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykafka_broker.broker import Broker
from pykafka_broker.config import ConfigSource
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    ReplacedConfig,
)
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.protocol.records.record import Record
from tests.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND = 0, 1, 2
RATE = "leader.replication.throttled.rate"
UNCLEAN = "unclean.leader.election.enable"


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    return {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path), "broker.id": "1"}


@pytest.fixture
async def client(properties: dict[str, str]) -> AsyncIterator[Client]:
    async with Broker(properties) as broker:
        connected = await Client.connect(broker.bootstrap_servers)
        yield connected
        await connected.close()


async def alter(client: Client, name: str, *ops: tuple[str, int, str | None]) -> tuple[int, str | None]:
    configs = [AlterableConfig(*op) for op in ops]
    resource = IncrementalResource(resource_type=BROKER, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    response = await client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    return response.responses[0].error_code, response.responses[0].error_message


async def described(client: Client, kind: int, name: str) -> dict[str, tuple[str | None, int]]:
    """Value and source of what is not a default or given at the start."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    response = await client.call(ApiKey.DESCRIBE_CONFIGS, 4, request)
    assert response.results[0].error_code == ErrorCode.NONE
    return {
        entry.name: (entry.value, entry.config_source)
        for entry in response.results[0].configs
        if entry.config_source < ConfigSource.STATIC_BROKER
    }


async def test_a_broker_s_own_value_goes_before_that_of_all(client: Client) -> None:
    assert await alter(client, "", (RATE, SET, "5"), (UNCLEAN, SET, "true")) == (0, None)
    shared = {RATE: ("5", 3), UNCLEAN: ("true", 3)}
    assert await described(client, BROKER, "") == shared
    assert await described(client, BROKER, "1") == shared
    assert await alter(client, "1", (RATE, SET, "1000")) == (0, None)
    assert await described(client, BROKER, "1") == shared | {RATE: ("1000", 2)}
    assert await alter(client, "1", (RATE, DELETE, None)) == (0, None)
    assert await alter(client, "", (RATE, DELETE, None), (UNCLEAN, DELETE, None)) == (0, None)
    assert await described(client, BROKER, "1") == {}


async def test_what_was_changed_is_still_so_after_a_restart(properties: dict[str, str]) -> None:
    for expected in ({}, {RATE: ("7", 2)}):
        async with Broker(properties) as broker:
            client = await Client.connect(broker.bootstrap_servers)
            assert await described(client, BROKER, "1") == expected
            await alter(client, "1", (RATE, SET, "7"))
            await client.close()


@pytest.mark.parametrize(
    ("name", "op", "said"),
    [
        ("1", (RATE, SET, "-1"), f"Invalid value -1 for configuration {RATE}: Value must be at least 0"),
        ("1", (RATE, SET, "x"), f"Invalid value x for configuration {RATE}: Not a number of type LONG"),
        ("1", ("broker.id", SET, "7"), "Cannot update these configs dynamically: [broker.id]"),
        ("1", (RATE, SET, None), f"Null value not supported for : {RATE}"),
        ("99", (RATE, SET, "7"), "Unexpected broker id, expected 1, but received 99"),
        ("x", (RATE, SET, "7"), "Node id must be an integer, but it is: x"),
    ],
)
async def test_what_a_running_broker_cannot_take_is_refused_in_kafka_s_words(
    client: Client, name: str, op: tuple[str, int, str | None], said: str
) -> None:
    assert await alter(client, name, op) == (ErrorCode.INVALID_REQUEST, said)
    assert await described(client, BROKER, "1") == {}


async def test_a_number_is_no_list(client: Client) -> None:
    code, _ = await alter(client, "1", (RATE, APPEND, "7"))
    assert code == ErrorCode.INVALID_CONFIG


async def test_names_nobody_knows_are_kept_and_taken_for_secrets(client: Client) -> None:
    assert await alter(client, "1", ("my.plugin", SET, "7")) == (0, None)
    assert await described(client, BROKER, "1") == {"my.plugin": (None, 2)}


# The legacy request


async def replace(
    client: Client, version: int, *resources: tuple[int, str, dict], only: bool = False
) -> list:
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(kind, name, [ReplacedConfig(*config) for config in configs.items()])
            for kind, name, configs in resources
        ],
        validate_only=only,
    )
    response = await client.call(ApiKey.ALTER_CONFIGS, version, request)
    assert [(r.resource_type, r.resource_name) for r in response.responses] == [r[:2] for r in resources]
    return [r.error_code for r in response.responses]


@pytest.fixture
async def topic(client: Client) -> str:
    wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    await client.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[wanted]))
    return "t"


@pytest.mark.parametrize("version", range(3))
async def test_what_is_not_named_goes_back_to_its_default(client: Client, topic: str, version: int) -> None:
    before = {"retention.ms": "5000", "segment.bytes": "20000"}
    assert await replace(client, version, (TOPIC, topic, before)) == [ErrorCode.NONE]
    assert await replace(client, version, (TOPIC, topic, {"retention.ms": "6000"})) == [ErrorCode.NONE]
    assert await described(client, TOPIC, topic) == {"retention.ms": ("6000", 1)}
    assert await replace(client, version, (BROKER, "1", {RATE: "9"})) == [ErrorCode.NONE]
    assert await replace(client, version, (BROKER, "1", {})) == [ErrorCode.NONE]
    assert await described(client, BROKER, "1") == {}


async def test_what_is_only_tried_changes_nothing(client: Client, topic: str) -> None:
    asked = (TOPIC, topic, {"retention.ms": "5000"}), (BROKER, "", {RATE: "1"})
    assert await replace(client, 2, *asked, only=True) == [ErrorCode.NONE] * 2
    assert await described(client, TOPIC, topic) == {}
    assert await described(client, BROKER, "") == {}


async def test_each_resource_has_an_answer_of_its_own(client: Client, topic: str) -> None:
    answers = await replace(
        client,
        2,
        (TOPIC, topic, {"retention.ms": "5000"}),
        (TOPIC, "unknown", {"retention.ms": "5000"}),
        (TOPIC, "twice", {}),
        (TOPIC, "twice", {}),
        (BROKER, "1", {"broker.id": "2"}),
        (7, "x", {}),
    )
    assert answers == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    refused = [{"retention.ms": "x"}, {"no.such.config": "x"}, {"retention.ms": None}]
    answers = [(await replace(client, 2, (TOPIC, topic, config)))[0] for config in refused]
    assert answers == [ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST]
    assert await described(client, TOPIC, topic) == {"retention.ms": ("5000", 1)}


async def test_topics_without_a_value_of_their_own_go_by_what_was_changed(
    client: Client, topic: str, properties: dict[str, str]
) -> None:
    await alter(client, "", ("message.max.bytes", SET, "500"), ("log.retention.ms", SET, "60000"))
    await alter(client, "1", ("message.max.bytes", SET, "600"))
    seen = await described(client, TOPIC, topic)
    assert seen["max.message.bytes"] == ("600", ConfigSource.DYNAMIC_BROKER)
    assert seen["retention.ms"] == ("60000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert await produced(client, topic, 550) == ErrorCode.NONE
    await alter(client, "1", ("message.max.bytes", DELETE, None))
    assert await produced(client, topic, 550) == ErrorCode.MESSAGE_TOO_LARGE
    await alter(client, "", ("message.max.bytes", DELETE, None), ("log.retention.ms", DELETE, None))
    assert await produced(client, topic, 550) == ErrorCode.NONE
    assert {"max.message.bytes", "retention.ms"}.isdisjoint(await described(client, TOPIC, topic))


async def test_topics_go_by_what_was_changed_after_a_restart_too(properties: dict[str, str]) -> None:
    for restarted in (False, True):
        async with Broker(properties) as broker:
            client = await Client.connect(broker.bootstrap_servers)
            if not restarted:
                made = CreateTopicsRequest(
                    topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
                )
                await client.call(ApiKey.CREATE_TOPICS, 5, made)
                await alter(client, "", ("message.max.bytes", SET, "500"))
            assert await produced(client, "t", 550) == ErrorCode.MESSAGE_TOO_LARGE
            await client.close()


async def produced(client: Client, topic: str, size: int) -> int:
    """What becomes of a batch of about that many bytes."""
    records = build_batch([Record(None, b"x" * (size - 70), 0)])
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])
    response = await client.call(ApiKey.PRODUCE, 9, request)
    return response.responses[0].partition_responses[0].error_code
