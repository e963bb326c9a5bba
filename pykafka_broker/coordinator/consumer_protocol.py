"""What consumers of the classic protocol tell each other through the broker: their subscriptions and assignments.

Both begin with their version, 0 to 3; a later one is read as the last we know, as its beginning is the same.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pykafka_broker.protocol.codec import decode, encode
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.types import array, binary, field, int32, message, string
from pykafka_broker.protocol.types import struct as wire_struct

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

_VERSION = struct.Struct(">h")
_LATEST = 3


@wire_struct
class TopicPartitionList:
    """Partitions of a topic."""

    topic: str = field(string, "0+")
    partitions: list[int] = field(array(int32), "0+")


@message(api_key=-1, versions="0-3", flexible="none")
class Subscription:
    """What a member wants to read, and from version 1 on what it reads now."""

    topics: list[str] = field(array(string), "0+")
    user_data: bytes | None = field(binary, "0+", nullable="0+", default=None)
    owned_partitions: list[TopicPartitionList] = field(array(TopicPartitionList), "1+")
    generation_id: int = field(int32, "2+", default=-1)
    rack_id: str | None = field(string, "3+", nullable="3+", default=None)


@message(api_key=-1, versions="0-3", flexible="none")
class ConsumerAssignment:
    """What a member shall read."""

    assigned_partitions: list[TopicPartitionList] = field(array(TopicPartitionList), "0+")
    user_data: bytes | None = field(binary, "0+", nullable="0+", default=None)


def version_of(content: bytes) -> int:
    """The version it is written in, as far as we know it. MalformedError if there is none."""
    if len(content) < _VERSION.size:
        raise MalformedError("it is too short to have a version")
    version: int = _VERSION.unpack_from(content)[0]
    if version < 0:
        raise MalformedError(f"it has version {version}")
    return min(version, _LATEST)


def read_subscription(content: bytes) -> Subscription:
    """MalformedError if it is none."""
    return decode(Subscription, version_of(content), memoryview(content)[_VERSION.size :])


def read_assignment(content: bytes) -> ConsumerAssignment:
    """MalformedError if it is none."""
    return decode(ConsumerAssignment, version_of(content), memoryview(content)[_VERSION.size :])


def write_assignment(partitions: Mapping[str, AbstractSet[int]], version: int) -> bytes:
    topics = [TopicPartitionList(topic=name, partitions=sorted(held)) for name, held in partitions.items()]
    return _VERSION.pack(version) + b"".join(encode(ConsumerAssignment(assigned_partitions=topics), version))
