"""What lies in the log directories of a broker, as it tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykafka_broker.broker import Broker
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A broker with two directories, and two topics of four partitions."""
    dirs = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    async with Broker({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": dirs}) as broker:
        connected = await Client.connect(broker.bootstrap_servers)
        topics = [CreatableTopic(name=name, num_partitions=4, replication_factor=1) for name in "tu"]
        await connected.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics))
        yield connected
        await connected.close()


@pytest.mark.parametrize("version", range(6))
async def test_every_partition_lies_in_one_of_the_directories(
    client: Client, tmp_path: Path, version: int
) -> None:
    response = await client.call(ApiKey.DESCRIBE_LOG_DIRS, version, DescribeLogDirsRequest(topics=None))
    assert [result.log_dir for result in response.results] == [str(tmp_path / "a"), str(tmp_path / "b")]
    found = []
    for result in response.results:
        assert result.error_code == ErrorCode.NONE
        for topic in result.topics:
            for partition in topic.partitions:
                name = f"{topic.name}-{partition.partition_index}"
                found.append(name)
                assert (tmp_path / result.log_dir / name).is_dir()
                assert (partition.partition_size, partition.offset_lag, partition.is_future_key) == (
                    0,
                    0,
                    False,
                )
    assert sorted(found) == [f"{name}-{index}" for name in "tu" for index in range(4)]


async def test_the_room_that_is_left_is_told_from_version_4(client: Client) -> None:
    request = DescribeLogDirsRequest(topics=None)
    for result in (await client.call(ApiKey.DESCRIBE_LOG_DIRS, 4, request)).results:
        assert 0 < result.usable_bytes <= result.total_bytes


async def test_only_what_was_asked_for_is_told(client: Client) -> None:
    request = DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic("t", [1, 9]), DescribableLogDirTopic("unknown", [0])]
    )
    response = await client.call(ApiKey.DESCRIBE_LOG_DIRS, 4, request)
    told = [(t.name, p.partition_index) for r in response.results for t in r.topics for p in t.partitions]
    assert told == [("t", 1)]
    assert len(response.results) == 2
