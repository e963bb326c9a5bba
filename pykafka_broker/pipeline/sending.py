"""Records into topics from a Spark task, with what Spark's own sink leaves out: each record's timestamp.

Idempotent and acknowledged by all replicas: order within a partition is kept, and nothing is sent twice by the client.
A task that Spark repeats does send again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import KafkaError, Message

    Headers = Sequence[tuple[str, bytes | None]]

FLUSH_SECONDS = 120
_DEFAULTS: dict[str, Any] = {"enable.idempotence": True, "linger.ms": 5, "compression.type": "lz4"}


class SendFailed(Exception):
    """A record did not arrive; the task fails with it."""


class Sender:
    """One producer. Owned by the task that made it, which ends with `finish`."""

    __slots__ = ("_error", "_producer", "sent")

    def __init__(self, options: dict[str, Any]) -> None:
        self._producer = Producer(_DEFAULTS | options)
        self._error: KafkaError | None = None
        self.sent = 0

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        *,
        partition: int = -1,
        timestamp: int = 0,
    ) -> None:
        """Queue a record; partition -1 lets its key choose, timestamp 0 is now."""
        record: dict[str, Any] = {"key": key, "headers": list(headers), "on_delivery": self._note}
        if partition >= 0:
            record["partition"] = partition
        if timestamp > 0:
            record["timestamp"] = timestamp
        while True:
            try:
                self._producer.produce(topic, value, **record)
                break
            except BufferError:  # the queue is full until some of it has been acknowledged
                self._producer.poll(0.1)
        self.sent += 1
        self._producer.poll(0)
        self._check()

    def wait(self, seconds: float) -> None:
        """Let time pass while deliveries go on."""
        self._producer.poll(seconds)
        self._check()

    def finish(self) -> int:
        """Wait until all is acknowledged; returns how many. SendFailed if something is not."""
        left = self._producer.flush(FLUSH_SECONDS)
        self._check()
        if left:
            raise SendFailed(f"{left} records were not acknowledged in {FLUSH_SECONDS} s")
        return self.sent

    def _note(self, error: KafkaError | None, _: Message) -> None:
        self._error = self._error or error

    def _check(self) -> None:
        if self._error is not None:
            raise SendFailed(self._error.str())


def header_pairs(headers: Sequence[Any] | None) -> list[tuple[str, bytes | None]]:
    """The column `headers` of a row as a producer takes it."""
    return [(item.key, None if item.value is None else bytes(item.value)) for item in headers or ()]


def as_bytes(field: bytearray | None) -> bytes | None:
    return None if field is None else bytes(field)
