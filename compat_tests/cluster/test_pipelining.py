"""Produce requests with acks=all that a client sends without waiting are replicated together."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.ordeal import stored
from compat_tests.servers import wait_until
from compat_tests.wire import (
    LIST_OFFSETS,
    PRODUCE,
    PRODUCE_VERSION,
    Produced,
    Wire,
    batch,
    framed,
    header,
    list_offsets_body,
    produce_body,
    produced,
)

if TYPE_CHECKING:
    from compat_tests.cluster.brokers import Cluster

LEADER, FOLLOWER = 1, 2


def test_what_is_under_way_is_in_the_log_before_the_first_is_replicated(cluster: Cluster) -> None:
    cluster.create_topic("t", 1, [LEADER])
    wait_until(cluster.in_sync, "all replicas are in sync")
    records = batch(b"hello")
    frames = [
        framed(header(PRODUCE, PRODUCE_VERSION, number) + produce_body({"t": {0: records}}))
        for number in range(3)
    ]
    frames.append(framed(header(LIST_OFFSETS, 1, 3) + list_offsets_body("t")))
    cluster.pause(FOLLOWER)
    with Wire(cluster.places[LEADER].port) as wire:
        wire.send(b"".join(frames))
        leader = cluster.brokers[LEADER]
        wait_until(lambda: len(stored(leader, "t", 0)) == 3 * len(records), "all three are appended", 4)
        wire.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)
        wire.socket.settimeout(30)
        cluster.wake(FOLLOWER)
        for number in range(3):
            answer = wire.receive()
            assert answer is not None
            assert struct.unpack_from(">i", answer) == (number,)
            assert produced(answer[4:]) == {("t", 0): Produced(0, number)}
        answer = wire.receive()
        assert answer is not None
        assert struct.unpack_from(">q", answer, len(answer) - 8) == (3,), (
            "what came behind them was asked after them"
        )
