"""Single records, read out of a batch.

A broker does this only away from the produce and fetch paths: control records, internal topics, compaction,
the dump tool, tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import (
    HEADER_SIZE,
    MAGIC,
    NO_TIMESTAMP,
    TimestampType,
    read_header,
    records_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafka_broker.protocol.records.batch import BatchHeader
    from pykafka_broker.protocol.records.compression import Bytes

NEXT_OFFSET = -1
_MAX_VARINT_BITS = 64


class Record(NamedTuple):
    """One record with its absolute offset and timestamp.

    Header names that are not UTF-8 survive a round trip (surrogateescape). When building a batch, an offset
    of NEXT_OFFSET means the one after the record before.
    """

    key: bytes | None
    value: bytes | None
    timestamp: int = NO_TIMESTAMP
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset: int = NEXT_OFFSET


def iter_records(batch_view: Bytes) -> Iterator[Record]:
    """The records of the batch at the start of `batch_view`. MalformedError at the first thing amiss."""
    header = read_header(batch_view)
    if header.magic != MAGIC or header.size < HEADER_SIZE:
        raise MalformedError(f"not a batch of version {MAGIC}: magic {header.magic}, {header.size} bytes")
    if header.record_count < 0:
        raise MalformedError(f"record count {header.record_count} is negative")
    data = records_bytes(batch_view, 0, header)
    fixed_time = header.max_timestamp if header.timestamp_type is TimestampType.LOG_APPEND_TIME else None
    pos = 0
    for _ in range(header.record_count):
        length, pos = _read_varint(data, pos)
        end = pos + length
        if length < 0 or end > len(data):
            raise MalformedError(f"record of {length} bytes where {len(data) - pos} are left")
        record, pos = _read_record(data, pos, header, fixed_time)
        if pos != end:
            raise MalformedError(f"record ends at byte {pos} instead of {end}")
        yield record
    if pos != len(data):
        raise MalformedError(f"{len(data) - pos} bytes behind the last record")


def _read_record(
    data: bytes | memoryview, pos: int, header: BatchHeader, fixed_time: int | None
) -> tuple[Record, int]:
    if pos >= len(data):
        raise MalformedError("record without content")
    timestamp_delta, pos = _read_varint(data, pos + 1)  # the byte skipped: attributes, all unused
    offset_delta, pos = _read_varint(data, pos)
    key, pos = _read_bytes(data, pos)
    value, pos = _read_bytes(data, pos)
    count, pos = _read_varint(data, pos)
    if not 0 <= count <= len(data) - pos:
        raise MalformedError(f"{count} record headers where {len(data) - pos} bytes are left")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, pos = _read_bytes(data, pos)
        if name is None:
            raise MalformedError("record header without a name")
        content, pos = _read_bytes(data, pos)
        headers.append((name.decode(errors="surrogateescape"), content))
    timestamp = header.base_timestamp + timestamp_delta if fixed_time is None else fixed_time
    return Record(key, value, timestamp, tuple(headers), header.base_offset + offset_delta), pos


def _read_varint(data: bytes | memoryview, pos: int) -> tuple[int, int]:
    """A zigzag-encoded integer and the position behind it."""
    try:
        byte = data[pos]
        if byte < 0x80:  # most are one byte
            return (byte >> 1) ^ -(byte & 1), pos + 1
        result, shift = byte & 0x7F, 7
        while shift < _MAX_VARINT_BITS:
            pos += 1
            byte = data[pos]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (result >> 1) ^ -(result & 1), pos + 1
            shift += 7
    except IndexError:
        raise MalformedError("integer is cut short") from None
    raise MalformedError("integer of more than ten bytes")


def _read_bytes(data: bytes | memoryview, pos: int) -> tuple[bytes | None, int]:
    length, pos = _read_varint(data, pos)
    if length == -1:
        return None, pos
    end = pos + length
    if length < 0 or end > len(data):
        raise MalformedError(f"field of {length} bytes where {len(data) - pos} are left")
    return bytes(data[pos:end]), end
