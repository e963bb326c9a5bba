"""Java clients from before the record batch, 0.8.2 to 1.1, each as its users had it.

They write messages of formats 0 and 1 and know nothing newer (1.1 does, and stands here as the first that did for
long). Apache Kafka 3.9.1 passes all of this; 4.x no longer speaks to most of them.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    ConsumerGroupTopicPartitions,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from compat_tests import provision
from compat_tests.versions import HARNESS

if TYPE_CHECKING:
    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server

PRODUCERS = ("0.8.2.2", "0.9.0.1", "0.10.2.2", "1.1.1")
CONSUMERS = PRODUCERS[1:]
WITHOUT_TIMESTAMPS = ("0.8.2.2", "0.9.0.1")
OLD_CODECS = ("none", "gzip", "snappy", "lz4")
COUNT = 20
SECONDS = 120


@pytest.fixture(autouse=True)
def speaks_to_old_clients(against: str) -> None:
    if against == "kafka-4.3.1":
        pytest.skip("Apache Kafka 4 does not speak to clients this old")


def java(*versions: str) -> list:
    return [
        pytest.param(version, marks=pytest.mark.client("Java kafka-clients", version)) for version in versions
    ]


def old_java(program: str, version: str, *arguments: object) -> list[list[str]]:
    """The words of each line that a program of harness/java_old said."""
    with provision.or_skip():
        sources = HARNESS / "java_old" / program.removeprefix("Old").lower()
        classpath = provision.java_program(sources, version)
        command = [str(provision.java()), "-Xmx128m", "-XX:+UseSerialGC", "-cp", classpath, program]
    command += map(str, arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [line.split(" ") for line in done.stdout.splitlines()]


def sent_by_java(n: int) -> tuple[bytes | None, bytes | None]:
    """Key and value of the n-th record of OldProducer."""
    return None if n % 5 == 3 else f"k{n}".encode(), None if n % 5 == 4 else f"v{n}".encode()


def read_today(broker: Server, topic: str, count: int) -> list:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "today", "check.crcs": True})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found = consumer.consume(count, timeout=30)
    consumer.close()
    assert all(record.error() is None for record in found)
    return found


def write_today(broker: Server, topic: str, count: int, codec: str = "none") -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": codec, "linger.ms": 50})
    for n in range(count):
        producer.produce(topic, f"v{n}", f"k{n}", partition=0, headers=[("lost", b"on the way down")])
    assert producer.flush(30) == 0


def one_topic_a_codec(topic: MakeTopic) -> dict[str, str]:
    return {topic(): codec for codec in OLD_CODECS}


@pytest.mark.feature("connect and negotiate", "produce: codecs", "produce: acks", "empty and null values")
@pytest.mark.parametrize("version", java(*PRODUCERS))
@pytest.mark.parametrize("acks", [pytest.param("1", marks=pytest.mark.long), "all"])
def test_what_an_old_producer_wrote_is_read_today(broker, topic, version, acks):
    topics = one_topic_a_codec(topic)
    pairs = [f"{name}:{codec}" for name, codec in topics.items()]
    told = old_java("OldProducer", version, broker.bootstrap, acks, COUNT, 0, *pairs)
    assert told == [["offset", name, str(n)] for name in topics for n in range(COUNT)]
    for name in topics:
        records = read_today(broker, name, COUNT)
        assert [(r.offset(), r.key(), r.value()) for r in records] == [
            (n, *sent_by_java(n)) for n in range(COUNT)
        ]
        kinds = {r.timestamp()[0] == TIMESTAMP_NOT_AVAILABLE or r.timestamp()[1] < 0 for r in records}
        assert kinds == {version in WITHOUT_TIMESTAMPS}


@pytest.mark.feature("connect and negotiate", "consume assigned")
@pytest.mark.parametrize("version", java(*CONSUMERS))
def test_what_is_written_today_is_read_by_an_old_consumer(broker, topic, version, fresh_name):
    topics = one_topic_a_codec(topic)
    for name, codec in topics.items():
        write_today(broker, name, COUNT, codec)
    told = old_java("OldConsumer", version, broker.bootstrap, fresh_name, "assign", COUNT, *topics)
    for name in topics:
        assert [line[2:] for line in told if line[:2] == ["record", name]] == [
            [str(n), f"k{n}", f"v{n}"] for n in range(COUNT)
        ]
        assert ["committed", name, str(COUNT)] in told


@pytest.mark.feature("consume assigned", "produce: codecs")
@pytest.mark.parametrize("version", java("0.9.0.1"))
def test_old_clients_understand_each_other_through_the_log(broker, topic, version, fresh_name):
    topics = one_topic_a_codec(topic)
    pairs = [f"{name}:{codec}" for name, codec in topics.items()]
    old_java("OldProducer", version, broker.bootstrap, "all", COUNT, 0, *pairs)
    told = old_java("OldConsumer", version, broker.bootstrap, fresh_name, "assign", COUNT, *topics)
    expected = [
        [str(n), *("null" if part is None else part.decode() for part in sent_by_java(n))]
        for n in range(COUNT)
    ]
    for name in topics:
        assert [line[2:] for line in told if line[:2] == ["record", name]] == expected


@pytest.mark.feature("groups: join, leave, rebalance", "commit and fetch offsets")
@pytest.mark.parametrize("version", java(*CONSUMERS))
def test_a_group_of_old_consumers_goes_on_where_it_was(broker, topic, version, fresh_name):
    name = topic()
    write_today(broker, name, COUNT)
    arguments = (version, broker.bootstrap, fresh_name, "subscribe", COUNT, name)
    first = old_java("OldConsumer", *arguments)
    assert [line[2] for line in first if line[0] == "record"] == [str(n) for n in range(COUNT)]
    write_today(broker, name, COUNT)
    second = old_java("OldConsumer", *arguments)
    assert [line[2] for line in second if line[0] == "record"] == [str(n) for n in range(COUNT, 2 * COUNT)]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = [ConsumerGroupTopicPartitions(fresh_name, [TopicPartition(name, 0)])]
    found = admin.list_consumer_group_offsets(asked)[fresh_name].result(30)
    assert found.topic_partitions[0].offset == 2 * COUNT


@pytest.mark.feature("errors: too large")
@pytest.mark.parametrize("version", java(*PRODUCERS))
def test_an_old_producer_hears_that_a_message_is_too_large(broker, topic, version):
    name = topic(max_message_bytes=1000)
    told = old_java("OldProducer", version, broker.bootstrap, "all", 1, 2000, f"{name}:none")
    assert told == [["error", name, "RecordTooLargeException"]]
