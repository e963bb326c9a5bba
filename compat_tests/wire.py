"""Kafka's protocol by hand over a plain socket: what no well-behaved client would ever send.

Nothing here comes from the broker under test: frames are packed with struct, batches built by kafka-python.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING, NamedTuple, Self

from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder

if TYPE_CHECKING:
    from collections.abc import Mapping

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 1, 2, 3, 18, 22
PRODUCE_VERSION = 7
COORDINATOR_LOAD_IN_PROGRESS = 14
CRC_AT, CRC_FROM = 17, 21


class Produced(NamedTuple):
    """A partition's answer to Produce."""

    error: int
    base_offset: int


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def header(api: int, version: int, correlation: int = 1) -> bytes:
    """A request header of the non-flexible kind, which every version here uses."""
    return struct.pack(">hhi", api, version, correlation) + string("wire")


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def batch(
    *values: bytes,
    codec: int = 0,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    timestamp: int = 1,
) -> bytearray:
    """A batch of magic 2, as a client would build it."""
    builder = DefaultRecordBatchBuilder(2, codec, False, producer_id, epoch, sequence, 1 << 30)
    for n, value in enumerate(values):
        builder.append(n, timestamp, None, value, [])
    return bytearray(builder.build())


def resealed(data: bytearray) -> bytearray:
    """The same batch with its CRC made right again, to get past it to the check behind."""
    struct.pack_into(">I", data, CRC_AT, crc32c(bytes(data[CRC_FROM:])))
    return data


def produce_body(topics: Mapping[str, Mapping[int, bytes | bytearray | None]], acks: int = -1) -> bytes:
    """Body of a Produce request, version 3 to 8."""
    body = struct.pack(">hhii", -1, acks, 5000, len(topics))
    for topic, partitions in topics.items():
        body += string(topic) + struct.pack(">i", len(partitions))
        for partition, records in partitions.items():
            size = -1 if records is None else len(records)
            body += struct.pack(">ii", partition, size) + bytes(records or b"")
    return body


def metadata_body(*topics: str, create: bool = False) -> bytes:
    """Body of a Metadata request, version 4 to 7."""
    return struct.pack(">i", len(topics)) + b"".join(map(string, topics)) + bytes([create])


def fetch_body(topic: str, offset: int, wait_ms: int = 500, max_bytes: int = 1 << 20) -> bytes:
    """Body of a Fetch request of version 4, for partition 0."""
    place = struct.pack(">iiqi", 1, 0, offset, max_bytes)
    return struct.pack(">iiiibi", -1, wait_ms, 1, max_bytes, 0, 1) + string(topic) + place


def list_offsets_body(topic: str, timestamp: int = -1) -> bytes:
    """Body of a ListOffsets request of version 1, for partition 0."""
    return struct.pack(">ii", -1, 1) + string(topic) + struct.pack(">iiq", 1, 0, timestamp)


def _past_string(data: bytes, at: int) -> int:
    return at + 2 + max(struct.unpack_from(">h", data, at)[0], 0)


def produced(answer: bytes) -> dict[tuple[str, int], Produced]:
    """What an answer to Produce says of each partition."""
    found, at = {}, 4
    for _ in range(struct.unpack_from(">i", answer)[0]):
        (size,) = struct.unpack_from(">h", answer, at)
        topic = answer[at + 2 : at + 2 + size].decode()
        at += 2 + size
        (count,) = struct.unpack_from(">i", answer, at)
        at += 4
        for _ in range(count):
            partition, error, offset, _, _ = struct.unpack_from(">ihqqq", answer, at)
            found[topic, partition] = Produced(error, offset)
            at += 30
    return found


class Wire:
    """One connection; speaks and listens in raw bytes."""

    def __init__(self, port: int, timeout: float = 10) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> bytes | None:
        """The next whole frame without its size, or None once the broker hung up."""
        size = self._exactly(4)
        return None if size is None else self._exactly(struct.unpack(">i", size)[0])

    def closed(self) -> bool:
        """Whether the broker hangs up without another word."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def request(self, api: int, version: int, body: bytes) -> bytes:
        """Ask, and return the body of the answer, its correlation id checked."""
        self._correlation += 1
        self.send(framed(header(api, version, self._correlation) + body))
        answer = self.receive()
        assert answer is not None, "the broker hung up"
        assert struct.unpack_from(">i", answer)[0] == self._correlation
        return answer[4:]

    def produce(
        self, topics: Mapping[str, Mapping[int, bytes | bytearray | None]], acks: int = -1
    ) -> dict[tuple[str, int], Produced]:
        return produced(self.request(PRODUCE, PRODUCE_VERSION, produce_body(topics, acks)))

    def produce_one(self, topic: str, records: bytes | bytearray | None, acks: int = -1) -> Produced:
        return self.produce({topic: {0: records}}, acks)[topic, 0]

    def fetch(self, topic: str, offset: int) -> tuple[int, bytes]:
        """Error code and record bytes of partition 0."""
        answer = self.request(FETCH, 4, fetch_body(topic, offset))
        at = 4 + 4 + 2 + len(topic) + 4 + 4
        error, _, _, aborted = struct.unpack_from(">hqqi", answer, at)
        at += 22 + 16 * max(aborted, 0)
        (size,) = struct.unpack_from(">i", answer, at)
        return error, answer[at + 4 : at + 4 + max(size, 0)]

    def topic_error(self, name: bytes) -> int:
        """What Metadata, allowed to create it, says about a topic."""
        answer = self.request(METADATA, 4, struct.pack(">ih", 1, len(name)) + name + b"\x01")
        at = 8
        for _ in range(struct.unpack_from(">i", answer, 4)[0]):
            at += 4
            at = _past_string(answer, at) + 4
            at = _past_string(answer, at)
        at = _past_string(answer, at) + 4
        count, error = struct.unpack_from(">ih", answer, at)
        assert count == 1
        return error

    def init_producer(self) -> tuple[int, int]:
        """A producer id and epoch; asked again while the broker still loads what hands them out."""
        deadline = time.monotonic() + 10
        while True:
            answer = self.request(INIT_PRODUCER_ID, 0, struct.pack(">hi", -1, 60_000))
            _, error, producer, epoch = struct.unpack(">ihqh", answer)
            if error != COORDINATOR_LOAD_IN_PROGRESS or time.monotonic() > deadline:
                assert error == 0
                return producer, epoch

    def end_offset(self, topic: str) -> int:
        answer = self.request(LIST_OFFSETS, 1, list_offsets_body(topic))
        return struct.unpack_from(">q", answer, len(answer) - 8)[0]

    def _exactly(self, count: int) -> bytes | None:
        data = bytearray()
        while len(data) < count:
            try:
                piece = self.socket.recv(count - len(data))
            except ConnectionResetError:
                return None
            if not piece:
                return None
            data += piece
        return bytes(data)


def served_by(port: int) -> dict[int, tuple[int, int]]:
    """The APIs a broker says it serves, each with its lowest and highest version."""
    with Wire(port) as wire:
        answer = wire.request(API_VERSIONS, 0, b"")
    error, count = struct.unpack_from(">hi", answer)
    assert error == 0
    triples = (struct.unpack_from(">hhh", answer, 6 + 6 * n) for n in range(count))
    return {api: (lowest, highest) for api, lowest, highest in triples}
