"""Committed offsets as clients knew them before there were coordinators: OffsetCommit 0 and OffsetFetch 0."""

from __future__ import annotations

import struct

import pytest

from compat_tests.conftest import create_topic
from compat_tests.servers import wait_until
from compat_tests.wire import Wire, string

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
OK, UNKNOWN_TOPIC, METADATA_TOO_LARGE = 0, 3, 12
NOTHING = (-1, UNKNOWN_TOPIC)


def commit(
    wire: Wire, group: str, topic: str, offset: int, *, partition: int = 0, note: str = "", version: int = 0
) -> int:
    member = struct.pack(">i", -1) + string("") + struct.pack(">q", -1) if version else b""
    place = string(topic) + struct.pack(">iiq", 1, partition, offset) + string(note)
    answer = wire.request(OFFSET_COMMIT, version, string(group) + member + struct.pack(">i", 1) + place)
    return struct.unpack(">h", answer[-2:])[0]


def committed(wire: Wire, group: str, topic: str, *, partition: int = 0, version: int = 0) -> tuple[int, int]:
    """Offset and error; a note would lie between them, and stand in the way."""
    asked = string(group) + struct.pack(">i", 1) + string(topic) + struct.pack(">ii", 1, partition)
    answer = wire.request(OFFSET_FETCH, version, asked)
    _, offset, note, error = struct.unpack_from(">iqhh", answer, 4 + 2 + len(topic) + 4)
    assert note == 0
    return offset, error


@pytest.mark.feature("commit and fetch offsets")
def test_offsets_are_kept_without_a_word_to_a_coordinator(against, own_broker):
    if against == "kafka-4.3.1":
        pytest.skip("Apache Kafka 4 has no place for such offsets")
    broker = own_broker()
    topic = create_topic(broker.bootstrap, "read-long-ago")
    with Wire(broker.port) as wire:
        assert committed(wire, "old", topic) == NOTHING
        assert commit(wire, "old", topic, 3, note="forgotten") == OK
        assert committed(wire, "old", topic) == (3, OK)
        assert commit(wire, "old", topic, 4) == OK
        assert committed(wire, "old", topic) == (4, OK)
        assert commit(wire, "old", topic, 5, note="n" * 5000) == METADATA_TOO_LARGE
        assert commit(wire, "old", topic, 5, partition=7) == UNKNOWN_TOPIC
        assert commit(wire, "old", "nobody-made-it", 5) == UNKNOWN_TOPIC
        assert committed(wire, "old", topic, partition=7) == NOTHING
        assert committed(wire, "old", "nobody-made-it") == NOTHING
        assert committed(wire, "other", topic) == NOTHING
    broker.stop()
    broker.start()
    with Wire(broker.port) as wire:
        wait_until(lambda: committed(wire, "old", topic) == (4, OK), "the offsets are read again")


@pytest.mark.feature("commit and fetch offsets")
def test_a_group_without_a_name_keeps_offsets_too(broker, topic):
    name = topic()
    with Wire(broker.port) as wire:
        wait_until(
            lambda: wire.request(FIND_COORDINATOR, 0, string(""))[:2] == bytes(2), "there is a coordinator"
        )
        wait_until(lambda: commit(wire, "", name, 7, version=2) == OK, "the coordinator is ready")
        assert committed(wire, "", name, version=2) == (7, OK)
