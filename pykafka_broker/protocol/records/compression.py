"""The five codecs of a record batch, in the framings Apache Kafka's Java client writes and reads."""

from __future__ import annotations

import enum
import struct
import zlib
from typing import TYPE_CHECKING

import cramjam

from pykafka_broker.protocol.errors import MalformedError

if TYPE_CHECKING:
    from collections.abc import Callable

Bytes = bytes | bytearray | memoryview

MAX_DECOMPRESSED = 256 * 1024 * 1024
"""A batch never unpacks to more than this: a few kilobytes of zstd can otherwise claim gigabytes."""


class Codec(enum.IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: Bytes, level: int | None = None) -> bytes:
    """The compressed form of `data`; `level` None is Kafka's default level of that codec."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
            return packer.compress(data) + packer.flush()
        case Codec.SNAPPY:
            return _compress_xerial(memoryview(data))
        case Codec.LZ4:
            return _compress_lz4_frame(memoryview(data), level)
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, 3 if level is None else level))


def decompress(codec: Codec, data: Bytes, limit: int = MAX_DECOMPRESSED) -> bytes | memoryview:
    """The original bytes. MalformedError if `data` is damaged or unpacks to more than `limit` bytes."""
    try:
        match codec:
            case Codec.NONE:
                return memoryview(data)
            case Codec.GZIP:
                return _decompress_gzip(data, limit)
            case Codec.SNAPPY:
                return _decompress_snappy(memoryview(data), limit)
            case Codec.LZ4:
                return _decompress_into(cramjam.lz4.decompress_into, data, limit)
            case Codec.ZSTD:
                return _decompress_into(cramjam.zstd.decompress_into, data, limit)
    except (cramjam.DecompressionError, zlib.error, struct.error, OSError) as error:
        raise MalformedError(f"cannot decompress {codec.name.lower()} data: {error}") from error


_TOO_SMALL = "failed to write whole buffer"


def _decompress_into(unpack: Callable[[Bytes, bytearray], int], data: Bytes, limit: int) -> memoryview:
    """Neither format has to say how long its contents are: try in a buffer that most fit in, then in larger ones."""
    size = min(limit, 8 * len(data) + 4096)
    while True:
        room = bytearray(size)
        try:
            return memoryview(room)[: unpack(data, room)]
        except cramjam.DecompressionError as error:
            if size == limit or _TOO_SMALL not in str(error):
                raise
        size = min(limit, 8 * size)


def _decompress_gzip(data: Bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    rest: Bytes = data
    left = limit
    while rest:  # several gzip members may stand one after another
        unpacker = zlib.decompressobj(31)
        part = unpacker.decompress(rest, left + 1)
        if len(part) > left:
            raise MalformedError(f"gzip data unpacks to more than {limit} bytes")
        if not unpacker.eof:
            raise MalformedError("gzip data is cut short")
        left -= len(part)
        parts.append(part)
        rest = unpacker.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)


# Snappy as snappy-java's streams frame it ("xerial"): a 16-byte header, then raw blocks behind their length.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 * 1024


def _compress_xerial(data: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, limit: int) -> bytes:
    if data[:8] != _XERIAL_MAGIC:
        return _snappy_block(data, limit)
    parts: list[bytes] = []
    position, left = len(_XERIAL_HEADER), limit
    while position < len(data):
        if data[position : position + 8] == _XERIAL_MAGIC:  # streams may be joined end to end
            position += len(_XERIAL_HEADER)
            continue
        (length,) = struct.unpack_from(">i", data, position)
        position += 4
        if not 0 < length <= len(data) - position:
            raise MalformedError(f"snappy block of {length} bytes where {len(data) - position} are left")
        part = _snappy_block(data[position : position + length], left)
        left -= len(part)
        parts.append(part)
        position += length
    return b"".join(parts)


def _snappy_block(block: memoryview, limit: int) -> bytes:
    if (claimed := cramjam.snappy.decompress_raw_len(block)) > limit:
        raise MalformedError(f"snappy data claims {claimed} bytes, {limit} are allowed")
    return bytes(cramjam.snappy.decompress_raw(block))


# One frame of independent blocks of at most 64 KiB. Kafka's Java reader refuses linked blocks, which is what
# most LZ4 libraries write by default, so the frame is laid out here. The last header byte is the header's
# checksum, constant because the flags are.
_LZ4_HEADER = bytes.fromhex("04224d18" + "6040" + "82")
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 0x80000000
_LZ4_END = bytes(4)
_LZ4_DEFAULT_LEVEL = 9  # in Kafka the default level means the fast compressor


def _compress_lz4_frame(data: memoryview, level: int | None) -> bytes:
    fast = level is None or level == _LZ4_DEFAULT_LEVEL
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK):
        plain = data[start : start + _LZ4_BLOCK]
        packed = bytes(
            cramjam.lz4.compress_block(plain, store_size=False)
            if fast
            else cramjam.lz4.compress_block(
                plain, mode="high_compression", compression=level, store_size=False
            )
        )
        if len(packed) < len(plain):
            parts += (struct.pack("<I", len(packed)), packed)
        else:
            parts += (struct.pack("<I", len(plain) | _LZ4_STORED), bytes(plain))
    parts.append(_LZ4_END)
    return b"".join(parts)
