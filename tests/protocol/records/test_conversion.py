"""Old messages become batches and batches old messages, with Kafka's errors where they cannot."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import TimestampType, build_batch, read_header
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.conversion import downgrade, upgrade
from pykafka_broker.protocol.records.legacy import build_messages
from pykafka_broker.protocol.records.record import Record, iter_records
from tests.protocol.records import samples
from tests.protocol.records.test_legacy import codecs, formats, magics, read_by_kafka_python, records_in_order

NO_LIMIT = 1 << 30


def sealed(data: bytes | bytearray) -> bytearray:
    """The one message in `data` with its size and checksum made right again."""
    data = bytearray(data)
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
    return data


def messages(*values: bytes, magic: int = 1, codec: Codec = Codec.NONE) -> bytearray:
    return bytearray(
        build_messages([Record(None, v, 5, (), n) for n, v in enumerate(values)], magic, codec=codec)
    )


def refusal(data: bytes | bytearray, limit: int = NO_LIMIT) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        upgrade(data, limit)
    return refused.value.code


@given(records=samples.records, form=formats)
def test_what_kafka_python_sends_becomes_one_batch(records, form):
    magic, codec = form
    builder = LegacyRecordBatchBuilder(magic, codec, NO_LIMIT)
    for number, record in enumerate(records):
        builder.append(number, record.timestamp, record.key, record.value)
    batch = upgrade(bytes(builder.build()), NO_LIMIT)
    header = read_header(batch)
    assert (header.size, header.codec, header.record_count) == (len(batch), codec, len(records))
    assert list(iter_records(batch)) == [
        Record(r.key, r.value, r.timestamp if magic else -1, (), n) for n, r in enumerate(records)
    ]


@given(records=records_in_order(), magic=magics, codec=codecs)
def test_what_goes_down_comes_up_the_same(records, magic, codec):
    batch = build_batch(records, base_offset=records[0].offset, codec=codec)
    again = list(iter_records(upgrade(downgrade(batch, magic, 0, NO_LIMIT), NO_LIMIT)))
    assert [(r.key, r.value) for r in again] == [(r.key, r.value) for r in records]


@given(
    batches=st.lists(st.tuples(samples.records, codecs), min_size=1, max_size=4),
    magic=magics,
    skipped=st.integers(0, 20),
    stamped=st.booleans(),
)
def test_kafka_python_reads_the_log_in_the_old_formats(batches, magic, skipped, stamped):
    assume(magic > 0 or all(codec is not Codec.LZ4 for _, codec in batches))
    kind = TimestampType.LOG_APPEND_TIME if stamped else TimestampType.CREATE_TIME
    log, stored, offset = b"", [], 100
    for records, codec in batches:
        batch = build_batch(records, base_offset=offset, codec=codec, timestamp_type=kind)
        log += batch
        stored += [(record, codec) for record in iter_records(batch)]
        offset += len(records)
    read = read_by_kafka_python(downgrade(log, magic, 100 + skipped, NO_LIMIT))
    assert read == [
        (r.offset, r.timestamp if magic else None, r.key, r.value)
        for r, codec in stored
        if codec is not Codec.NONE or r.offset >= 100 + skipped
    ]


def test_a_codec_of_the_topic_replaces_the_producers():
    batch = upgrade(messages(b"a", b"b", codec=Codec.GZIP), NO_LIMIT, codec=Codec.ZSTD)
    assert read_header(batch).codec is Codec.ZSTD
    assert [record.value for record in iter_records(batch)] == [b"a", b"b"]


def test_a_message_cut_at_the_end_is_forgotten():
    assert len(list(iter_records(upgrade(messages(b"a", b"b")[:-1], NO_LIMIT)))) == 1
    assert upgrade(messages(b"a")[:-1], NO_LIMIT) == b""
    assert upgrade(b"", NO_LIMIT) == b""


def test_a_wrong_checksum_is_corrupt_outside_and_inside_of_a_wrapper():
    damaged = messages(b"a", b"b")
    damaged[-1] ^= 1
    assert refusal(damaged) == ErrorCode.CORRUPT_MESSAGE
    inner = zlib.compressobj(wbits=31)
    packed = inner.compress(damaged) + inner.flush()
    wrapper = messages(packed)
    wrapper[17] = Codec.GZIP
    assert refusal(sealed(wrapper)) == ErrorCode.CORRUPT_MESSAGE


def test_each_message_is_held_against_the_limit():
    assert refusal(messages(b"a", b"b" * 100), 100) == ErrorCode.MESSAGE_TOO_LARGE
    assert upgrade(messages(b"a" * 50, b"b" * 50), 100)


@pytest.mark.parametrize(
    "data",
    [
        messages(b"a", magic=0) + messages(b"b", magic=1),
        messages(b"a") + build_batch([Record(None, b"b")]),
        messages(b"a", codec=Codec.GZIP) + messages(b"b", codec=Codec.GZIP),
        messages(b"a") + messages(b"b", codec=Codec.GZIP),
    ],
    ids=["both old formats", "old and new", "two wrappers", "a message and a wrapper"],
)
def test_sets_that_mix_are_invalid(data):
    assert refusal(data) == ErrorCode.INVALID_RECORD


def test_a_wrapper_of_a_newer_codec_is_invalid():
    wrapper = messages(b"a")
    wrapper[17] = Codec.ZSTD
    assert refusal(sealed(wrapper)) == ErrorCode.INVALID_RECORD


def patched(at: int, form: str, value: int) -> bytearray:
    data = messages(b"abc")
    struct.pack_into(form, data, at, value)
    return sealed(data)


@pytest.mark.parametrize(
    "data",
    [patched(17, ">b", 5), patched(17, ">b", Codec.GZIP), patched(26, ">i", 1000), patched(18, ">q", -7)],
    ids=["unknown codec", "not gzip", "a key of 1000 bytes", "negative time"],
)
def test_what_kafka_does_not_foresee_has_no_better_name_here(data):
    assert refusal(data) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_wrapper_that_says_the_log_set_its_time_sets_it_for_all():
    wrapper = messages(b"a", b"b", codec=Codec.GZIP)
    wrapper[17] |= 0x08
    struct.pack_into(">q", wrapper, 18, 99)
    assert [record.timestamp for record in iter_records(upgrade(sealed(wrapper), NO_LIMIT))] == [99, 99]


@pytest.mark.parametrize("magic", [0, 1])
def test_zstandard_ends_what_an_old_reader_gets(magic):
    plain = build_batch([Record(None, b"a")])
    packed = build_batch([Record(None, b"b")], base_offset=1, codec=Codec.ZSTD)
    assert len(read_by_kafka_python(downgrade(plain + packed, magic, 0, NO_LIMIT))) == 1
    with pytest.raises(KafkaError) as refused:
        downgrade(packed + plain, magic, 1, NO_LIMIT)
    assert refused.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_markers_of_transactions_are_left_out():
    marker = build_batch([Record(b"\0\0\0\1", b"\0" * 6)], base_offset=1, control=True)
    data = build_batch([Record(None, b"a")]) + marker + build_batch([Record(None, b"b")], base_offset=2)
    assert [offset for offset, *_ in read_by_kafka_python(downgrade(data, 1, 0, NO_LIMIT))] == [0, 2]


def test_headers_are_lost_on_the_way_down():
    batch = build_batch([Record(b"k", b"v", 5, (("name", b"x"),))])
    assert read_by_kafka_python(downgrade(batch, 1, 0, NO_LIMIT)) == [(0, 5, b"k", b"v")]


def test_the_limit_cuts_but_the_first_batch_comes_whole():
    first = build_batch([Record(None, b"a" * 50, n) for n in range(3)])
    second = build_batch([Record(None, b"b" * 50, n) for n in range(3)], base_offset=3)
    assert len(read_by_kafka_python(downgrade(first + second, 1, 0, 1))) == 3
    cut = downgrade(first + second, 1, 0, 350)
    assert (len(cut), len(read_by_kafka_python(cut))) == (350, 4)
