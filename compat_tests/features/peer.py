"""A client library at work in a process of its own."""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from compat_tests import provision

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from compat_tests.features.libraries import Library

ANSWER_SECONDS = 90
READ_SECONDS = 60
BEGINNING = OFFSET_BEGINNING
NO_TIME = -1


class Refused(Exception):
    """The library said no; the message is its own."""


class Record(NamedTuple):
    """A record on its way there or back; `offset` is known only back."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int = 0
    partition: int = 0
    offset: int = -1

    def packed(self) -> dict[str, object]:
        return {
            "partition": self.partition,
            "key": packed(self.key),
            "value": packed(self.value),
            "headers": [[name, packed(value)] for name, value in self.headers],
            "timestamp": self.timestamp,
        }


def packed(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def unpacked(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def record_of(what: dict[str, Any]) -> Record:
    headers = tuple((name, unpacked(value) or b"") for name, value in what["headers"])
    place = what["partition"], what["offset"]
    return Record(unpacked(what["value"]), unpacked(what["key"]), headers, what["timestamp"], *place)


def read_today(
    bootstrap: str, topic: str, count: int, partitions: tuple[int, ...], offset: int
) -> list[Record]:
    """The next records of these partitions as confluent-kafka sees them, for a library that only writes."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "today", "enable.auto.commit": False}
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, partition, offset) for partition in partitions])
        return [
            Record(
                message.value(),
                message.key(),
                (),
                message.timestamp()[1],
                message.partition(),
                message.offset(),
            )
            for message in consumer.consume(count, timeout=READ_SECONDS)
        ]


class Peer:
    """Owns the process; `do` asks it for one thing and waits for the answer."""

    def __init__(self, library: Library, bootstrap: str, log: Path) -> None:
        with provision.or_skip():
            command, environment = library.command(), library.environment()
        self.library, self._bootstrap, self._log = library, bootstrap, log
        self._complaints = log.open("ab")
        self._process = subprocess.Popen(
            [*command, bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            env=environment,
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)
        for pipe in (self._process.stdout, self._complaints):
            if pipe is not None:
                pipe.close()

    def do(self, word: str, **what: object) -> dict[str, Any]:
        """The answer; raises Refused where the library does."""
        assert self._process.stdin is not None
        assert self._process.poll() is None, f"{self.library} has ended:\n{self.tail()}"
        self._process.stdin.write(json.dumps({"do": word, **what}) + "\n")
        self._process.stdin.flush()
        try:
            answer = json.loads(self._answers.get(timeout=ANSWER_SECONDS))
        except queue.Empty:
            raise AssertionError(
                f"{self.library} did not answer {word} in {ANSWER_SECONDS} s:\n{self.tail()}"
            ) from None
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["ok"]

    def produce(
        self, topic: str, *records: Record, acks: str = "all", codec: str = "none", idempotent: bool = False
    ) -> list[int]:
        """Offsets of the records, in order."""
        return self.do(
            "produce",
            topic=topic,
            acks=acks,
            codec=codec,
            idempotent=idempotent,
            records=[record.packed() for record in records],
        )["offsets"]

    def consume(
        self, topic: str, count: int, *, partitions: tuple[int, ...] = (0,), offset: int = BEGINNING
    ) -> list[Record]:
        """The next records of assigned partitions, from an offset on."""
        if not self.library.can("consume assigned"):
            return read_today(self._bootstrap, topic, count, partitions, offset)
        found = self.do("consume", topic=topic, partitions=partitions, offset=offset, count=count)
        return [record_of(what) for what in found["records"]]

    def returned(self, records: Iterable[Record]) -> list[Record]:
        """These records as they come back: without their time where the library knows none."""
        return [record._replace(timestamp=NO_TIME) if self.library.timeless else record for record in records]

    def tail(self) -> str:
        """The library's last words."""
        return self._log.read_text(errors="replace")[-2000:]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._answers.put(line)
        self._answers.put(json.dumps({"error": f"the program ended:\n{self.tail()}"}))
