"""How the old formats pack their messages: as batches do, but for the LZ4 frames of format 0.

Kafka's first LZ4 frames had a wrong checksum in their header: it was taken over the frame's magic number too. Format 0
keeps that for ever; clients that read it either expect the wrong one or do not look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.compression import MAX_DECOMPRESSED, Codec, compress, decompress

if TYPE_CHECKING:
    from pykafka_broker.protocol.records.compression import Bytes

_FRAME_MAGIC: Final = bytes.fromhex("04224d18")
_FLAGS_AT: Final = 4
_SHORTEST_HEADER: Final = 6
_HAS_SIZE: Final = 0x08
_HAS_DICTIONARY: Final = 0x01


def compress_messages(codec: Codec, data: Bytes, magic: int) -> bytes:
    """What becomes the value of a wrapper of format `magic`."""
    packed = compress(codec, data)
    if codec is Codec.LZ4 and magic == 0:
        end = _header_end(packed)
        return b"".join((packed[:end], _checksum_byte(packed[:end]), packed[end + 1 :]))
    return packed


def decompress_messages(codec: Codec, data: Bytes, magic: int, limit: int = MAX_DECOMPRESSED) -> Bytes:
    """What a wrapper of format `magic` holds. MalformedError if it is damaged or unpacks to more than `limit`."""
    if codec is Codec.LZ4 and magic == 0:
        packed = bytes(data)
        end = _header_end(packed)
        data = b"".join((packed[:end], _checksum_byte(packed[_FLAGS_AT:end]), packed[end + 1 :]))
    return decompress(codec, data, limit)


def _header_end(frame: bytes) -> int:
    """Where the checksum stands that ends the header."""
    if frame[:_FLAGS_AT] != _FRAME_MAGIC or len(frame) <= _SHORTEST_HEADER:
        raise MalformedError("not an LZ4 frame")
    flags = frame[_FLAGS_AT]
    end = _SHORTEST_HEADER + (8 if flags & _HAS_SIZE else 0) + (4 if flags & _HAS_DICTIONARY else 0)
    if len(frame) <= end:
        raise MalformedError("an LZ4 frame that ends in its header")
    return end


def _checksum_byte(header: bytes) -> bytes:
    return bytes(((_xxh32(header) >> 8) & 0xFF,))


_PRIME1, _PRIME2, _PRIME3, _PRIME4, _PRIME5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
_MASK: Final = 0xFFFFFFFF


def _xxh32(data: bytes) -> int:
    """xxHash32 with seed 0 of less than 16 bytes: no part of a header that is hashed has more."""
    value = _PRIME5 + len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little")
        value = _rotated(value + word * _PRIME3, 17) * _PRIME4
    for byte in data[whole:]:
        value = _rotated(value + byte * _PRIME5, 11) * _PRIME1
    value &= _MASK
    value = (value ^ value >> 15) * _PRIME2 & _MASK
    value = (value ^ value >> 13) * _PRIME3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, by: int) -> int:
    value &= _MASK
    return value << by | value >> (32 - by)
