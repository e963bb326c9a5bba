"""What is at the broker's side of a test, done and seen without Spark: librdkafka's client, and the files on disk."""

from __future__ import annotations

import struct
from contextlib import closing
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    OffsetSpec,
    ResourceType,
)

from compat_tests.conftest import create_topic
from compat_tests.samples import CODECS
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Message

    from compat_tests.servers import Server


def fill(broker: Server, topic: str, values: Iterable[object], partition: int = 0, **fields: object) -> None:
    """Put records with these values at the end of a partition, in one batch where the client can.

    `fields` are those of every record (key, headers, timestamp), or `codec`.
    """
    codec = fields.pop("codec", "none")
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "compression.codec": codec, "acks": "all"}
    )
    for value in values:
        producer.produce(topic, str(value).encode(), partition=partition, on_delivery=_must_arrive, **fields)
    assert producer.flush(60) == 0, "not everything was acknowledged"


def _must_arrive(error: object, message: Message) -> None:
    assert error is None, f"{message.topic()}: {error}"


def stored(broker: Server, topic: str) -> list[Message]:
    """Every record of a topic, by partition and offset."""
    ends = {place.partition: end for place, end in _offsets(broker, topic, OffsetSpec.latest()).items()}
    begins = {place.partition: at for place, at in _offsets(broker, topic, OffsetSpec.earliest()).items()}
    missing = sum(ends.values()) - sum(begins.values())
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "not-used", "enable.auto.commit": False}
    )
    with closing(consumer):
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in ends])
        found: list[Message] = []
        while len(found) < missing:
            records = consumer.consume(missing - len(found), timeout=10)
            assert records, f"only {len(found)} of {missing} records of {topic} came"
            found += records
    for message in found:
        assert message.error() is None, message.error()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


def stored_values(broker: Server, topic: str) -> list[str]:
    return [message.value().decode() for message in stored(broker, topic)]


def codecs_on_disk(broker: Server, topic: str, partition: int = 0) -> set[str]:
    """The codecs in the headers of a partition's batches, from its segment files."""
    found: set[str] = set()
    for segment in (broker.log_dir / f"{topic}-{partition}").glob("*.log"):
        data = segment.read_bytes()
        while len(data) > 61:
            length, attributes = struct.unpack_from(">i", data, 8)[0], struct.unpack_from(">h", data, 21)[0]
            found.add(CODECS[attributes & 7])
            data = data[12 + length :]
    return found


def delete_records(broker: Server, topic: str, before: int, partition: int = 0) -> None:
    """DeleteRecords: the log of this partition now starts at `before`."""
    admin = _admin(broker)  # one that is not kept answers nothing
    [future] = admin.delete_records([TopicPartition(topic, partition, before)]).values()
    future.result(30)


def expire_old_records(broker: Server, topic: str, until: int) -> None:
    """Give the topic a retention of an hour and wait until the log starts at `until`."""
    resource = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin = _admin(broker)
    admin.incremental_alter_configs([resource])[resource].result(30)
    wait_until(
        lambda: set(_offsets(broker, topic, OffsetSpec.earliest()).values()) == {until},
        f"retention moves the start of {topic} to {until}",
    )


def delete_topic(broker: Server, topic: str) -> None:
    """Delete a topic and return once the broker no longer knows it."""
    admin = _admin(broker)
    admin.delete_topics([topic])[topic].result(30)
    wait_until(lambda: topic not in admin.list_topics(timeout=10).topics, f"{topic} is gone")


def recreate_topic(broker: Server, topic: str, partitions: int = 1) -> None:
    """The same name, another topic."""
    delete_topic(broker, topic)
    create_topic(broker.bootstrap, topic, partitions)


def grow_topic(broker: Server, topic: str, partitions: int) -> None:
    """Add partitions and return once each has a leader that answers."""
    admin = _admin(broker)
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)

    def led() -> bool:
        found = admin.list_topics(topic, timeout=10).topics[topic].partitions
        return len(found) == partitions and all(part.leader >= 0 for part in found.values())

    wait_until(led, f"{topic} has {partitions} partitions with leaders")


def _offsets(broker: Server, topic: str, which: OffsetSpec) -> dict[TopicPartition, int]:
    admin = _admin(broker)
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    asked = {TopicPartition(topic, partition): which for partition in partitions}
    return {place: future.result(10).offset for place, future in admin.list_offsets(asked).items()}


def _admin(broker: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})
