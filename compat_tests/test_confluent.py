"""confluent-kafka (librdkafka): produce, consume assigned partitions, administer."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from compat_tests import versions
from compat_tests.samples import BEGIN_MS, BIG, CODECS, DELIVERY, SHAPES, Sample, samples
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server

pytestmark = versions.CONFLUENT


def produce(
    broker: Server, topic: str, records: list[Sample], partition: int = 0, **config: object
) -> list[int]:
    """Send the records; the offsets the broker acknowledged, or its first error."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20, **settings})
    reports: list[tuple[KafkaError | None, Message]] = []
    for r in records:
        producer.produce(
            topic,
            r.value,
            r.key,
            partition,
            headers=list(r.headers),
            timestamp=r.timestamp,
            on_delivery=lambda *report: reports.append(report),
        )
    assert producer.flush(30) == 0, "not everything was answered"
    for error, _ in reports:
        if error is not None:
            raise KafkaException(error)
    return [message.offset() for _, message in reports]


def consume(
    broker: Server, topic: str, count: int, start: int = OFFSET_BEGINNING, partition: int = 0
) -> list[Message]:
    """The next `count` records of an assigned partition, from its beginning or from an offset."""
    with closing(reader(broker, check_crcs=True)) as consumer:
        consumer.assign([TopicPartition(topic, partition, start)])
        got: list[Message] = []
        deadline = time.monotonic() + 30
        while len(got) < count and time.monotonic() < deadline:
            got += consumer.consume(count - len(got), 0.5)
        for message in got:
            if message.error():
                raise KafkaException(message.error())
        return got


def reader(broker: Server, **config: object) -> Consumer:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    group = {"group.id": "assigned", "enable.auto.commit": False, "auto.offset.reset": "error"}
    return Consumer({"bootstrap.servers": broker.bootstrap, **group, **settings})


def as_samples(messages: list[Message]) -> list[Sample]:
    return [Sample(m.key(), m.value(), tuple(m.headers() or ()), m.timestamp()[1]) for m in messages]


def refused(future: object) -> str:
    """The name of the error a future carries."""
    with pytest.raises(KafkaException) as caught:
        future.result(30)
    return caught.value.args[0].name()


@pytest.fixture
def admin(broker: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.mark.feature(*SHAPES)
@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were_sent(broker: Server, topic: MakeTopic, codec: str) -> None:
    name = topic()
    offsets = produce(broker, name, samples(), compression_codec=codec)
    assert offsets == list(range(len(samples())))
    got = consume(broker, name, len(samples()))
    assert as_samples(got) == samples()
    assert [m.offset() for m in got] == offsets
    assert {m.timestamp()[0] for m in got} == {TIMESTAMP_CREATE_TIME}
    assert {m.leader_epoch() for m in got} == {0}


@pytest.mark.feature("produce: acks", "produce: idempotence")
@pytest.mark.parametrize(("acks", "idempotent"), DELIVERY)
def test_every_level_of_acknowledgement_stores_all(
    broker: Server, topic: MakeTopic, acks: str | int, idempotent: bool
) -> None:
    name = topic(partitions=2)
    produce(broker, name, samples(), partition=1, acks=acks, enable_idempotence=idempotent)
    assert as_samples(consume(broker, name, len(samples()), partition=1)) == samples()
    with closing(reader(broker)) as consumer:
        assert consumer.get_watermark_offsets(TopicPartition(name, 0), 10) == (0, 0)


@pytest.mark.feature("produce: timestamps")
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_log_append_time_replaces_the_clients(broker: Server, topic: MakeTopic, codec: str) -> None:
    name = topic(message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    produce(broker, name, samples(), compression_codec=codec)
    got = consume(broker, name, len(samples()))
    assert [(m.key(), m.value()) for m in got] == [(s.key, s.value) for s in samples()]
    assert {m.timestamp()[0] for m in got} == {TIMESTAMP_LOG_APPEND_TIME}
    assert all(before <= m.timestamp()[1] <= time.time() * 1000 for m in got)


@pytest.mark.feature("produce: headers")
def test_a_header_may_be_null(broker: Server, topic: MakeTopic) -> None:
    name = topic()
    produce(broker, name, [Sample(b"k", b"v", (("null", None), ("", b"x")), BEGIN_MS)])
    assert consume(broker, name, 1)[0].headers() == [("null", None), ("", b"x")]


@pytest.mark.feature("big messages")
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_record_of_900_kb_passes(broker: Server, topic: MakeTopic, codec: str) -> None:
    name = topic()
    produce(broker, name, [Sample(None, BIG, (), BEGIN_MS)] * 2, compression_codec=codec)
    assert [m.value() for m in consume(broker, name, 2)] == [BIG, BIG]


@pytest.mark.feature("consume assigned")
def test_keys_spread_over_partitions_and_keep_their_order(broker: Server, topic: MakeTopic) -> None:
    name = topic(partitions=5)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "lz4"})
    for n in range(5000):
        producer.produce(name, b"%d" % n, b"key-%d" % (n % 50))
    assert producer.flush(30) == 0
    seen: dict[bytes, list[int]] = {}
    with closing(reader(broker, fetch_wait_max_ms=100)) as consumer:
        consumer.assign([TopicPartition(name, p, OFFSET_BEGINNING) for p in range(5)])
        deadline = time.monotonic() + 30
        while sum(map(len, seen.values())) < 5000 and time.monotonic() < deadline:
            for message in consumer.consume(1000, 0.5):
                seen.setdefault(message.key(), []).append(int(message.value()))
    assert seen == {b"key-%d" % k: list(range(k, 5000, 50)) for k in range(50)}


