"""aiokafka: produce, consume assigned partitions, administer."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    for_code,
)

from compat_tests import versions
from compat_tests.samples import BEGIN_MS, BIG, CODECS, DELIVERY, SHAPES, Sample
from compat_tests.samples import samples as all_samples

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server

pytestmark = versions.AIOKAFKA


def samples() -> list[Sample]:
    return all_samples(all_null=False)


async def produce(
    broker: Server, topic: str, records: list[Sample], partition: int = 0, **config: object
) -> list[int]:
    """Send the records; the offsets the broker acknowledged (none with acks=0)."""
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=20, **config) as producer:
        sent = [
            await producer.send(
                topic, r.value, r.key, partition, timestamp_ms=r.timestamp, headers=list(r.headers)
            )
            for r in records
        ]
        await producer.flush()
        return [done.offset for done in await asyncio.gather(*sent) if done is not None]


async def consume(
    broker: Server, topic: str, count: int, start: int | None = None, partition: int = 0
) -> list:
    """The next `count` records of an assigned partition, from its beginning or from an offset."""
    place = TopicPartition(topic, partition)
    async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign([place])
        if start is None:
            await consumer.seek_to_beginning(place)
        else:
            consumer.seek(place, start)
        async with asyncio.timeout(30):
            return [await consumer.getone() for _ in range(count)]


def as_samples(records: list) -> list[Sample]:
    return [Sample(r.key, r.value, tuple(r.headers), r.timestamp) for r in records]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await condition():  # noqa: ASYNC110 - the broker has no event for us
            await asyncio.sleep(0.02)


@pytest.fixture
async def admin(broker: Server) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await client.start()
    yield client
    await client.close()


@pytest.mark.feature(*SHAPES)
@pytest.mark.parametrize("codec", CODECS)
async def test_records_come_back_as_they_were_sent(broker: Server, topic: MakeTopic, codec: str) -> None:
    name = topic()
    offsets = await produce(broker, name, samples(), compression_type=None if codec == "none" else codec)
    assert offsets == list(range(len(samples())))
    got = await consume(broker, name, len(samples()))
    assert as_samples(got) == samples()
    assert [r.offset for r in got] == offsets
    assert {r.timestamp_type for r in got} == {0}


@pytest.mark.feature("produce: acks", "produce: idempotence")
@pytest.mark.parametrize(("acks", "idempotent"), DELIVERY)
async def test_every_level_of_acknowledgement_stores_all(
    broker: Server, topic: MakeTopic, acks: str | int, idempotent: bool
) -> None:
    name = topic(partitions=2)
    await produce(broker, name, samples(), partition=1, acks=acks, enable_idempotence=idempotent)
    assert as_samples(await consume(broker, name, len(samples()), partition=1)) == samples()


@pytest.mark.feature("produce: timestamps")
@pytest.mark.parametrize("codec", [None, "snappy"])
async def test_log_append_time_replaces_the_clients(
    broker: Server, topic: MakeTopic, codec: str | None
) -> None:
    name = topic(message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    await produce(broker, name, samples(), compression_type=codec)
    got = await consume(broker, name, len(samples()))
    assert {r.timestamp_type for r in got} == {1}
    assert all(before <= r.timestamp <= time.time() * 1000 for r in got)


@pytest.mark.feature("big messages")
async def test_a_record_of_900_kb_passes(broker: Server, topic: MakeTopic) -> None:
    name = topic()
    await produce(broker, name, [Sample(None, BIG, (), BEGIN_MS)] * 2)
    assert [r.value for r in await consume(broker, name, 2)] == [BIG, BIG]


@pytest.mark.feature("seek by offset", "seek by timestamp")
async def test_a_reader_finds_its_place_by_offset_and_by_time(broker: Server, topic: MakeTopic) -> None:
    name = topic()
    place = TopicPartition(name, 0)
    for n in range(10):
        await produce(broker, name, [Sample(None, b"%d" % n, (), BEGIN_MS + n * 1000)])
    assert [r.offset for r in await consume(broker, name, 3, start=7)] == [7, 8, 9]
    async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
        consumer.assign([place])
        assert await consumer.beginning_offsets([place]) == {place: 0}
        assert await consumer.end_offsets([place]) == {place: 10}
        asked = (-5, 0, 3001, 9000, 9001)
        found = [(await consumer.offsets_for_times({place: BEGIN_MS + at}))[place] for at in asked]
    expected = [(0, 0), (0, 0), (4, 4000), (9, 9000), None]
    assert [f and (f.offset, f.timestamp - BEGIN_MS) for f in found] == expected


@pytest.mark.feature("seek by offset")
async def test_an_offset_past_the_end_is_refused(broker: Server, topic: MakeTopic) -> None:
    with pytest.raises(OffsetOutOfRangeError):
        await consume(broker, topic(), 1, start=5)


@pytest.mark.feature("admin: topics")
async def test_topics_are_created_described_and_deleted(admin: AIOKafkaAdminClient, fresh_name: str) -> None:
    await admin.create_topics([NewTopic(fresh_name, 3, 1)])

    async def listed() -> bool:
        return fresh_name in await admin.list_topics()

    async def gone() -> bool:
        return not await listed()

    await until(listed)
    [described] = await admin.describe_topics([fresh_name])
    assert sorted(p["partition"] for p in described["partitions"]) == [0, 1, 2]
    await admin.delete_topics([fresh_name])
    await until(gone)


@pytest.mark.feature("admin: partitions")
async def test_partitions_are_added(broker: Server, admin: AIOKafkaAdminClient, topic: MakeTopic) -> None:
    name = topic()
    await admin.create_partitions({name: NewPartitions(4)})

    async def four() -> bool:
        [described] = await admin.describe_topics([name])
        return [p["leader"] >= 0 for p in described["partitions"]] == [True] * 4

    await until(four)
    await produce(broker, name, samples(), partition=3)
    assert as_samples(await consume(broker, name, len(samples()), partition=3)) == samples()


@pytest.mark.feature("admin: configs")
async def test_topic_configs_are_described(admin: AIOKafkaAdminClient, topic: MakeTopic) -> None:
    name = topic(retention_ms=100_000)
    [response] = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    [(error, _, _, described, entries)] = response.resources
    assert (error, described) == (0, name)
    assert {entry[0]: entry[1] for entry in entries}["retention.ms"] == "100000"


@pytest.mark.feature("admin: delete records")
async def test_deleted_records_are_gone_and_the_rest_stays(
    broker: Server, admin: AIOKafkaAdminClient, topic: MakeTopic
) -> None:
    name = topic()
    await produce(broker, name, samples())
    place = TopicPartition(name, 0)
    assert await admin.delete_records({place: RecordsToDelete(20)}) == {place: 20}
    assert as_samples(await consume(broker, name, len(samples()) - 20)) == samples()[20:]


@pytest.mark.feature("admin: cluster")
async def test_the_cluster_describes_itself(broker: Server, admin: AIOKafkaAdminClient) -> None:
    cluster = await admin.describe_cluster()
    [node] = cluster["brokers"]
    assert (node["host"], node["port"]) == ("127.0.0.1", broker.port)
    assert cluster["cluster_id"]


@pytest.mark.feature("errors: refused")
@pytest.mark.parametrize(("name", "code"), [("no spaces", 17), ("..", 17), ("x" * 250, 17)])
async def test_an_impossible_topic_is_refused(admin: AIOKafkaAdminClient, name: str, code: int) -> None:
    response = await admin.create_topics([NewTopic(name, 1, 1)])
    assert [entry[1] for entry in response.topic_errors] == [code]


@pytest.mark.feature("errors: refused")
async def test_a_topic_is_created_once_and_a_missing_one_not_deleted(
    admin: AIOKafkaAdminClient, topic: MakeTopic
) -> None:
    again = await admin.create_topics([NewTopic(topic(), 1, 1)])
    assert for_code(again.topic_errors[0][1]) is TopicAlreadyExistsError
    missing = await admin.delete_topics(["nobody-made-this"])
    assert for_code(missing.topic_error_codes[0][1]) is UnknownTopicOrPartitionError


@pytest.mark.feature("errors: too large")
async def test_a_message_over_the_topics_limit_is_refused(broker: Server, topic: MakeTopic) -> None:
    name = topic(max_message_bytes=1000)
    with pytest.raises(MessageSizeTooLargeError):
        await produce(broker, name, [Sample(None, b"x" * 2000, (), BEGIN_MS)])
    assert await produce(broker, name, [Sample(None, b"x", (), BEGIN_MS)]) == [0]
