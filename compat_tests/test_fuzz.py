"""Whole frames at random, thousands of them, to a broker that must neither fall, nor stumble, nor forget."""

from __future__ import annotations

import base64
import contextlib
import os
import random
import re
import select
import time
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from compat_tests import wire
from compat_tests.conftest import create_topic
from compat_tests.frames import Frames
from compat_tests.servers import resident_kib, wait_until
from compat_tests.wire import Wire, batch

if TYPE_CHECKING:
    from compat_tests.conftest import MakeBroker
    from compat_tests.servers import Server

SECONDS = float(os.environ.get("FUZZ_SECONDS") or 12)
CROWD = 40
KEPT = "kept-and-never-named-by-a-frame"
MAY_GROW_KIB = 120_000
# A codec that does not exist is such an error in Kafka, too: where nobody waits for an answer, the log has it.
STUMBLED = re.compile(
    r"unexpected failure|Traceback|(?<!acks=0 failed: )UNKNOWN_SERVER_ERROR|never retrieved|background work failed"
)


def send_all(port: int, payloads: list[bytes]) -> None:
    """Each payload on a connection of its own, all at once; whoever is not answered soon hangs up."""
    links = []
    for payload in payloads:
        link = Wire(port)
        link.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError, ConnectionError):
            link.socket.send(payload)
        links.append(link)
    silent = [link.socket for link in links]
    deadline = time.monotonic() + 0.03
    while silent and (left := deadline - time.monotonic()) > 0:
        for answered in select.select(silent, [], [], left)[0]:
            silent.remove(answered)
    for link in links:
        link.close()


def topic_ids(broker: Server, names: list[str]) -> list[UUID]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    described = admin.describe_topics(TopicCollection(names)).values()
    return [UUID(bytes=base64.urlsafe_b64decode(f"{future.result(30).topic_id}==")) for future in described]


class Keeper:
    """The good client: writes before, during and after, and reads everything back at the end."""

    def __init__(self, broker: Server) -> None:
        self._topic = create_topic(broker.bootstrap, KEPT)
        self._wire = Wire(broker.port)
        self._written: list[bytearray] = []

    def write(self) -> None:
        made = batch(b"record %d" % len(self._written))
        assert self._wire.produce_one(self._topic, made) == (0, len(self._written))
        self._written.append(made)

    def reads_all(self, broker: Server) -> None:
        with Wire(broker.port) as client:
            error, stored = client.fetch(self._topic, 0)
        assert error == 0
        seals = [bytes(made[wire.CRC_AT :]) for made in self._written]
        at = 0
        for number, seal in enumerate(seals):
            assert int.from_bytes(stored[at : at + 8], "big") == number
            assert stored[at + wire.CRC_AT : at + wire.CRC_AT + len(seal)] == seal
            at += wire.CRC_AT + len(seal)
        assert at == len(stored)


@pytest.mark.feature("bad input: fuzz")
def test_frames_at_random_neither_harm_nor_grow_the_broker(own_broker: MakeBroker) -> None:
    broker = own_broker()
    seed = int(os.environ.get("FUZZ_SEED") or random.randrange(1 << 32))
    print(f"FUZZ_SEED={seed} draws the same frames again")
    names = [create_topic(broker.bootstrap, f"fuzz-{n}") for n in range(3)]
    frames = Frames(seed, names, [UUID(int=0), UUID(int=seed), *topic_ids(broker, names)])
    keeper = Keeper(broker)
    for _ in range(10):  # every codec is compiled and every buffer made before memory is measured
        send_all(broker.port, [frames.burst() for _ in range(CROWD)])
    before = resident_kib(broker.pid)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        send_all(broker.port, [frames.burst() for _ in range(CROWD)])
        keeper.write()
    wait_until(lambda: resident_kib(broker.pid) - before < MAY_GROW_KIB, "what was held is let go of")
    assert broker.alive
    keeper.reads_all(broker)
    stumbles = [line for line in broker.output.read_text().splitlines() if STUMBLED.search(line)]
    assert stumbles == [], broker.tail(200)
    broker.kill()
    broker.start()
    keeper.reads_all(broker)
