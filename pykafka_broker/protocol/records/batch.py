"""The record batch, format version 2: its header, its checksum, and the few changes a broker makes to it.

A broker appends batches as they came. Base offset and leader epoch lie in front of the checksummed part and
are patched in place. Only `build_batch`, which no client request reaches, costs time per record.
"""

from __future__ import annotations

import enum
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from crc32c import crc32c

from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.compression import Codec, compress, decompress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pykafka_broker.protocol.records.compression import Bytes
    from pykafka_broker.protocol.records.record import Record

HEADER_SIZE = 61
MAGIC = 2
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
SEQUENCE_MODULUS = 1 << 31
"""Sequence numbers run from 0 to 2^31-1 and start again."""

HEADER = struct.Struct(">qiibIhiqqqhii")
_SIZE_OVERHEAD = 12  # base offset and the length field itself are not counted in batch_length
_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
_EPOCH_AT = 12
MAGIC_AT = 16
_CRC = struct.Struct(">I")
_CRC_AT = 17
_CHECKED_AT = 21
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP_AT = 35
_OFFSET = struct.Struct(">q")

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40


class TimestampType(enum.IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


def advance_sequence(sequence: int, by: int) -> int:
    """`sequence` moved by `by` (either way), wrapping as Kafka's sequences do."""
    return (sequence + by) % SEQUENCE_MODULUS


class BatchHeader(NamedTuple):
    """The 61 bytes in front of a batch's records, as they lie."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.batch_length + _SIZE_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """MalformedError for the three codec numbers nobody has defined."""
        number = self.attributes & CODEC_MASK
        if number > Codec.ZSTD:
            raise MalformedError(f"unknown compression codec {number}")
        return Codec(number)

    @property
    def timestamp_type(self) -> TimestampType:
        if self.attributes & LOG_APPEND_TIME_BIT:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % SEQUENCE_MODULUS


def read_header(view: Bytes, pos: int = 0) -> BatchHeader:
    """The header at `pos`, unjudged. MalformedError when fewer than HEADER_SIZE bytes are there."""
    try:
        return BatchHeader._make(HEADER.unpack_from(view, pos))
    except struct.error:
        raise MalformedError(
            f"a batch header takes {HEADER_SIZE} bytes, {max(0, len(view) - pos)} are left"
        ) from None


def iter_headers(view: Bytes, pos: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of every complete batch; a cut one at the end is left out.

    MalformedError where the bytes cannot be a batch of version 2 at all.
    """
    end = len(view)
    while pos + HEADER_SIZE <= end:
        header = BatchHeader._make(HEADER.unpack_from(view, pos))
        size = header.batch_length + _SIZE_OVERHEAD
        if header.magic != MAGIC:
            raise MalformedError(f"magic {header.magic} at byte {pos}, expected {MAGIC}")
        if size < HEADER_SIZE:
            raise MalformedError(f"batch of {size} bytes at byte {pos} is smaller than its header")
        if pos + size > end:
            return
        yield pos, header
        pos += size


def checksum(view: Bytes, pos: int, size: int) -> int:
    """CRC-32C of what a batch's checksum covers: everything behind the checksum field."""
    return crc32c(memoryview(view)[pos + _CHECKED_AT : pos + size])


def verify_crc(view: Bytes, pos: int, header: BatchHeader) -> bool:
    """True when the batch is wholly there and its checksum is right."""
    if header.batch_length < HEADER_SIZE - _SIZE_OVERHEAD or pos + header.size > len(view):
        return False
    return checksum(view, pos, header.size) == header.crc


def assign(view: bytearray | memoryview, pos: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch at `pos` its place in the log. Both fields lie outside the checksum."""
    _OFFSET.pack_into(view, pos, base_offset)
    _LENGTH.pack_into(view, pos + _EPOCH_AT, leader_epoch)


def stamp_log_append_time(view: bytearray | memoryview, pos: int, header: BatchHeader, ms: int) -> None:
    """Make `ms` the timestamp of every record of the batch, and its checksum right again."""
    _ATTRIBUTES.pack_into(view, pos + _CHECKED_AT, header.attributes | LOG_APPEND_TIME_BIT)
    _OFFSET.pack_into(view, pos + _MAX_TIMESTAMP_AT, ms)
    _CRC.pack_into(view, pos + _CRC_AT, checksum(view, pos, header.size))


def clear_log_append_time(view: bytearray | memoryview, pos: int, header: BatchHeader) -> None:
    """Let the records have the times they carry, and make the checksum right again."""
    _ATTRIBUTES.pack_into(view, pos + _CHECKED_AT, header.attributes & ~LOG_APPEND_TIME_BIT)
    _CRC.pack_into(view, pos + _CRC_AT, checksum(view, pos, header.size))


def records_bytes(view: Bytes, pos: int, header: BatchHeader) -> bytes | memoryview:
    """The records of the batch at `pos`, decompressed but not parsed."""
    body = memoryview(view)[pos + HEADER_SIZE : pos + header.size]
    if len(body) != header.size - HEADER_SIZE:
        raise MalformedError(f"batch of {header.size} bytes is cut short")
    return decompress(header.codec, body)


def recompress(view: Bytes, header: BatchHeader, codec: Codec, level: int | None = None) -> bytearray:
    """A copy of the batch at the start of `view`, its records packed with `codec`. Records are not parsed."""
    return seal(header, compress(codec, records_bytes(view, 0, header), level), codec)


def seal(header: BatchHeader, body: Bytes, codec: Codec) -> bytearray:
    """A batch of `header` and `body` (packed with `codec`); length, codec and checksum are filled in."""
    batch = bytearray(HEADER_SIZE + len(body))
    attributes = header.attributes & ~CODEC_MASK | codec
    HEADER.pack_into(
        batch, 0, *header._replace(batch_length=len(batch) - _SIZE_OVERHEAD, attributes=attributes)
    )
    batch[HEADER_SIZE:] = body
    _CRC.pack_into(batch, _CRC_AT, checksum(batch, 0, len(batch)))
    return batch


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """One batch holding `records` (at least one), whose offsets must rise from `base_offset` on."""
    body = bytearray()
    count, last_offset, base_timestamp, max_timestamp = 0, base_offset - 1, NO_TIMESTAMP, NO_TIMESTAMP
    for record in records:
        if count == 0:
            base_timestamp = record.timestamp
        offset = last_offset + 1 if record.offset < 0 else record.offset
        if offset <= last_offset:
            raise ValueError(f"offset {offset} does not come after {last_offset}")
        count, last_offset, max_timestamp = count + 1, offset, max(max_timestamp, record.timestamp)
        _write_record(body, record, record.timestamp - base_timestamp, offset - base_offset)
    if count == 0:
        raise ValueError("a batch holds at least one record")
    attributes = (
        (LOG_APPEND_TIME_BIT if timestamp_type is TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
    )
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=count,
    )
    return bytes(seal(header, compress(codec, body, level), codec))


def seal_plain(batch: bytearray, count: int, timestamp: int) -> None:
    """Fill in the header that `batch` has left room for: `count` records, uncompressed, all of one time."""
    nobody = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)
    length = len(batch) - _SIZE_OVERHEAD
    HEADER.pack_into(batch, 0, 0, length, -1, MAGIC, 0, 0, count - 1, timestamp, timestamp, *nobody, count)
    _CRC.pack_into(batch, _CRC_AT, checksum(batch, 0, len(batch)))


def _write_record(body: bytearray, record: Record, timestamp_delta: int, offset_delta: int) -> None:
    key, value, _, headers, _ = record
    content = b"\0" + varint(timestamp_delta) + varint(offset_delta)
    content += _NULL if key is None else varint(len(key)) + key
    content += _NULL if value is None else varint(len(value)) + value
    content += varint(len(headers))
    for name, data in headers:
        name_bytes = name.encode(errors="surrogateescape")
        content += varint(len(name_bytes)) + name_bytes
        content += _NULL if data is None else varint(len(data)) + data
    body += varint(len(content))
    body += content


# Lengths and deltas of what coordinators write are small, and the same again and again.
@lru_cache(maxsize=8192)
def varint(value: int) -> bytes:
    """As a zigzag-encoded integer."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_NULL = varint(-1)
"""The length of what is not there."""
