"""Input no client sends on purpose: answered as Apache Kafka answers it, and nobody else notices."""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING

import pytest

from compat_tests import wire
from compat_tests.conftest import create_topic
from compat_tests.servers import resident_kib, wait_until
from compat_tests.wire import Wire, batch, framed, header, resealed, string

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.conftest import MakeBroker, MakeTopic
    from compat_tests.servers import Server

CORRUPT_MESSAGE, UNKNOWN_TOPIC_OR_PARTITION, MESSAGE_TOO_LARGE = 2, 3, 10
INVALID_TOPIC, INVALID_REQUIRED_ACKS, UNSUPPORTED_VERSION = 17, 21, 35
OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_RECORD = 45, 47, 87


class Bystander:
    """A well-behaved client that keeps one connection open and must never notice the others."""

    def __init__(self, broker: Server) -> None:
        self._broker = broker
        self.topic = create_topic(broker.bootstrap, f"bystander-{time.time_ns()}")
        self._wire = Wire(broker.port)
        self._written = 0

    def writes_and_reads(self) -> None:
        sent = batch(b"record %d" % self._written)
        assert self._wire.produce_one(self.topic, sent) == (0, self._written)
        error, stored = self._wire.fetch(self.topic, self._written)
        assert error == 0
        assert struct.unpack_from(">q", stored)[0] == self._written
        assert stored[wire.CRC_AT :] == bytes(sent[wire.CRC_AT :])
        self._written += 1

    def close(self) -> None:
        self._wire.close()


@pytest.fixture(scope="module")
def bystander(broker: Server) -> Iterator[Bystander]:
    client = Bystander(broker)
    yield client
    client.close()


@pytest.fixture(autouse=True)
def undisturbed(broker: Server, bystander: Bystander) -> Iterator[None]:
    """After each bad client the broker lives, and a client connected since before has not noticed."""
    bystander.writes_and_reads()
    yield
    bystander.writes_and_reads()
    assert broker.alive


@pytest.fixture
def client(broker: Server) -> Iterator[Wire]:
    with Wire(broker.port) as connection:
        yield connection


@pytest.mark.feature("bad input: frames")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack(">i", -1), id="size -1"),
        pytest.param(struct.pack(">i", -(2**31)), id="smallest size"),
        pytest.param(struct.pack(">i", 2**31 - 1), id="2 GiB"),
        pytest.param(struct.pack(">i", 104_857_601), id="one over socket.request.max.bytes"),
        pytest.param(struct.pack(">i", 0), id="empty frame"),
        pytest.param(framed(b"\x00"), id="one byte"),
        pytest.param(framed(b"\x00\x03\x00\x01"), id="header cut short"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(600), id="TLS hello"),
        pytest.param(framed(header(999, 0)), id="unknown API"),
        pytest.param(framed(header(-1, 0)), id="negative API"),
        pytest.param(framed(header(wire.METADATA, 99)), id="version too new"),
        pytest.param(framed(header(wire.METADATA, -1)), id="negative version"),
        pytest.param(framed(header(wire.METADATA, 4) + b"\x00"), id="body cut short"),
        pytest.param(framed(header(wire.METADATA, 4) + struct.pack(">i", 2**31 - 1)), id="absurd array"),
        pytest.param(framed(header(wire.METADATA, 4) + struct.pack(">ih", 1, 32767)), id="absurd string"),
        pytest.param(framed(header(wire.METADATA, 4) + struct.pack(">ih", 1, -5)), id="negative string"),
        pytest.param(
            framed(header(wire.PRODUCE, 7) + struct.pack(">hhii", -1, 1, 9, -7)), id="negative array"
        ),
        pytest.param(
            framed(
                header(wire.PRODUCE, 7)
                + struct.pack(">hhii", -1, 1, 9, 1)
                + string("t")
                + struct.pack(">iii", 1, 0, 2**31 - 1)
            ),
            id="absurd records",
        ),
        pytest.param(
            framed(struct.pack(">hhihB", wire.METADATA, 12, 1, -1, 0) + b"\xff\xff\xff\xff\xff\xff"),
            id="endless varint",
        ),
    ],
)
def test_what_cannot_be_understood_closes_the_connection(client: Wire, data: bytes) -> None:
    client.send(data)
    assert client.closed()


