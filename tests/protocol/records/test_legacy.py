"""Formats 0 and 1 held against kafka-python, which has its own builder and reader of them."""

from __future__ import annotations

import struct

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import TimestampType
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.legacy import (
    Message,
    build_messages,
    is_intact,
    read_message,
    split_messages,
    unwrap,
)
from pykafka_broker.protocol.records.legacy_compression import compress_messages, decompress_messages
from pykafka_broker.protocol.records.record import Record
from tests.protocol.records.samples import optional_bytes, timestamps

CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
OLD_LZ4_CHECKSUM = 0x1A
"""What Kafka's Java clients write behind the flags that we write too (compat_tests/test_old_clients.py shows it)."""

magics = st.sampled_from([0, 1])
codecs = st.sampled_from(CODECS)
formats = st.tuples(magics, codecs).filter(lambda pair: pair != (0, Codec.LZ4))
"""All that kafka-python can read and write; for LZ4 of format 0 it needs one library more."""


@st.composite
def records_in_order(draw: st.DrawFn) -> list[Record]:
    """Records of a log: offsets rise, not always by one."""
    steps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=15))
    offset, found = draw(st.integers(0, 1 << 40)), []
    for step in steps:
        found.append(Record(draw(optional_bytes), draw(optional_bytes), draw(timestamps), (), offset))
        offset += step
    return found


def read_by_us(data: bytes) -> list[Message]:
    found = []
    for part in split_messages(data):
        assert is_intact(part)
        message = read_message(part)
        inner = [read_message(piece) for piece in unwrap(message)] if message.codec_number else [message]
        base = message.offset - inner[-1].offset if message.magic > 0 else 0
        found += [one._replace(offset=base + one.offset) for one in inner]
    return found


def read_by_kafka_python(data: bytes) -> list[tuple[int, int | None, bytes | None, bytes | None]]:
    batches, found = MemoryRecords(data), []
    while (batch := batches.next_batch()) is not None:
        assert batch.validate_crc()
        found += [(record.offset, record.timestamp, record.key, record.value) for record in batch]
    return found


@given(records=records_in_order(), form=formats)
def test_kafka_python_reads_the_messages_we_build(records, form):
    magic, codec = form
    read = read_by_kafka_python(build_messages(records, magic, codec=codec))
    assert read == [(r.offset, r.timestamp if magic else None, r.key, r.value) for r in records]


@given(records=records_in_order(), form=formats)
def test_we_read_the_messages_kafka_python_builds(records, form):
    magic, codec = form
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 30)
    for number, record in enumerate(records):
        builder.append(number, record.timestamp, record.key, record.value)
    read = read_by_us(bytes(builder.build()))
    assert [(m.timestamp, m.key, m.value) for m in read] == [
        (r.timestamp if magic else -1, r.key, r.value) for r in records
    ]


@given(records=records_in_order(), magic=magics, codec=codecs)
def test_what_was_built_is_read_again(records, magic, codec):
    read = read_by_us(build_messages(records, magic, codec=codec))
    assert [(m.offset, m.key, m.value) for m in read] == [(r.offset, r.key, r.value) for r in records]
    assert {m.magic for m in read} == {magic}


@pytest.mark.parametrize("codec", CODECS)
def test_the_time_of_the_log_is_marked_in_every_message_of_format_1(codec):
    records = [Record(None, b"a", 7, (), 0), Record(None, b"b", 7, (), 1)]
    data = build_messages(records, 1, codec=codec, timestamp_type=TimestampType.LOG_APPEND_TIME)
    batches = MemoryRecords(data)
    while (batch := batches.next_batch()) is not None:
        assert [(record.timestamp, record.timestamp_type) for record in batch] == [(7, 1)] * len(list(batch))
    assert all(m.timestamp_type is TimestampType.LOG_APPEND_TIME for m in read_by_us(data))


@given(data=st.binary(max_size=2000))
def test_lz4_of_format_0_has_the_old_wrong_checksum(data):
    packed = compress_messages(Codec.LZ4, data, 0)
    assert packed[6] == OLD_LZ4_CHECKSUM
    with pytest.raises(RuntimeError):
        lz4.frame.decompress(packed)
    assert bytes(decompress_messages(Codec.LZ4, packed, 0)) == data


@given(data=st.binary(min_size=1, max_size=2000), sized=st.booleans(), linked=st.booleans())
def test_lz4_of_format_0_is_read_whatever_its_checksum_and_flags(data, sized, linked):
    packed = bytearray(lz4.frame.compress(data, store_size=sized, block_linked=linked))
    assert bytes(decompress_messages(Codec.LZ4, packed, 0)) == data
    packed[14 if sized else 6] ^= 0x55
    assert bytes(decompress_messages(Codec.LZ4, packed, 0)) == data


def test_a_message_cut_at_the_end_is_left_out():
    data = build_messages([Record(b"k", b"v", 1, (), n) for n in range(3)], 1)
    assert len(list(split_messages(data[:-1]))) == 2
    assert len(list(split_messages(data[:10]))) == 0


@pytest.mark.parametrize(
    ("at", "form", "value"), [(8, ">i", 13), (8, ">i", -1), (16, ">b", 3), (16, ">b", -1)]
)
def test_bytes_that_cannot_be_a_message_are_refused(at, form, value):
    data = bytearray(build_messages([Record(b"k", b"v", 1, (), 0)], 1))
    struct.pack_into(form, data, at, value)
    with pytest.raises(MalformedError):
        list(split_messages(data))


@given(
    records=records_in_order(), magic=magics, codec=codecs, at=st.integers(0, 400), byte=st.integers(0, 255)
)
def test_damage_is_seen_and_never_breaks_the_reader(records, magic, codec, at, byte):
    data = bytearray(build_messages(records, magic, codec=codec))
    data[at % len(data)] = byte
    try:
        for part in split_messages(data):
            message = read_message(part)
            if message.codec_number:
                list(unwrap(message))
    except MalformedError:
        pass
