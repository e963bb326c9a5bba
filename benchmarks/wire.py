"""The few requests the benchmarks send by hand: one blocking socket, fixed versions both brokers serve.

Written against the protocol and not against our codec, so both brokers meet the same independent client, and so that
the client's own cost stays a few microseconds a request. Produce 3 and Fetch 7 are the newest without tagged fields
that carry what is needed; Fetch 7 brings sessions.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from crc32c import crc32c

if TYPE_CHECKING:
    from collections.abc import Sequence

PRODUCE, FETCH, LIST_OFFSETS, API_VERSIONS, JOIN_GROUP = 0, 1, 2, 18, 11
PRODUCE_VERSION, FETCH_VERSION, LIST_OFFSETS_VERSION = 3, 7, 1
LATEST = -1
NO_SESSION, NEW_SESSION = (0, -1), (0, 0)
ACKS_LEADER = 1
REQUEST_TIMEOUT_MS = 30_000


class WireError(Exception):
    """The broker answered with an error code, or closed the connection."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer to a fetch: the session it belongs to and how many bytes of records came."""

    session_id: int
    records: int


def batch(value_size: int, count: int = 1) -> bytes:
    """One record batch (magic 2, uncompressed) of `count` records without keys."""
    records = b"".join(_record(index, value_size) for index in range(count))
    now = int(time.time() * 1000)  # an old timestamp would put the batch at the mercy of retention
    covered = struct.pack(">hiqqqhii", 0, count - 1, now, now, -1, -1, -1, count) + records
    return struct.pack(">qiibI", 0, 9 + len(covered), -1, 2, crc32c(covered)) + covered


def produce_request(topic: str, partition: int, records: bytes, correlation_id: int = 0) -> bytes:
    """A whole frame: one batch for one partition, acknowledged by the leader."""
    body = struct.pack(">hhi", -1, ACKS_LEADER, REQUEST_TIMEOUT_MS)
    body += struct.pack(">i", 1) + packed_string(topic) + struct.pack(">iii", 1, partition, len(records))
    return frame(PRODUCE, PRODUCE_VERSION, correlation_id, body + records)


def fetch_request(
    topic: str,
    positions: Sequence[tuple[int, int]],
    *,
    session: tuple[int, int] = NO_SESSION,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
) -> bytes:
    """A whole frame: (partition, offset) pairs of one topic, inside a fetch session or without."""
    body = struct.pack(">iiiibii", -1, max_wait_ms, min_bytes, max_bytes, 0, *session)
    if positions:
        body += struct.pack(">i", 1) + packed_string(topic) + struct.pack(">i", len(positions))
        body += b"".join(
            struct.pack(">iqqi", partition, offset, -1, max_bytes) for partition, offset in positions
        )
    else:
        body += struct.pack(">i", 0)
    return frame(FETCH, FETCH_VERSION, 0, body + struct.pack(">i", 0))


def latest_offsets_request(topic: str, partitions: Sequence[int]) -> bytes:
    """A whole frame: where do these partitions of a topic end? Only a leader knows."""
    body = struct.pack(">ii", -1, 1) + packed_string(topic) + struct.pack(">i", len(partitions))
    body += b"".join(struct.pack(">iq", partition, LATEST) for partition in partitions)
    return frame(LIST_OFFSETS, LIST_OFFSETS_VERSION, 0, body)


class Connection:
    """One blocking connection; answers come in the order of the requests."""

    def __init__(self, host: str, port: int, timeout: float = 60.0) -> None:
        self._socket = socket.create_connection((host, port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(1 << 16)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def send(self, frame: bytes) -> None:
        """Send one frame without waiting for its answer."""
        self._socket.sendall(frame)

    def receive(self) -> memoryview:
        """The next answer after its size; valid until the next call."""
        size = int.from_bytes(self._exactly(4), "big")
        return self._exactly(size)

    def api_versions(self) -> dict[int, tuple[int, int]]:
        """What the broker says it serves."""
        self.send(frame(API_VERSIONS, 0, 0, b""))
        answer = self.receive()
        _check(int.from_bytes(answer[4:6], "big", signed=True))
        return {key: (low, high) for key, low, high in struct.iter_unpack(">hhh", answer[10:])}

    def produced(self, topic: str) -> int:
        """Take the answer to a produce request: the offset its batch got."""
        answer = self.receive()
        _, _, error, offset = struct.unpack_from(">iihq", answer, 4 + 4 + 2 + len(topic))
        _check(error)
        return offset

    def fetched(self) -> Fetched:
        """Take the answer to a fetch request; an error of any partition raises."""
        answer = self.receive()
        error, session_id, topics = struct.unpack_from(">hii", answer, 8)
        _check(error)
        at, total = 18, 0
        for _ in range(topics):
            at += 2 + int.from_bytes(answer[at : at + 2], "big")
            partitions = int.from_bytes(answer[at : at + 4], "big")
            at += 4
            for _ in range(partitions):
                _, error, _, _, _, aborted = struct.unpack_from(">ihqqqi", answer, at)
                _check(error)
                at += 34 + max(aborted, 0) * 16
                size = max(int.from_bytes(answer[at : at + 4], "big", signed=True), 0)
                at += 4 + size
                total += size
        return Fetched(session_id, total)

    def latest_offsets(self) -> list[int]:
        """Take the answer about the ends of one topic's partitions: those of them that the broker leads."""
        answer = self.receive()
        at = 8 + 2 + int.from_bytes(answer[8:10], "big") + 4
        return [partition for partition, error, _, _ in struct.iter_unpack(">ihqq", answer[at:]) if not error]

    def _exactly(self, size: int) -> memoryview:
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view = memoryview(self._buffer)[:size]
        got = 0
        while got < size:
            received = self._socket.recv_into(view[got:])
            if not received:
                raise WireError("the broker closed the connection")
            got += received
        return view


def _record(index: int, value_size: int) -> bytes:
    # Kafka's zigzag varints; a repeated pattern is as good as random bytes where nothing is compressed.
    value = bytes(65 + (index + at) % 26 for at in range(value_size))
    content = b"\0" + _varint(0) + _varint(index) + _varint(-1) + _varint(value_size) + value + _varint(0)
    return _varint(len(content)) + content


def _varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 31)
    out = bytearray()
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def packed_string(text: str) -> bytes:
    """A string behind its length."""
    return struct.pack(">h", len(text)) + text.encode()


def frame(key: int, version: int, correlation_id: int, body: bytes) -> bytes:
    """A whole request: its size, its header, its body."""
    header = struct.pack(">hhi", key, version, correlation_id) + packed_string("bench")
    return struct.pack(">i", len(header) + len(body)) + header + body


def _check(error: int) -> None:
    if error:
        raise WireError(f"the broker answered error code {error}")