@pytest.mark.feature("bad input: frames")
@pytest.mark.parametrize("keep", [1, 3, 4, 5, 20])
def test_a_client_that_leaves_in_the_middle_of_a_frame_is_forgotten(client: Wire, keep: int) -> None:
    client.send(framed(header(wire.METADATA, 4) + wire.metadata_body("t"))[:keep])
    client.socket.shutdown(socket.SHUT_WR)
    assert client.closed()


@pytest.mark.feature("ApiVersions: a version from the future")
def test_an_unknown_version_of_api_versions_is_told_the_ranges(client: Wire) -> None:
    client.send(framed(header(wire.API_VERSIONS, 99, correlation=7) + b"\x00whatever"))
    answer = client.receive()
    assert answer is not None
    correlation, error, count = struct.unpack_from(">ihi", answer)
    assert (correlation, error) == (7, UNSUPPORTED_VERSION)
    ranges = {key: (low, high) for key, low, high in struct.iter_unpack(">hhh", answer[10 : 10 + 6 * count])}
    assert len(answer) == 10 + 6 * count
    assert ranges[wire.API_VERSIONS][0] == 0
    assert ranges[wire.API_VERSIONS][1] >= 4
    assert client.request(wire.API_VERSIONS, 0, b"")[:2] == b"\0\0", "the connection goes on"


@pytest.mark.feature("requests are answered in order")
def test_a_pipeline_of_requests_is_answered_in_order(client: Wire) -> None:
    ask = [framed(header(wire.METADATA, 4, n) + wire.metadata_body("nobody")) for n in range(300)]
    client.send(b"".join(ask))
    answers = [client.receive() for _ in ask]
    assert [struct.unpack_from(">i", answer)[0] for answer in answers if answer] == list(range(300))


@pytest.mark.feature("bad input: slow clients")
def test_a_client_that_sends_byte_by_byte_is_answered(client: Wire, bystander: Bystander) -> None:
    request = framed(header(wire.METADATA, 4, 5) + wire.metadata_body(bystander.topic))
    for at in range(len(request)):
        client.send(request[at : at + 1])
        if at % 8 == 0:
            bystander.writes_and_reads()
    answer = client.receive()
    assert answer is not None
    assert struct.unpack_from(">i", answer)[0] == 5


@pytest.mark.feature("bad input: slow clients")
def test_a_client_that_never_reads_is_held_back(
    broker: Server, bystander: Bystander, topic: MakeTopic
) -> None:
    name = topic()
    with Wire(broker.port) as writer:
        assert writer.produce_one(name, batch(b"x" * 500_000)) == (0, 0)
    before = resident_kib(broker.pid)
    fetch = framed(header(wire.FETCH, 4) + wire.fetch_body(name, 0))
    with Wire(broker.port) as greedy:
        greedy.socket.settimeout(1)
        greedy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        with pytest.raises(TimeoutError):
            greedy.send(fetch * 100_000)
        bystander.writes_and_reads()
        assert resident_kib(broker.pid) - before < 200_000, "answers nobody reads pile up"


@pytest.mark.feature("bad input: too many connections")
def test_a_flood_of_connections_from_one_address_is_refused(own_broker: MakeBroker) -> None:
    broker = own_broker(max_connections_per_ip=10)
    with_ten = admit(broker, 10)
    flood = [Wire(broker.port) for _ in range(40)]
    assert all(extra.closed() for extra in flood)
    assert all(one.request(wire.API_VERSIONS, 0, b"") for one in with_ten)
    for one in (*with_ten, *flood):
        one.close()
    admit(broker, 1)[0].close()


@pytest.mark.feature("bad input: too many connections")
def test_one_connection_too_many_waits_until_another_ends(own_broker: MakeBroker) -> None:
    broker = own_broker(max_connections=10)
    served = admit(broker, 10)
    with Wire(broker.port, timeout=0.5) as patient:
        patient.send(framed(header(wire.API_VERSIONS, 0, correlation=7)))
        with pytest.raises(TimeoutError):
            patient.receive()
        patient.socket.settimeout(10)
        served.pop().close()
        answer = patient.receive()
        assert answer is not None
        assert answer[:4] == b"\0\0\0\x07"
    for one in served:
        one.close()


