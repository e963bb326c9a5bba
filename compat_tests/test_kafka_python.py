"""kafka-python: produce, consume assigned partitions, administer."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetSpec, TopicPartition
from kafka.admin import ConfigResource
from kafka.errors import (
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from compat_tests import versions
from compat_tests.samples import BEGIN_MS, BIG, CODECS, DELIVERY, SHAPES, Sample
from compat_tests.samples import samples as all_samples
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server

pytestmark = versions.KAFKA_PYTHON


def samples() -> list[Sample]:
    return all_samples(all_null=False)


def produce(
    broker: Server, topic: str, records: list[Sample], partition: int = 0, **config: object
) -> list[int]:
    """Send the records; the offsets the broker acknowledged."""
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=20, **config)) as producer:
        sent = [
            producer.send(
                topic, r.value, r.key, list(r.headers), partition=partition, timestamp_ms=r.timestamp
            )
            for r in records
        ]
        producer.flush(30)
        return [future.get(30).offset for future in sent]


def consume(broker: Server, topic: str, count: int, start: int | None = None, partition: int = 0) -> list:
    """The next `count` records of an assigned partition, from its beginning or from an offset."""
    place = TopicPartition(topic, partition)
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap, check_crcs=True)) as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning(place) if start is None else consumer.seek(place, start)
        got: list = []
        deadline = time.monotonic() + 30
        while len(got) < count and time.monotonic() < deadline:
            got += consumer.poll(500).get(place, [])
        return got


def as_samples(records: list) -> list[Sample]:
    return [Sample(r.key, r.value, tuple(r.headers), r.timestamp) for r in records]


@pytest.fixture(scope="module")
def admin(broker: Server) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as client:
        yield client


@pytest.mark.feature(*SHAPES)
@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were_sent(broker: Server, topic: MakeTopic, codec: str) -> None:
    name = topic()
    offsets = produce(broker, name, samples(), compression_type=None if codec == "none" else codec)
    assert offsets == list(range(len(samples())))
    got = consume(broker, name, len(samples()))
    assert as_samples(got) == samples()
    assert [r.offset for r in got] == offsets
    assert {r.timestamp_type for r in got} == {0}


@pytest.mark.feature("produce: acks", "produce: idempotence")
@pytest.mark.parametrize(("acks", "idempotent"), DELIVERY)
def test_every_level_of_acknowledgement_stores_all(
    broker: Server, topic: MakeTopic, acks: str | int, idempotent: bool
) -> None:
    name = topic(partitions=2)
    offsets = produce(broker, name, samples(), partition=1, acks=acks, enable_idempotence=idempotent)
    assert acks == 0 or offsets == list(range(len(samples())))
    assert as_samples(consume(broker, name, len(samples()), partition=1)) == samples()
    assert consume_end(broker, name, 0) == 0


def consume_end(broker: Server, topic: str, partition: int = 0) -> int:
    place = TopicPartition(topic, partition)
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap)) as consumer:
        return consumer.end_offsets([place])[place]


@pytest.mark.feature("produce: timestamps")
@pytest.mark.parametrize("codec", [None, "gzip"])
def test_log_append_time_replaces_the_clients(broker: Server, topic: MakeTopic, codec: str | None) -> None:
    name = topic(message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    produce(broker, name, samples(), compression_type=codec)
    got = consume(broker, name, len(samples()))
    assert [(r.key, r.value) for r in got] == [(s.key, s.value) for s in samples()]
    assert {r.timestamp_type for r in got} == {1}
    assert all(before <= r.timestamp <= time.time() * 1000 for r in got)


@pytest.mark.feature("big messages")
@pytest.mark.parametrize("codec", [None, "zstd"])
def test_a_record_of_900_kb_passes(broker: Server, topic: MakeTopic, codec: str | None) -> None:
    name = topic()
    produce(broker, name, [Sample(None, BIG, (), BEGIN_MS)] * 2, compression_type=codec)
    assert [r.value for r in consume(broker, name, 2)] == [BIG, BIG]


@pytest.mark.feature("seek by offset", "seek by timestamp")
def test_a_reader_finds_its_place_by_offset_and_by_time(broker: Server, topic: MakeTopic) -> None:
    name = topic()
    place = TopicPartition(name, 0)
    for n in range(10):
        produce(broker, name, [Sample(None, b"%d" % n, (), BEGIN_MS + n * 1000)])
    assert [r.offset for r in consume(broker, name, 3, start=7)] == [7, 8, 9]
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap)) as consumer:
        consumer.assign([place])
        assert consumer.beginning_offsets([place]) == {place: 0}
        assert consumer.end_offsets([place]) == {place: 10}
        consumer.seek_to_end(place)
        assert consumer.position(place) == 10
        found = {
            at: consumer.offsets_for_times({place: BEGIN_MS + at})[place] for at in (-5, 0, 3001, 9000, 9001)
        }
    assert [f and (f.offset, f.timestamp - BEGIN_MS) for f in found.values()] == [
        (0, 0),
        (0, 0),
        (4, 4000),
        (9, 9000),
        None,
    ]


@pytest.mark.feature("seek by offset")
def test_an_offset_past_the_end_is_refused(broker: Server, topic: MakeTopic) -> None:
    place = TopicPartition(topic(), 0)
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="none")) as consumer:
        consumer.assign([place])
        consumer.seek(place, 5)
        with pytest.raises(OffsetOutOfRangeError):
            consumer.poll(10_000)


@pytest.mark.feature("admin: topics")
def test_topics_are_created_described_and_deleted(admin: KafkaAdminClient, fresh_name: str) -> None:
    admin.create_topics({fresh_name: {"num_partitions": 3, "replication_factor": 1}}, wait_for_metadata=True)
    assert fresh_name in admin.list_topics()
    [described] = admin.describe_topics([fresh_name])
    assert [p["partition_index"] for p in described["partitions"]] == [0, 1, 2]
    admin.delete_topics([fresh_name])
    wait_until(lambda: fresh_name not in admin.list_topics(), "the topic is gone")
    [described] = admin.describe_topics([fresh_name])
    assert described["error_code"] == UnknownTopicOrPartitionError.errno


@pytest.mark.feature("admin: topics")
def test_a_topic_created_again_is_empty(broker: Server, admin: KafkaAdminClient, topic: MakeTopic) -> None:
    name = topic()
    produce(broker, name, samples())
    admin.delete_topics([name])
    wait_until(lambda: name not in admin.list_topics(), "the topic is gone")
    admin.create_topics({name: {"num_partitions": 1}}, wait_for_metadata=True)
    assert consume_end(broker, name) == 0


@pytest.mark.feature("admin: topics")
def test_validate_only_creates_nothing(admin: KafkaAdminClient, fresh_name: str) -> None:
    admin.create_topics({fresh_name: {"num_partitions": 1}}, validate_only=True)
    assert fresh_name not in admin.list_topics()


@pytest.mark.feature("admin: partitions")
def test_partitions_are_added_but_never_removed(
    broker: Server, admin: KafkaAdminClient, topic: MakeTopic
) -> None:
    name = topic()
    admin.create_partitions({name: 4})
    wait_until(lambda: len(admin.describe_topics([name])[0]["partitions"]) == 4, "four partitions")
    admin.wait_for_topics([name])
    produce(broker, name, samples(), partition=3)
    assert as_samples(consume(broker, name, len(samples()), partition=3)) == samples()
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({name: 2})


@pytest.mark.feature("admin: configs")
def test_topic_configs_are_described_and_altered(admin: KafkaAdminClient, topic: MakeTopic) -> None:
    name = topic(retention_ms=100_000)

    def configs(which: str = "modified") -> dict:
        return admin.describe_configs([ConfigResource("TOPIC", name)], config_filter=which)["topic"][name]

    assert configs()["retention.ms"]["value"] == "100000"
    assert configs("all")["cleanup.policy"]["value"] == "delete"
    changes = {"retention.ms": "200000", "max.message.bytes": "2000", "cleanup.policy": ("APPEND", "compact")}
    assert admin.alter_configs([ConfigResource("TOPIC", name, changes)]) == {"topic": {name: "OK"}}
    wait_until(lambda: configs()["retention.ms"]["value"] == "200000", "the change is seen")
    assert configs()["max.message.bytes"]["value"] == "2000"
    assert configs()["cleanup.policy"]["value"] == "delete,compact"
    admin.alter_configs([ConfigResource("TOPIC", name, {"retention.ms": ("DELETE", None)})])
    wait_until(lambda: "retention.ms" not in configs(), "the default is back")
    assert configs("all")["retention.ms"]["value"] == "604800000"


@pytest.mark.feature("admin: configs")
def test_broker_configs_are_described(admin: KafkaAdminClient) -> None:
    [node] = admin.describe_cluster()["brokers"]
    resource = ConfigResource("BROKER", str(node["broker_id"]))
    found = admin.describe_configs([resource], config_filter="all")["broker"][str(node["broker_id"])]
    assert found["log.segment.bytes"]["value"] == str(1 << 30)
    assert found["log.segment.bytes"]["config_source"] == "DEFAULT_CONFIG"


@pytest.mark.feature("admin: delete records")
def test_deleted_records_are_gone_and_the_rest_stays(
    broker: Server, admin: KafkaAdminClient, topic: MakeTopic
) -> None:
    name = topic()
    place = TopicPartition(name, 0)
    produce(broker, name, samples())
    assert admin.delete_records({place: 20})[place]["low_watermark"] == 20
    assert consume(broker, name, 1)[0].offset == 20
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({place: 1000})
    assert admin.delete_records({place: -1})[place]["low_watermark"] == len(samples())


@pytest.mark.feature("seek by timestamp")
def test_offsets_are_listed_by_every_kind(broker: Server, admin: KafkaAdminClient, topic: MakeTopic) -> None:
    name = topic()
    place = TopicPartition(name, 0)
    for at in (5, 9, 2):
        produce(broker, name, [Sample(None, b"x", (), BEGIN_MS + at)])
    kinds = (OffsetSpec.EARLIEST, OffsetSpec.LATEST, OffsetSpec.MAX_TIMESTAMP, OffsetSpec.EARLIEST_LOCAL)
    assert [admin.list_partition_offsets({place: kind})[place].offset for kind in kinds] == [0, 3, 1, 0]


@pytest.mark.feature("admin: cluster")
def test_the_cluster_describes_itself(broker: Server, admin: KafkaAdminClient) -> None:
    cluster = admin.describe_cluster()
    [node] = cluster["brokers"]
    assert (node["host"], node["port"]) == ("127.0.0.1", broker.port)
    assert cluster["cluster_id"]
    assert cluster["controller_id"] == node["broker_id"]


@pytest.mark.feature("admin: topics")
def test_partitions_of_a_topic_are_described(admin: KafkaAdminClient, topic: MakeTopic, against: str) -> None:
    if against == "kafka-3.9.1":
        pytest.skip("DescribeTopicPartitions is served by KRaft brokers only")
    name = topic(partitions=3)
    [described] = admin.describe_topic_partitions([name])["topics"]
    assert [p["partition_index"] for p in described["partitions"]] == [0, 1, 2]


@pytest.mark.feature("errors: refused")
@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("no spaces", {}, InvalidTopicError),
        ("..", {}, InvalidTopicError),
        ("x" * 250, {}, InvalidTopicError),
        ("", {}, InvalidTopicError),
        ("no-partitions", {"num_partitions": 0}, InvalidPartitionsError),
        ("too-many-copies", {"replication_factor": 3}, InvalidReplicationFactorError),
    ],
)
def test_an_impossible_topic_is_refused(
    admin: KafkaAdminClient, name: str, options: dict, error: type[Exception]
) -> None:
    with pytest.raises(error):
        admin.create_topics({name: options})


@pytest.mark.feature("errors: refused")
def test_a_topic_is_created_once_and_a_missing_one_not_deleted(
    admin: KafkaAdminClient, topic: MakeTopic
) -> None:
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics({topic(): {"num_partitions": 1}})
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics(["nobody-made-this"])


@pytest.mark.feature("errors: unknown topic")
def test_an_unknown_topic_is_unknown_until_somebody_writes(
    broker: Server, admin: KafkaAdminClient, fresh_name: str
) -> None:
    [described] = admin.describe_topics([fresh_name])
    assert described["error_code"] == UnknownTopicOrPartitionError.errno
    assert fresh_name not in admin.list_topics()
    assert produce(broker, fresh_name, samples()[:1]) == [0]


@pytest.mark.feature("errors: too large")
def test_a_message_over_the_topics_limit_is_refused(broker: Server, topic: MakeTopic) -> None:
    name = topic(max_message_bytes=1000)
    with pytest.raises(MessageSizeTooLargeError):
        produce(broker, name, [Sample(None, b"x" * 2000, (), BEGIN_MS)])
    assert produce(broker, name, [Sample(None, b"x", (), BEGIN_MS)]) == [0]
