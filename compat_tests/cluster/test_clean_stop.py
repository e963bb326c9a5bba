"""A broker stopped cleanly and left down: nobody who writes waits for it to come back."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from compat_tests.cluster.clients import Client
from compat_tests.cluster.ordeal import IMPATIENT
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from compat_tests.cluster.brokers import Cluster

PARTITIONS = 12
LEFT_DOWN_SECONDS = 5
LONGEST_WAIT_SECONDS = 3
"""librdkafka takes up to two to find a leader that moved; nobody waits for a replica that is gone."""


class Patient(Client):
    """Writes one record with acks=all and waits for the answer before it writes the next; owner of its producer."""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        super().__init__(f"writer of {topic}-{partition}")
        self._topic, self._partition = topic, partition
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0, **IMPATIENT}
        )
        self.written = 0
        self.waits: list[float] = []

    def step(self) -> None:
        asked = time.monotonic()
        self._producer.produce(self._topic, b"record", partition=self._partition, on_delivery=self._told)
        self._producer.flush()
        self.waits.append(time.monotonic() - asked)

    def _told(self, error: object, _: object) -> None:
        if error is None:
            self.written += 1
        else:
            self.errors.append(str(error))


def test_no_write_waits_for_a_broker_that_was_stopped_cleanly(cluster: Cluster) -> None:
    """With one write under way there is no other behind it that could move the high watermark."""
    cluster.create_topic("patience", PARTITIONS)
    victim = next(number for number in cluster.brokers if number != cluster.controller())
    with ExitStack() as stack:
        writers = [
            stack.enter_context(Patient(cluster.bootstrap, "patience", partition))
            for partition in range(PARTITIONS)
        ]
        wait_until(lambda: all(writer.written for writer in writers), "each has written")
        for writer in writers:
            writer.waits.clear()
        cluster.stop(victim)
        time.sleep(LEFT_DOWN_SECONDS)  # a write that hangs does so for as long as the broker is away
        cluster.start(victim)
    assert [error for writer in writers for error in writer.errors] == []
    waits = {f"patience-{n}": round(max(writer.waits), 1) for n, writer in enumerate(writers)}
    assert {where: wait for where, wait in waits.items() if wait > LONGEST_WAIT_SECONDS} == {}
