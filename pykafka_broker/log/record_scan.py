"""Records looked at only as far as compaction has to: where they lie, their key, and whether they have a value.

Parsing a record wholly costs several times as much, and compaction visits every record of a log again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykafka_broker.protocol.errors import MalformedError

if TYPE_CHECKING:
    from collections.abc import Iterator

Scanned = tuple[int, int, int, int, int, bytes | None, bool]
"""Where the record begins, where it goes on behind its timestamp, where it ends; its timestamp delta, its offset delta,
its key, and whether it has a value. A plain tuple: it is made for every record."""

_NO_VALUE: Final = 1  # a length of -1, as it is written
_MORE: Final = 0x80


def scan_records(data: bytes, count: int) -> Iterator[Scanned]:
    """The `count` records that `data`, the decompressed body of a batch, consists of. MalformedError if it does not."""
    pos = 0
    try:
        for _ in range(count):
            start = pos
            # Most numbers take one byte: they are read here, without a call.
            byte = data[pos]
            length, pos = (byte >> 1, pos + 1) if byte < _MORE else _read_varint(data, pos)
            end = pos + length
            pos += 1  # attributes, all unused
            byte = data[pos]
            if byte < _MORE:
                timestamp, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                timestamp, pos = _read_varint(data, pos)
            rest = pos
            byte = data[pos]
            offset, pos = (byte >> 1, pos + 1) if byte < _MORE else _read_varint(data, pos)
            byte = data[pos]
            if byte < _MORE:
                size, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                size, pos = _read_varint(data, pos)
            key = None
            if size >= 0:
                key = data[pos : pos + size]
                pos += size
            if not pos < end <= len(data):
                raise MalformedError(f"record of {length} bytes at byte {start} does not hold its fields")
            yield start, rest, end, timestamp, offset, key, data[pos] != _NO_VALUE
            pos = end
    except IndexError:
        raise MalformedError(f"{count} records were announced, the data ends within one") from None
    if pos != len(data):
        raise MalformedError(f"{len(data) - pos} bytes behind the last record")


def _read_varint(data: bytes, pos: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        result |= (byte & 0x7F) << shift
        if byte < _MORE:
            return (result >> 1) ^ -(result & 1), pos
        shift += 7


def varint(value: int) -> bytes:
    """`value` as records hold their numbers."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value >= _MORE:
        out.append(value & 0x7F | _MORE)
        value >>= 7
    out.append(value)
    return bytes(out)
