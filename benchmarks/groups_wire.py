"""The requests of group members as bytes, and their answers read: fixed versions that both brokers serve.

Like `wire`, written against the protocol and not against our codec. All but ConsumerGroupHeartbeat, which has no other,
are the newest versions without tagged fields.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from benchmarks.wire import frame, packed_string

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = (8, 7), (9, 5), (10, 0)
JOIN_GROUP, HEARTBEAT, SYNC_GROUP = (11, 5), (12, 3), (14, 3)
CONSUMER_GROUP_HEARTBEAT = (68, 1)

NO_INSTANCE = b"\xff\xff"
NO_TAGS = b"\0"
COMPACT_NULL = b"\0"
CONSUMER = "consumer"
ASSIGNOR = "range"


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer to JoinGroup; only the leader is told the members."""

    error: int
    generation: int
    leader: str
    member_id: str
    members: list[str]


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to ConsumerGroupHeartbeat; partitions are None where nothing changes."""

    error: int
    epoch: int
    topic_id: bytes
    partitions: list[int] | None


def find_coordinator(group: str) -> bytes:
    return frame(*FIND_COORDINATOR, 0, packed_string(group))


def coordinator_error(answer: bytes) -> int:
    return _Reader(answer, 4).int16()


def join_group(group: str, member_id: str, topic: str, session_ms: int, rebalance_ms: int) -> bytes:
    subscription = struct.pack(">hi", 0, 1) + packed_string(topic) + struct.pack(">i", -1)
    body = packed_string(group) + struct.pack(">ii", session_ms, rebalance_ms) + packed_string(member_id)
    body += NO_INSTANCE + packed_string(CONSUMER) + struct.pack(">i", 1) + packed_string(ASSIGNOR)
    return frame(*JOIN_GROUP, 0, body + _bytes(subscription))


def joined(answer: bytes) -> Joined:
    read = _Reader(answer, 8)
    error, generation = read.int16(), read.int32()
    read.string()  # the protocol
    leader, member_id = read.string(), read.string()
    members = []
    for _ in range(read.int32()):
        members.append(read.string())
        read.string()
        read.skip(read.int32())
    return Joined(error, generation, leader, member_id, members)


def sync_group(
    group: str, generation: int, member_id: str, topic: str, shares: dict[str, list[int]]
) -> bytes:
    """With the assignment of every member from the leader, with none from the others."""
    body = packed_string(group) + struct.pack(">i", generation) + packed_string(member_id) + NO_INSTANCE
    body += struct.pack(">i", len(shares))
    for member, partitions in shares.items():
        assignment = struct.pack(">hi", 0, 1) + packed_string(topic) + _int32s(partitions)
        body += packed_string(member) + _bytes(assignment + struct.pack(">i", -1))
    return frame(*SYNC_GROUP, 0, body)


def synced(answer: bytes) -> tuple[int, list[int]]:
    """Error and partitions."""
    read = _Reader(answer, 8)
    error = read.int16()
    if read.int32() <= 0:
        return error, []
    read.skip(2 + 4)  # version and the count of topics: one
    read.string()
    return error, [read.int32() for _ in range(read.int32())]


def heartbeat(group: str, generation: int, member_id: str) -> bytes:
    body = packed_string(group) + struct.pack(">i", generation) + packed_string(member_id) + NO_INSTANCE
    return frame(*HEARTBEAT, 0, body)


def beaten(answer: bytes) -> int:
    """The error."""
    return _Reader(answer, 8).int16()


def join_consumer_group(group: str, member_id: str, topic: str, rebalance_ms: int) -> bytes:
    body = struct.pack(">i", 0) + COMPACT_NULL * 2 + struct.pack(">i", rebalance_ms)
    body += b"\2" + _compact(topic) + COMPACT_NULL * 2 + b"\1"  # no regex, no assignor, nothing owned
    return _consumer_frame(group, member_id, body)


def consumer_heartbeat(
    group: str, member_id: str, epoch: int, owned: tuple[bytes, list[int]] | None = None
) -> bytes:
    """With what the member owns (topic id and partitions) where that changed."""
    body = struct.pack(">i", epoch) + COMPACT_NULL * 2 + struct.pack(">i", -1) + COMPACT_NULL * 3
    if owned is None:
        body += COMPACT_NULL
    elif not owned[1]:
        body += b"\1"
    else:
        topic_id, partitions = owned
        body += b"\2" + topic_id + _uvarint(len(partitions) + 1)
        body += struct.pack(f">{len(partitions)}i", *partitions) + NO_TAGS
    return _consumer_frame(group, member_id, body)


def consumer_beat(answer: bytes) -> Beat:
    read = _Reader(answer, 4 + 1 + 4)  # correlation id, tags, throttle time
    error = read.int16()
    read.skip(max(read.uvarint() - 1, 0))
    read.skip(max(read.uvarint() - 1, 0))
    epoch = read.int32()
    read.skip(4)
    if read.int8() < 0:
        return Beat(error, epoch, b"", None)
    topic_id, partitions = b"", []
    for _ in range(read.uvarint() - 1):
        topic_id = read.take(16)
        partitions = [read.int32() for _ in range(read.uvarint() - 1)]
        read.skip(1)
    return Beat(error, epoch, topic_id, partitions)


def offset_commit(group: str, topic: str, partitions: range, offset: int) -> bytes:
    """From outside of the group, as tools and consumers with assigned partitions do."""
    body = packed_string(group) + struct.pack(">i", -1) + packed_string("") + NO_INSTANCE
    body += struct.pack(">i", 1) + packed_string(topic) + struct.pack(">i", len(partitions))
    body += b"".join(
        struct.pack(">iqi", partition, offset, -1) + packed_string("") for partition in partitions
    )
    return frame(*OFFSET_COMMIT, 0, body)


def offset_committed(topic: str, partitions: range) -> bytes:
    """The whole answer to a commit where nothing was refused, its size in front."""
    answer = struct.pack(">iii", 0, 0, 1) + packed_string(topic) + struct.pack(">i", len(partitions))
    answer += b"".join(struct.pack(">ih", partition, 0) for partition in partitions)
    return struct.pack(">i", len(answer)) + answer


def offset_fetch(group: str, topic: str, partition: int) -> bytes:
    body = packed_string(group) + struct.pack(">i", 1) + packed_string(topic) + _int32s([partition])
    return frame(*OFFSET_FETCH, 0, body)


def fetched(answer: bytes) -> tuple[int, int]:
    """Error and offset."""
    read = _Reader(answer, 8)
    if not read.int32():
        return read.int16(), -1
    read.string()
    read.skip(4 + 4)
    offset = read.int64()
    read.skip(4)
    read.string()
    return read.int16() or read.int16(), offset


class _Reader:
    """Reads one answer from front to back."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def int8(self) -> int:
        return int.from_bytes(self.take(1), "big", signed=True)

    def int16(self) -> int:
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def uvarint(self) -> int:
        result = shift = 0
        while (byte := self.take(1)[0]) > 0x7F:
            result |= (byte & 0x7F) << shift
            shift += 7
        return result | byte << shift

    def string(self) -> str:
        """Also a null one, as an empty one."""
        return self.take(max(self.int16(), 0)).decode()

    def skip(self, size: int) -> None:
        self._at += size

    def take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]


def _consumer_frame(group: str, member_id: str, body: bytes) -> bytes:
    # The tags in front belong to the request header, which is flexible here.
    named = NO_TAGS + _compact(group) + _compact(member_id)
    return frame(*CONSUMER_GROUP_HEARTBEAT, 0, named + body + NO_TAGS)


def _compact(text: str) -> bytes:
    return _uvarint(len(text) + 1) + text.encode()


def _uvarint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _int32s(numbers: list[int]) -> bytes:
    return struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