@pytest.mark.feature("seek by offset", "seek by timestamp")
def test_a_reader_finds_its_place_by_offset_and_by_time(broker: Server, topic: MakeTopic) -> None:
    name = topic()
    for n in range(10):
        produce(broker, name, [Sample(None, b"%d" % n, (), BEGIN_MS + n * 1000)])
    assert [m.offset() for m in consume(broker, name, 3, start=7)] == [7, 8, 9]
    with closing(reader(broker)) as consumer:
        assert consumer.get_watermark_offsets(TopicPartition(name, 0), 10) == (0, 10)
        asked = [TopicPartition(name, 0, BEGIN_MS + at) for at in (-5, 0, 3001, 9000, 9001)]
        found = [consumer.offsets_for_times([place], 10)[0].offset for place in asked]
    assert found == [0, 0, 4, 9, -1]


@pytest.mark.feature("consume assigned")
def test_the_end_of_a_partition_is_told_and_new_records_wake_the_reader(
    broker: Server, topic: MakeTopic
) -> None:
    name = topic()
    with closing(reader(broker, enable_partition_eof=True, fetch_wait_max_ms=3000)) as consumer:
        consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
        assert consumer.poll(10).error().code() == KafkaError._PARTITION_EOF
        began = time.monotonic()
        produce(broker, name, samples()[:1], linger_ms=0)
        assert consumer.poll(10).value() == b"value"
        assert time.monotonic() - began < 2, "the record waited for the long poll to end"


@pytest.mark.feature("seek by offset")
def test_an_offset_past_the_end_is_refused(broker: Server, topic: MakeTopic) -> None:
    with pytest.raises(KafkaException) as caught:
        consume(broker, topic(), 1, start=5)
    assert caught.value.args[0].code() in {KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET}


@pytest.mark.feature("admin: topics")
def test_topics_are_created_described_and_deleted(admin: AdminClient, fresh_name: str) -> None:
    admin.create_topics([NewTopic(fresh_name, 3, 1)])[fresh_name].result(30)
    wait_until(lambda: fresh_name in admin.list_topics(timeout=10).topics, "the topic is listed")
    described = admin.describe_topics(TopicCollection([fresh_name]))[fresh_name].result(30)
    assert [p.id for p in described.partitions] == [0, 1, 2]
    assert str(described.topic_id) not in {"", "AAAAAAAAAAAAAAAAAAAAAA"}
    admin.delete_topics([fresh_name])[fresh_name].result(30)
    wait_until(lambda: fresh_name not in admin.list_topics(timeout=10).topics, "the topic is gone")


@pytest.mark.feature("admin: partitions")
def test_partitions_are_added_but_never_removed(broker: Server, admin: AdminClient, topic: MakeTopic) -> None:
    name = topic()
    admin.create_partitions([NewPartitions(name, 4)])[name].result(30)
    wait_until(lambda: len(admin.list_topics(name, 10).topics[name].partitions) == 4, "four partitions")
    produce(broker, name, samples(), partition=3)
    assert as_samples(consume(broker, name, len(samples()), partition=3)) == samples()
    assert refused(admin.create_partitions([NewPartitions(name, 2)])[name]) == "INVALID_PARTITIONS"


