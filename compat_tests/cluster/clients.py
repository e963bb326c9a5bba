"""Clients of librdkafka that keep going whatever happens to the brokers, and write down what they saw."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Self, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from compat_tests.cluster.history import NO_PLACE, History, Record
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compat_tests.cluster.history import Log

T = TypeVar("T")

BEFORE_THE_BROKER = 2000
"""Records a producer may be ahead: what a fault costs stays small."""
PADDING = b"." * 100
LONGEST_STEP_SECONDS = 120
"""More than librdkafka waits for any one answer."""
CONNECTION_TROUBLE = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)
"""What librdkafka tells for information while it connects again."""
_LEADER_MOVES = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
)
_LEADER_TRIES = 20


class Client:
    """A thread that repeats `step` until it is left; owner of the thread."""

    def __init__(self, name: str) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.errors: list[str] = []
        """What an application would have had to handle itself."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(LONGEST_STEP_SECONDS)
        assert not self._thread.is_alive(), f"{self._thread.name} waits for an answer that never comes"

    def step(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        while not self._stop.is_set():
            self.step()


class Writer(Client):
    """Sends numbered records to each partition in turn, so many a second; owner of its producer."""

    def __init__(
        self, history: History, topic: str, partitions: int, rate: int, config: Mapping[str, object]
    ) -> None:
        super().__init__(f"writer of {topic}")
        self._history, self._topic, self._partitions = history, topic, partitions
        self._pause = partitions / rate
        self._producer = Producer({"log_level": 0, **config})
        self._number = 0
        self._due = time.monotonic()
        self.latest: dict[int, int] = dict.fromkeys(range(partitions), 0)
        """Records acknowledged, by partition."""
        self.longest_wait = 0.0
        """Seconds between two acknowledgements, at most."""
        self._last = time.monotonic()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if left := self._producer.flush(90):
            self.errors.append(f"{left} records were never answered")

    def step(self) -> None:
        try:
            self._send_and_listen()
        except KafkaException as error:  # an idempotent producer that finds records missing gives up for ever
            self.errors.append(error.args[0].str())
            self._stop.set()

    def _send_and_listen(self) -> None:
        if len(self._producer) < BEFORE_THE_BROKER:
            for partition in range(self._partitions):
                value = b"%d:%d:" % (partition, self._number) + PADDING
                self._history.sent[partition].append(value)
                self._producer.produce(self._topic, value, partition=partition, on_delivery=self._told)
            self._number += 1
        # The pace is kept on average; what a pause has cost is not made up for.
        self._due = max(self._due + self._pause, time.monotonic() - self._pause)
        self._producer.poll(max(0.0, self._due - time.monotonic()))
        time.sleep(max(0.0, self._due - time.monotonic()))

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error.str())
            return
        now = time.monotonic()
        self.longest_wait, self._last = max(self.longest_wait, now - self._last), now
        # An idempotent producer that saw a later record stored asks no more where this one was.
        offset = NO_PLACE if message.offset() is None else message.offset()
        self._history.acknowledged.append(Record(message.partition(), offset, message.value()))
        self.latest[message.partition()] += 1


class Reader(Client):
    """Reads all partitions from the beginning, in nobody's name; owner of its consumer."""

    def __init__(
        self, history: History, name: str, topic: str, partitions: int, config: Mapping[str, object]
    ) -> None:
        super().__init__(name)
        self._seen = history.reads[name]
        self.positions: dict[int, int] = dict.fromkeys(range(partitions), 0)
        settings = {"group.id": "nobody", "enable.auto.commit": False, "auto.offset.reset": "error"}
        self._consumer = Consumer({"log_level": 0, **settings, **config})
        self._consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._consumer.close()

    def step(self) -> None:
        for message in self._consumer.consume(1000, 0.05):
            if message.error() is None:
                self._seen.append(Record(message.partition(), message.offset(), message.value()))
                self.positions[message.partition()] = message.offset() + 1
            elif message.error().code() not in CONNECTION_TROUBLE:
                self.errors.append(message.error().str())


class Member(Client):
    """One of a group: reads what it is given and commits as it goes; owner of its consumer."""

    def __init__(self, history: History, name: str, topic: str, config: Mapping[str, object]) -> None:
        super().__init__(name)
        self._history, self._seen = history, history.reads[name]
        self._floor: dict[int, int] = {}
        self._told_at = 0.0
        self.forgotten: list[str] = []
        """Where a member was given a partition below a position that had been committed."""
        settings = {
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        self._consumer = Consumer({"log_level": 0, **settings, **config})
        self._consumer.subscribe([topic], on_assign=self._assigned)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._commit()
        self._consumer.close()

    def step(self) -> None:
        for message in self._consumer.consume(1000, 0.05):
            if message.error() is None:
                self._read(Record(message.partition(), message.offset(), message.value()))
            elif message.error().code() not in CONNECTION_TROUBLE:
                self.errors.append(f"{self._thread.name}: {message.error().str()}")
        if time.monotonic() > self._told_at + 0.2:
            self._commit()
            self._told_at = time.monotonic()

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        told = dict(self._history.committed)
        self._floor = {p.partition: told.get(p.partition, 0) for p in partitions}

    def _read(self, record: Record) -> None:
        floor = self._floor.pop(record.partition, 0)
        if record.offset < floor:
            self.forgotten.append(f"{record.partition} begins at {record.offset}, {floor} was committed")
        self._seen.append(record)

    def _commit(self) -> None:
        try:
            told = self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            # The next commit is higher: nothing is lost by a commit that failed.
            if error.args[0].code() != KafkaError._NO_OFFSET:
                self.errors.append(f"{self._thread.name} did not commit: {error.args[0].str()}")
            return
        for place in told:
            if place.error is None:
                before = self._history.committed.get(place.partition, 0)
                self._history.committed[place.partition] = max(before, place.offset)


def ends(bootstrap: str, topic: str, partitions: int) -> dict[int, int]:
    """The end of each partition, as far as it is committed."""
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody", "log_level": 0})) as asking:
        return {
            p: _until_led(lambda p=p: asking.get_watermark_offsets(TopicPartition(topic, p), 30)[1])
            for p in range(partitions)
        }


def positions(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Where a group stands."""
    wanted = [TopicPartition(topic, p) for p in range(partitions)]
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})) as asking:
        places = _until_led(lambda: asking.committed(wanted, 30))
    return {place.partition: place.offset for place in places}


def _until_led(ask: Callable[[], T]) -> T:
    """What is asked of a leader or coordinator that may be moving at this very moment: then it is asked for again."""
    for _ in range(_LEADER_TRIES - 1):
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _LEADER_MOVES:
                raise
            time.sleep(0.5)
    return ask()


def whole_log(bootstrap: str, topic: str, partitions: int) -> Log:
    """All there is, as a newcomer reads it."""
    end = ends(bootstrap, topic, partitions)
    found = History()
    with Reader(found, "newcomer", topic, partitions, {"bootstrap.servers": bootstrap}) as reader:
        wait_until(lambda: reader.positions == end, f"a newcomer reads {topic} to its end", 60)
    assert reader.errors == []
    log: Log = {partition: {} for partition in range(partitions)}
    for record in found.reads["newcomer"]:
        assert record.offset not in log[record.partition], f"read twice in one go: {record}"
        log[record.partition][record.offset] = record.value
    return log
