"""The broker as a program embeds it: started, used, stopped and started again in one process."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from pykafka_broker.broker import Broker, StartError
from pykafka_broker.clock import SystemClock
from pykafka_broker.cluster.sqlite_store import SqliteStore
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.protocol.records.record import Record, iter_records
from tests.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _properties(path: Path, **more: str) -> dict[str, str]:
    return {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(path)} | {
        name.replace("_", "."): value for name, value in more.items()
    }


@asynccontextmanager
async def running(path: Path, **more: str):
    async with Broker(_properties(path, **more)) as broker:
        client = await Client.connect(broker.bootstrap_servers)
        try:
            yield broker, client
        finally:
            await client.close()


def _batch(*values: bytes) -> bytearray:
    return bytearray(
        build_batch([Record(None, value, 1_700_000_000_000, (), i) for i, value in enumerate(values)])
    )


async def _produce(client: Client, topic: str, *values: bytes, acks: int = -1, partition: int = 0):
    request = ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=partition, records=_batch(*values))]
            )
        ],
    )
    if acks == 0:
        return await client.send(ApiKey.PRODUCE, 9, request)
    return (await client.call(ApiKey.PRODUCE, 9, request)).responses[0].partition_responses[0]


def _fetch(topic: str, offset: int, *, wait_ms: int = 0, min_bytes: int = 1, **more: int) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)],
            )
        ],
        **more,
    )


async def _values(client: Client, topic: str, offset: int) -> list[bytes | None]:
    response = await client.call(ApiKey.FETCH, 12, _fetch(topic, offset))
    records = response.responses[0].partitions[0].records
    return [record.value for record in iter_records(memoryview(records)) if record.offset >= offset]


async def _create(client: Client, topic: str, partitions: int = 1):
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)]
    )
    return (await client.call(ApiKey.CREATE_TOPICS, 7, request)).topics[0]


async def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as (first, client):
        await _create(client, "t")
        assert (await _produce(client, "t", b"a", b"b")).base_offset == 0
        cluster_id = first.cluster_id
    async with running(tmp_path) as (second, client):
        assert second.cluster_id == cluster_id
        assert (await _produce(client, "t", b"c")).base_offset == 2
        assert await _values(client, "t", 0) == [b"a", b"b"]
        assert await _values(client, "t", 2) == [b"c"]


async def _delete(client: Client, topic: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=1000)
    await client.call(ApiKey.DELETE_TOPICS, 6, request)


async def _leave_checkpoints_of(path: Path, topic: str) -> None:
    """A clean stop that notes of the topic that it starts at 100."""
    async with running(path) as (_, client):
        await _create(client, topic)
        await _produce(client, topic, *[b"old"] * 120)
        wanted = DeleteRecordsPartition(partition_index=0, offset=100)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])])
        await client.call(ApiKey.DELETE_RECORDS, 2, request)


async def test_a_topic_of_a_deleted_ones_name_keeps_what_was_acknowledged_though_the_broker_is_killed(
    tmp_path: Path,
) -> None:
    await _leave_checkpoints_of(tmp_path / "alive", "t")
    async with running(tmp_path / "alive") as (_, client):
        await _delete(client, "t")
        await _create(client, "t")
        assert (await _produce(client, "t", b"a", b"b")).base_offset == 0
        shutil.copytree(tmp_path / "alive", tmp_path / "killed")
    async with running(tmp_path / "killed") as (_, client):
        assert await _values(client, "t", 0) == [b"a", b"b"]


async def test_a_broker_killed_after_a_deletion_does_not_remember_where_the_topic_began(
    tmp_path: Path,
) -> None:
    await _leave_checkpoints_of(tmp_path / "alive", "t")
    async with running(tmp_path / "alive") as (_, client):
        await _delete(client, "t")
        shutil.copytree(tmp_path / "alive", tmp_path / "killed")
    async with running(tmp_path / "killed") as (_, client):
        await _create(client, "t")
        assert (await _produce(client, "t", b"a")).base_offset == 0


async def test_several_brokers_live_in_one_process(tmp_path: Path) -> None:
    async with running(tmp_path / "one") as (one, client_one), running(tmp_path / "two") as (two, client_two):
        assert one.bootstrap_servers != two.bootstrap_servers
        assert one.cluster_id != two.cluster_id
        await _create(client_one, "only-here")
        response = await client_two.call(
            ApiKey.METADATA,
            12,
            MetadataRequest(topics=[MetadataRequestTopic(name="only-here")], allow_auto_topic_creation=False),
        )
        assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_directory_in_use_is_refused_in_one_line(tmp_path: Path) -> None:
    async with running(tmp_path):
        with pytest.raises(StartError, match="another broker"):
            await Broker(_properties(tmp_path)).start()


async def test_a_taken_port_is_refused_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with running(tmp_path / "one") as (one, _):
        taken = _properties(tmp_path / "two") | {"listeners": f"PLAINTEXT://{one.bootstrap_servers}"}
        with pytest.raises(StartError, match="address already in use"):
            await Broker(taken).start()
        async with running(tmp_path / "two"):
            pass  # the directory was given back


async def test_pipelined_requests_are_answered_in_order(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, client):
        await _create(client, "t")
        await client.send(ApiKey.FETCH, 12, _fetch("t", 0, wait_ms=50))
        for version in (0, 3):
            await client.send(
                ApiKey.API_VERSIONS,
                version,
                ApiVersionsRequest(client_software_name="test", client_software_version="1"),
            )
        assert (await client.receive(ApiKey.FETCH, 12)).error_code == ErrorCode.NONE
        assert (await client.receive(ApiKey.API_VERSIONS, 0)).api_keys
        assert (await client.receive(ApiKey.API_VERSIONS, 3)).api_keys


async def test_a_waiting_fetch_is_woken_by_an_append(tmp_path: Path) -> None:
    async with running(tmp_path) as (broker, producer):
        await _create(producer, "t")
        consumer = await Client.connect(broker.bootstrap_servers)
        waiting = asyncio.ensure_future(consumer.call(ApiKey.FETCH, 12, _fetch("t", 0, wait_ms=60_000)))
        await _produce(producer, "t", b"now")
        response = await asyncio.wait_for(waiting, 10)
        assert bytes(response.responses[0].partitions[0].records).endswith(b"now\x00")
        await consumer.close()


def test_every_fetch_without_data_ends_when_its_time_is_over(tmp_path: Path) -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop has no build for this platform")

    async def fetch_at_the_end() -> None:
        async with running(tmp_path) as (_, client):
            await _create(client, "t")
            for wait_ms in range(1, 40):  # timers are rounded to milliseconds: some fire before their time
                await asyncio.wait_for(client.call(ApiKey.FETCH, 12, _fetch("t", 0, wait_ms=wait_ms)), 10)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(fetch_at_the_end())


async def test_a_waiting_fetch_learns_that_its_topic_is_gone(tmp_path: Path) -> None:
    async with running(tmp_path) as (broker, admin):
        await _create(admin, "t")
        consumer = await Client.connect(broker.bootstrap_servers)
        waiting = asyncio.ensure_future(consumer.call(ApiKey.FETCH, 12, _fetch("t", 0, wait_ms=60_000)))
        await asyncio.sleep(0)
        await admin.call(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
        response = await asyncio.wait_for(waiting, 10)
        assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await consumer.close()


async def test_acks_zero_is_not_answered_and_kept(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, client):
        await _create(client, "t")
        await _produce(client, "t", b"silent", acks=0)
        assert (await _produce(client, "t", b"loud")).base_offset == 1


async def test_acks_zero_to_an_unknown_topic_closes_the_connection(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, client):
        await _produce(client, "nowhere", b"x", acks=0)
        with pytest.raises(asyncio.IncompleteReadError):
            await client.receive(ApiKey.PRODUCE, 9)


async def test_one_bad_batch_does_not_harm_its_neighbour(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, client):
        await _create(client, "t", partitions=2)
        broken = _batch(b"broken")
        broken[-1] ^= 0xFF
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name="t",
                    partition_data=[
                        PartitionProduceData(index=0, records=broken),
                        PartitionProduceData(index=1, records=_batch(b"good")),
                    ],
                )
            ],
        )
        bad, good = (await client.call(ApiKey.PRODUCE, 9, request)).responses[0].partition_responses
        assert (bad.error_code, good.error_code) == (ErrorCode.CORRUPT_MESSAGE, ErrorCode.NONE)


async def test_a_session_mentions_only_what_changed(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, client):
        await _create(client, "t")
        opened = await client.call(ApiKey.FETCH, 12, _fetch("t", 0, session_epoch=0))
        assert opened.session_id > 0
        assert len(opened.responses) == 1
        request = FetchRequest(max_wait_ms=0, min_bytes=1, session_id=opened.session_id, session_epoch=1)
        assert (await client.call(ApiKey.FETCH, 12, request)).responses == []
        await _produce(client, "t", b"news")
        request.session_epoch = 2
        assert len((await client.call(ApiKey.FETCH, 12, request)).responses) == 1
        assert (
            await client.call(ApiKey.FETCH, 12, request)
        ).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


async def test_topics_are_reached_by_id(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, client):
        created = await _create(client, "t")
        by_id = MetadataRequest(topics=[MetadataRequestTopic(topic_id=created.topic_id, name=None)])
        assert (await client.call(ApiKey.METADATA, 12, by_id)).topics[0].name == "t"
        by_id.topics[0].topic_id = UUID(int=77)
        assert (await client.call(ApiKey.METADATA, 12, by_id)).topics[
            0
        ].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_every_acknowledgement_waits_for_the_disk_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    import os

    real: Callable[[int], None] = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (synced.append(fd), real(fd))[1])
    async with running(tmp_path, log_flush_interval_messages="1") as (_, client):
        await _create(client, "t")
        before = len(synced)
        await _produce(client, "t", b"safe")
        assert len(synced) > before


async def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    async with running(tmp_path, connections_max_idle_ms="100") as (_, client):
        with pytest.raises(asyncio.IncompleteReadError):
            await asyncio.wait_for(client.receive(ApiKey.API_VERSIONS, 0), 10)


async def test_a_directory_is_adopted_though_the_first_try_was_cut_short(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, client):
        await _create(client, "kept")
        await _produce(client, "kept", b"one")
    (tmp_path / "metadata.sqlite").unlink()
    store = await SqliteStore.open(tmp_path / "metadata.sqlite", SystemClock())
    await store.close()
    async with running(tmp_path) as (_, client):
        assert await _values(client, "kept", 0) == [b"one"]