@pytest.mark.feature("admin: configs")
def test_topic_configs_are_described_and_altered(admin: AdminClient, topic: MakeTopic) -> None:
    name = topic(retention_ms=100_000)

    def value(key: str) -> str:
        [future] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)]).values()
        return future.result(30)[key].value

    def alter(key: str, new: str | None, how: AlterConfigOpType) -> object:
        entry = ConfigEntry(key, new, incremental_operation=how)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        [future] = admin.incremental_alter_configs([resource]).values()
        return future

    assert value("retention.ms") == "100000"
    alter("retention.ms", "200000", AlterConfigOpType.SET).result(30)
    wait_until(lambda: value("retention.ms") == "200000", "the change is seen")
    alter("cleanup.policy", "compact", AlterConfigOpType.APPEND).result(30)
    wait_until(lambda: value("cleanup.policy") == "delete,compact", "the list grew")
    alter("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT).result(30)
    wait_until(lambda: value("cleanup.policy") == "compact", "the list shrank")
    alter("retention.ms", None, AlterConfigOpType.DELETE).result(30)
    wait_until(lambda: value("retention.ms") == "604800000", "the default is back")
    assert refused(alter("retention.ms", "soon", AlterConfigOpType.SET)) == "INVALID_CONFIG"
    assert refused(alter("no.such.config", "1", AlterConfigOpType.SET)) == "INVALID_CONFIG"


@pytest.mark.feature("admin: delete records")
def test_deleted_records_are_gone_and_the_rest_stays(
    broker: Server, admin: AdminClient, topic: MakeTopic
) -> None:
    name = topic()
    produce(broker, name, samples())
    [future] = admin.delete_records([TopicPartition(name, 0, 20)]).values()
    assert future.result(30).low_watermark == 20
    got = consume(broker, name, len(samples()) - 20)
    assert [m.offset() for m in got] == list(range(20, len(samples())))
    assert as_samples(got) == samples()[20:]
    [future] = admin.delete_records([TopicPartition(name, 0, 1000)]).values()
    assert refused(future) == "OFFSET_OUT_OF_RANGE"


@pytest.mark.feature("seek by timestamp")
def test_offsets_are_listed_by_every_kind(broker: Server, admin: AdminClient, topic: MakeTopic) -> None:
    name = topic()
    for at in (5, 9, 2):
        produce(broker, name, [Sample(None, b"x", (), BEGIN_MS + at)])

    def listed(kind: OffsetSpec) -> int:
        [future] = admin.list_offsets({TopicPartition(name, 0): kind}).values()
        return future.result(30).offset

    kinds = (OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.max_timestamp())
    assert [listed(kind) for kind in (*kinds, OffsetSpec.for_timestamp(BEGIN_MS + 6))] == [0, 3, 1, 1]


@pytest.mark.feature("admin: cluster")
def test_the_cluster_describes_itself(broker: Server, admin: AdminClient) -> None:
    cluster = admin.describe_cluster().result(30)
    [node] = cluster.nodes
    assert (node.host, node.port) == ("127.0.0.1", broker.port)
    assert cluster.cluster_id
    assert cluster.controller.id == node.id


@pytest.mark.feature("errors: refused")
@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("no spaces", {}, "TOPIC_EXCEPTION"),
        (".", {}, "TOPIC_EXCEPTION"),
        ("x" * 250, {}, "TOPIC_EXCEPTION"),
        ("too-many-copies", {"replication_factor": 3}, "INVALID_REPLICATION_FACTOR"),
        ("bad-config", {"config": {"retention.ms": "soon"}}, "INVALID_CONFIG"),
        ("unknown-config", {"config": {"no.such.config": "1"}}, "INVALID_CONFIG"),
    ],
)
def test_an_impossible_topic_is_refused(admin: AdminClient, name: str, options: dict, error: str) -> None:
    options = {"num_partitions": 1, "replication_factor": 1, **options}
    assert refused(admin.create_topics([NewTopic(name, **options)])[name]) == error


@pytest.mark.feature("errors: refused")
def test_a_topic_is_created_once_and_a_missing_one_not_deleted(admin: AdminClient, topic: MakeTopic) -> None:
    name = topic()
    assert refused(admin.create_topics([NewTopic(name, 1, 1)])[name]) == "TOPIC_ALREADY_EXISTS"
    missing = "nobody-made-this"
    assert refused(admin.delete_topics([missing])[missing]) == "UNKNOWN_TOPIC_OR_PART"


@pytest.mark.feature("errors: unknown topic")
def test_reading_an_unknown_topic_says_so_and_creates_nothing(
    broker: Server, admin: AdminClient, fresh_name: str
) -> None:
    with closing(reader(broker)) as consumer:
        found = consumer.list_topics(fresh_name, 10).topics[fresh_name]
    assert found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert fresh_name not in admin.list_topics(timeout=10).topics


@pytest.mark.feature("admin: topics")
def test_the_first_write_creates_the_topic(broker: Server, fresh_name: str) -> None:
    assert produce(broker, fresh_name, samples()) == list(range(len(samples())))


@pytest.mark.feature("errors: too large")
def test_a_message_over_the_topics_limit_is_refused(broker: Server, topic: MakeTopic) -> None:
    name = topic(max_message_bytes=1000)
    with pytest.raises(KafkaException) as caught:
        produce(broker, name, [Sample(None, b"x" * 2000, (), BEGIN_MS)])
    assert caught.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert produce(broker, name, [Sample(None, b"x", (), BEGIN_MS)]) == [0]
