"""A producer and a reader that keep going while their broker is killed under them, and what they saw.

Each record says which partition it was meant for and how many came before it there, so that the log can be
held against what was acknowledged: nothing lost, nothing torn, nothing out of order.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from contextlib import closing
from typing import TYPE_CHECKING, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from compat_tests.servers import Server

IMPATIENT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "log_level": 0}
"""Clients come back soon after a restart, and say nothing about connections that were cut on purpose."""
PADDING = b"." * 400

Log = dict[int, list[tuple[int, bytes]]]
"""Offset and value of each record, by partition."""


def value(partition: int, number: int) -> bytes:
    return b"%d:%d:" % (partition, number) + PADDING


class Load:
    """Writes to every partition of a topic until it is left; owner of its producer and thread."""

    def __init__(self, broker: Server, topic: str, partitions: int, **config: object) -> None:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        self._producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "linger.ms": 1, "retry.backoff.ms": 20}
            | IMPATIENT
            | settings
        )
        self._topic, self._partitions = topic, partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged: Log = defaultdict(list)
        self.refused: list[str] = []
        self.sent = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0, "records were never answered"

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def go_on(self, records: int) -> None:
        """Return once that many more were acknowledged."""
        wanted = self.count + records
        wait_until(lambda: self.count >= wanted, f"{records} more records are acknowledged", 60)

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            for partition in range(self._partitions):
                self._producer.produce(
                    self._topic, value(partition, number), partition=partition, on_delivery=self._told
                )
            number += 1
            self.sent = number
            # Ahead of the broker by a bounded amount, so that what a restart costs stays small.
            self._producer.poll(0.001 if len(self._producer) < 2000 else 0.05)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused.append(error.str())
        else:
            self.acknowledged[message.partition()].append((message.offset(), message.value()))


class Reader:
    """Reads all partitions of a topic from the beginning, across every restart; owner of its consumer."""

    def __init__(self, broker: Server, topic: str, partitions: int) -> None:
        settings = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "assigned",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.wait.max.ms": 100,
        }
        self._consumer = Consumer(settings | IMPATIENT)
        self._consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.seen: Log = defaultdict(list)
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def catch_up(self, ends: dict[int, int]) -> None:
        """Return once everything below the given end of each partition was read."""
        wait_until(
            lambda: all(
                end == 0 or (self.seen[p] and self.seen[p][-1][0] == end - 1) for p, end in ends.items()
            ),
            "the reader comes to the end",
            60,
        )

    def _run(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(1000, 0.05):
                if message.error() is None:
                    self.seen[message.partition()].append((message.offset(), message.value()))
                elif not message.error().retriable() and message.error().code() not in CUT_OFF:
                    self.errors.append(message.error().str())


CUT_OFF = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


def ends(broker: Server, topic: str, partitions: int) -> dict[int, int]:
    """The end offset of each partition."""
    with closing(Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "ends"})) as consumer:
        return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), 30)[1] for p in range(partitions)}


def whole_log(broker: Server, topic: str, partitions: int) -> Log:
    """Every record of the topic as a newcomer reads it."""
    with Reader(broker, topic, partitions) as reader:
        reader.catch_up(ends(broker, topic, partitions))
    assert reader.errors == []
    return reader.seen