@pytest.mark.feature("bad input: slow clients")
def test_a_silent_client_is_let_go_and_a_speaking_one_is_not(own_broker: MakeBroker) -> None:
    broker = own_broker(connections_max_idle_ms=1500)
    with Wire(broker.port) as idle, Wire(broker.port) as busy:
        idle.request(wire.API_VERSIONS, 0, b"")
        idle.socket.settimeout(0.1)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            busy.request(wire.API_VERSIONS, 0, b"")
            try:
                assert idle.closed()
                break
            except TimeoutError:
                continue
        else:
            pytest.fail("the idle connection is still open")
        busy.request(wire.API_VERSIONS, 0, b"")


@pytest.mark.feature("requests are answered in order")
def test_a_fetch_that_waits_holds_back_what_was_asked_after_it(
    broker: Server, client: Wire, topic: MakeTopic
) -> None:
    name = topic()
    waiting = header(wire.FETCH, 4, 1) + wire.fetch_body(name, 0, wait_ms=20_000)
    quick = [header(wire.METADATA, 4, n) + wire.metadata_body(name) for n in (2, 3)]
    client.send(b"".join(map(framed, [waiting, *quick])))
    with Wire(broker.port) as writer:
        assert writer.produce_one(name, batch(b"wakes the fetch")) == (0, 0)
    answers = [client.receive() for _ in range(3)]
    assert [struct.unpack_from(">i", answer)[0] for answer in answers if answer] == [1, 2, 3]
    assert answers[0] is not None
    assert b"wakes the fetch" in answers[0]


def admit(broker: Server, count: int) -> list[Wire]:
    """That many connections, each of them served: the broker may still count some that just left."""
    links: list[Wire] = []

    def one_more() -> bool:
        link = Wire(broker.port)
        try:
            link.request(wire.API_VERSIONS, 0, b"")
        except (AssertionError, OSError):
            link.close()
        else:
            links.append(link)
        return len(links) == count

    wait_until(one_more, f"{count} connections are served")
    return links


def with_bytes(at: int, data: bytes, *, seal: bool = True) -> bytearray:
    """A good batch with some bytes of its header replaced."""
    made = batch(b"one", b"two")
    made[at : at + len(data)] = data
    return resealed(made) if seal else made


@pytest.mark.feature("bad input: record batches")
@pytest.mark.parametrize(
    ("records", "error"),
    [
        pytest.param(with_bytes(17, b"\0\0\0\0", seal=False), CORRUPT_MESSAGE, id="wrong CRC"),
        pytest.param(with_bytes(70, b"\xff", seal=False), CORRUPT_MESSAGE, id="flipped byte"),
        pytest.param(with_bytes(16, b"\x00"), INVALID_RECORD, id="magic 0"),
        pytest.param(with_bytes(16, b"\x01"), INVALID_RECORD, id="magic 1"),
        pytest.param(batch(b"one") + batch(b"two"), INVALID_RECORD, id="two batches"),
        pytest.param(b"", INVALID_RECORD, id="empty records"),
        pytest.param(b"\0" * 10, INVALID_RECORD, id="less than a header"),
        pytest.param(batch(b"one")[:-1], INVALID_RECORD, id="batch cut short"),
        pytest.param(with_bytes(57, struct.pack(">i", 7)), INVALID_RECORD, id="count and deltas differ"),
        pytest.param(with_bytes(57, struct.pack(">i", -1)), INVALID_RECORD, id="negative count"),
        pytest.param(with_bytes(21, b"\x00\x20"), INVALID_RECORD, id="control batch from a client"),
    ],
)
def test_a_broken_batch_is_refused_and_its_neighbour_stored(
    client: Wire, topic: MakeTopic, records: bytearray, error: int
) -> None:
    name = topic(partitions=2)
    answer = client.produce({name: {0: records, 1: batch(b"good")}})
    assert answer[name, 0].error == error
    assert answer[name, 1] == (0, 0)
    assert client.end_offset(name) == 0, "nothing of the broken batch was kept"
    assert client.produce_one(name, batch(b"good")) == (0, 0)


