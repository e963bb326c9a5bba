"""Messages of formats 0 and 1, as clients before 0.11 write and read them: one by one, or packed into a wrapper.

A message stands behind its offset and its size. A compressed set of messages is the value of one more message, the
wrapper, which carries the offset of the last of them. Inside of a wrapper offsets are absolute in format 0 and count
from the first message in format 1. No client of today comes here.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import (
    CODEC_MASK,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    TimestampType,
)
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.legacy_compression import compress_messages, decompress_messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pykafka_broker.protocol.records.compression import Bytes
    from pykafka_broker.protocol.records.record import Record

_PREFIX_SIZE: Final = 12
"""Offset and size, which stand in front of every message and are not counted in its size."""

_MIN_SIZE: Final = 14  # of a message of format 0 with neither key nor value
_PREFIX = struct.Struct(">qi")
_CRC = struct.Struct(">I")
_CRC_AT: Final = 12
_CHECKED_AT: Final = 16
_ATTRIBUTES_AT: Final = 17
_TIMESTAMP = struct.Struct(">q")
_TIMESTAMP_AT: Final = 18
_LENGTH = struct.Struct(">i")
_NULL: Final = _LENGTH.pack(-1)


class Message(NamedTuple):
    """One message with its offset as it stands. If it has a codec it is a wrapper."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec_number(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def codec(self) -> Codec:
        """MalformedError for the numbers nobody has defined."""
        if self.codec_number > Codec.ZSTD:
            raise MalformedError(f"unknown compression codec {self.codec_number}")
        return Codec(self.codec_number)

    @property
    def timestamp_type(self) -> TimestampType:
        if self.magic > 0 and self.attributes & LOG_APPEND_TIME_BIT:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME


def split_messages(data: Bytes) -> Iterator[memoryview]:
    """The bytes of each message (or batch, if one stands among them), wrappers unopened.

    What is cut at the end is left out. MalformedError where the bytes cannot be a message of any format."""
    view = memoryview(data)
    position, end = 0, len(view)
    while position + MAGIC_AT < end:
        size = _PREFIX.unpack_from(view, position)[1]
        if size < _MIN_SIZE:
            raise MalformedError(f"a message of {size} bytes cannot be")
        magic = view[position + MAGIC_AT]
        if magic > MAGIC:
            raise MalformedError(f"magic {magic} at byte {position}, expected 0 to {MAGIC}")
        after = position + _PREFIX_SIZE + size
        if after > end:
            return
        yield view[position:after]
        position = after


def is_intact(message: memoryview) -> bool:
    """Whether the checksum of a message of format 0 or 1 is right."""
    stored: int = _CRC.unpack_from(message, _CRC_AT)[0]
    return zlib.crc32(message[_CHECKED_AT:]) == stored


def read_message(message: memoryview) -> Message:
    """The fields of one message as `split_messages` gave it. MalformedError if they do not fit into it."""
    magic = message[MAGIC_AT]
    if magic >= MAGIC:
        raise MalformedError(f"a message of magic {magic}, expected 0 or 1")
    timestamp, position = NO_TIMESTAMP, _TIMESTAMP_AT
    if magic == 1:
        try:
            (timestamp,) = _TIMESTAMP.unpack_from(message, _TIMESTAMP_AT)
        except struct.error:
            raise MalformedError("a message of format 1 without room for its timestamp") from None
        position += _TIMESTAMP.size
    key, position = _read_bytes(message, position)
    value, _ = _read_bytes(message, position)
    offset: int = _PREFIX.unpack_from(message)[0]
    return Message(offset, magic, message[_ATTRIBUTES_AT], timestamp, key, value)


def unwrap(wrapper: Message) -> Iterator[memoryview]:
    """The messages inside of a wrapper, their offsets as they stand. MalformedError if it does not open."""
    if wrapper.value is None:
        raise MalformedError("a wrapper without a value")
    return split_messages(decompress_messages(wrapper.codec, wrapper.value, wrapper.magic))


def build_messages(
    records: Sequence[Record],
    magic: int,
    *,
    codec: Codec = Codec.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> bytes:
    """A set of `records` (at least one, with their offsets) in format 0 or 1; their headers have no place in it."""
    stamp = LOG_APPEND_TIME_BIT if magic > 0 and timestamp_type is TimestampType.LOG_APPEND_TIME else 0
    if codec is Codec.NONE:
        return b"".join(_messages(records, magic, stamp, 0))
    first = records[0].offset if magic > 0 else 0
    packed = compress_messages(codec, b"".join(_messages(records, magic, stamp, first)), magic)
    timestamp = max(record.timestamp for record in records)
    return _message(records[-1].offset, magic, codec | stamp, timestamp, None, packed)


def _messages(records: Iterable[Record], magic: int, attributes: int, first: int) -> Iterator[bytes]:
    for record in records:
        yield _message(record.offset - first, magic, attributes, record.timestamp, record.key, record.value)


def _message(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    checked = bytes((magic, attributes))
    if magic > 0:
        checked += _TIMESTAMP.pack(timestamp)
    checked += _NULL if key is None else _LENGTH.pack(len(key)) + key
    checked += _NULL if value is None else _LENGTH.pack(len(value)) + value
    return _PREFIX.pack(offset, _CRC.size + len(checked)) + _CRC.pack(zlib.crc32(checked)) + checked


def _read_bytes(message: memoryview, position: int) -> tuple[bytes | None, int]:
    try:
        (length,) = _LENGTH.unpack_from(message, position)
    except struct.error:
        raise MalformedError("a message ends before its key or value") from None
    position += _LENGTH.size
    if length < 0:
        return None, position
    end = position + length
    if end > len(message):
        raise MalformedError(f"field of {length} bytes where {len(message) - position} are left")
    return bytes(message[position:end]), end
