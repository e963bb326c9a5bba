from __future__ import annotations

import contextlib
import gzip
import struct

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.compression import Codec, compress, decompress

PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
repetitive = st.builds(lambda piece, times: piece * times, st.binary(max_size=50), st.integers(0, 5000))


@pytest.mark.parametrize("codec", list(Codec))
@given(data=st.binary(max_size=3000) | repetitive)
def test_what_was_compressed_comes_back(codec, data):
    assert bytes(decompress(codec, memoryview(compress(codec, data)))) == data


@given(data=st.binary(max_size=3000) | repetitive)
def test_other_libraries_read_what_we_write(data):
    assert gzip.decompress(compress(Codec.GZIP, data)) == data
    assert lz4.frame.decompress(compress(Codec.LZ4, data)) == data
    assert zstandard.ZstdDecompressor().decompressobj().decompress(compress(Codec.ZSTD, data)) == data
    assert unframe_xerial(compress(Codec.SNAPPY, data)) == data


def unframe_xerial(data: bytes) -> bytes:
    assert data[:8] == b"\x82SNAPPY\x00"
    assert struct.unpack_from(">ii", data, 8) == (1, 1)
    plain, position = b"", 16
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position)
        plain += snappy.uncompress(data[position + 4 : position + 4 + length])
        position += 4 + length
    return plain


@given(data=st.binary(max_size=3000) | repetitive)
def test_we_read_what_other_libraries_write(data):
    streamed = zstandard.ZstdCompressor().compressobj()
    assert bytes(decompress(Codec.ZSTD, streamed.compress(data) + streamed.flush())) == data
    assert bytes(decompress(Codec.LZ4, lz4.frame.compress(data))) == data
    assert bytes(decompress(Codec.GZIP, gzip.compress(data[:7]) + gzip.compress(data[7:]))) == data


def test_raw_snappy_and_joined_snappy_streams_are_read():
    assert decompress(Codec.SNAPPY, snappy.compress(b"hello" * 100)) == b"hello" * 100
    joined = compress(Codec.SNAPPY, b"hello ") + compress(Codec.SNAPPY, b"world")
    assert decompress(Codec.SNAPPY, joined) == b"hello world"


def test_lz4_blocks_are_independent_because_java_refuses_linked_ones():
    frame = compress(Codec.LZ4, b"x" * 300_000)
    assert frame[:7].hex() == "04224d18604082"
    assert lz4.frame.get_frame_info(frame)["block_linked"] is False


@pytest.mark.parametrize("level", [1, 9, 12])
def test_lz4_takes_every_level(level):
    assert bytes(decompress(Codec.LZ4, compress(Codec.LZ4, b"abc" * 1000, level))) == b"abc" * 1000


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_is_refused_before_it_fills_memory(codec):
    bomb = compress(codec, bytes(1_000_000))
    with pytest.raises(MalformedError):
        decompress(codec, bomb, limit=999_999)
    assert len(decompress(codec, bomb, limit=1_000_000)) == 1_000_000


@pytest.mark.parametrize("codec", PACKED)
@given(garbage=st.binary(min_size=1, max_size=100))
def test_garbage_is_malformed_and_nothing_else(codec, garbage):
    with contextlib.suppress(MalformedError):
        decompress(codec, garbage)


@pytest.mark.parametrize("codec", PACKED)
def test_cut_data_is_malformed(codec):
    packed = compress(codec, bytes(range(256)) * 300)
    with pytest.raises(MalformedError):
        decompress(codec, packed[:-20])
