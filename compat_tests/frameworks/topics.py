"""Topics seen from outside a framework: what is written to it, what came of that, how far it has committed."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from compat_tests.groups.positions import committed
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SECONDS = 90


class Said(NamedTuple):
    """A record as people write it."""

    key: str | None
    value: str | None
    timestamp: int = 0
    partition: int | None = None


def write(bootstrap: str, topic: str, records: Iterable[Said]) -> None:
    """Return once all are acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1})
    for record in records:
        where = {} if record.partition is None else {"partition": record.partition}
        producer.produce(topic, record.value, record.key, timestamp=record.timestamp, **where)
    assert producer.flush(SECONDS) == 0


class Reader:
    """All of a topic from its beginning, as it comes; owns the consumer."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
        self._consumer = Consumer({**settings, "fetch.wait.max.ms": 50})
        partitions = self._consumer.list_topics(topic, SECONDS).topics[topic].partitions
        self._consumer.assign(
            [TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions]
        )
        self.records: list[tuple[str | None, str | None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def latest(self) -> dict[str | None, str | None]:
        """The last value of each key so far."""
        return dict(self.pull())

    def pull(self) -> list[tuple[str | None, str | None]]:
        """Key and value of all records so far, each partition in its order."""
        for message in self._consumer.consume(1000, timeout=0.05):
            assert message.error() is None, message.error()
            key, value = message.key(), message.value()
            self.records.append((key and key.decode(), value if value is None else value.decode()))
        return self.records

    def wait(self, enough: Callable[[], object], what: str) -> None:
        """Read until it is enough; a failure tells what came."""
        try:
            wait_until(enough, what, SECONDS)
        except AssertionError as late:
            raise AssertionError(f"{late}; last came {self.records[-20:]}") from None


def bounds(bootstrap: str, *topics: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Beginning and end of each partition, as offsets."""
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "bounds"})) as consumer:
        return {
            (topic, partition): consumer.get_watermark_offsets(TopicPartition(topic, partition), SECONDS)
            for topic in topics
            for partition in consumer.list_topics(topic, SECONDS).topics[topic].partitions
        }


def wait_for_commit(bootstrap: str, group: str, *topics: str) -> None:
    """Wait until the group has committed the end of every partition that has records."""

    def behind() -> dict[tuple[str, int], int]:
        wanted = {place: end for place, (_, end) in bounds(bootstrap, *topics).items() if end}
        kept = committed(bootstrap, group)[group]
        return {place: end for place, end in wanted.items() if place not in kept or kept[place].offset != end}

    wait_until(lambda: not behind(), f"{group} has committed the ends of {topics}", SECONDS)


def configs(bootstrap: str, topic: str) -> dict[str, str]:
    """Every config of a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(SECONDS)
    return {name: entry.value for name, entry in found.items()}