@pytest.mark.feature("bad input: record batches")
def test_no_batch_at_all_is_refused(client: Wire, topic: MakeTopic, against: str) -> None:
    if against != "ours":
        pytest.skip("Apache Kafka 4.3.1 stumbles over null records and never answers")
    name = topic(partitions=2)
    answer = client.produce({name: {0: None, 1: batch(b"good")}})
    assert answer[name, 0].error == INVALID_RECORD
    assert answer[name, 1] == (0, 0)


@pytest.mark.feature("bad input: record batches")
@pytest.mark.parametrize(
    "records",
    [
        pytest.param(with_bytes(16, b"\x03"), id="magic 3"),
        pytest.param(with_bytes(16, b"\xff"), id="magic -1"),
        pytest.param(with_bytes(8, struct.pack(">i", 3)), id="length too small"),
        pytest.param(with_bytes(8, struct.pack(">i", -1)), id="negative length"),
    ],
)
def test_a_batch_that_cannot_be_framed_is_corrupt(
    client: Wire, topic: MakeTopic, records: bytearray, against: str
) -> None:
    name = topic(partitions=2)
    answer = client.produce({name: {0: records, 1: batch(b"good")}})
    assert answer[name, 0].error == CORRUPT_MESSAGE
    # Apache Kafka refuses the neighbour with it; ours need not.
    refused_too = {(CORRUPT_MESSAGE, -1)} if against != "ours" else set()
    assert answer[name, 1] in {(0, 0)} | refused_too
    assert client.produce_one(name, batch(b"good")) == (0, 0)


@pytest.mark.feature("bad input: message too large")
def test_a_batch_over_the_limit_is_refused(client: Wire, topic: MakeTopic) -> None:
    name = topic(max_message_bytes=1000)
    assert client.produce_one(name, batch(b"x" * 1000)).error == MESSAGE_TOO_LARGE
    assert client.produce_one(name, batch(b"x" * 800)) == (0, 0)


@pytest.mark.feature("bad input: topics")
@pytest.mark.parametrize(
    "name", [b"no/slash", b"with space", b"x" * 300, b"..", b"", "č".encode(), b"\xff\xfe"]
)
def test_an_illegal_topic_name_is_refused_and_not_created(client: Wire, name: bytes) -> None:
    assert client.topic_error(name) == INVALID_TOPIC


@pytest.mark.feature("bad input: topics")
def test_writing_to_nowhere_is_refused_beside_a_good_write(client: Wire, topic: MakeTopic) -> None:
    name = topic()
    answer = client.produce(
        {
            name: {0: batch(b"good"), 7: batch(b"lost")},
            "nobody-made-this": {0: batch(b"x")},
            "a/b": {0: batch(b"x")},
        }
    )
    assert answer[name, 0] == (0, 0)
    assert {answer[place].error for place in answer if place != (name, 0)} == {UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.feature("bad input: acks")
def test_an_impossible_level_of_acknowledgement_is_refused(client: Wire, topic: MakeTopic) -> None:
    name = topic()
    assert client.produce_one(name, batch(b"x"), acks=5).error == INVALID_REQUIRED_ACKS
    assert client.produce_one(name, batch(b"x")) == (0, 0)


@pytest.mark.feature("bad input: acks")
def test_an_error_nobody_waits_for_closes_the_connection(client: Wire) -> None:
    body = wire.produce_body({"nobody-made-this": {0: batch(b"x")}}, acks=0)
    client.send(framed(header(wire.PRODUCE, 7) + body))
    assert client.closed()


@pytest.mark.feature("idempotent producers")
def test_sequences_of_a_producer_are_kept(client: Wire, topic: MakeTopic) -> None:
    name = topic()
    producer, epoch = client.init_producer()

    def send(sequence: int, *values: bytes, epoch: int = epoch) -> wire.Produced:
        return client.produce_one(name, batch(*values, producer_id=producer, epoch=epoch, sequence=sequence))

    assert send(0, b"a", b"b") == (0, 0)
    assert send(2, b"c") == (0, 2)
    assert send(0, b"a", b"b") == (0, 0), "a duplicate is answered with its first offset"
    assert send(7, b"z").error == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(0, b"new", epoch=epoch + 1) == (0, 3)
    assert send(3, b"old").error == INVALID_PRODUCER_EPOCH
    assert client.end_offset(name) == 4
