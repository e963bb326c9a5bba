from __future__ import annotations

import contextlib

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import (
    HEADER_SIZE,
    BatchHeader,
    TimestampType,
    advance_sequence,
    assign,
    build_batch,
    iter_headers,
    read_header,
    recompress,
    stamp_log_append_time,
    verify_crc,
)
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.plain_batch import build_plain_batch
from pykafka_broker.protocol.records.record import Record, iter_records
from tests.protocol.records.samples import records

HELLO = [Record(b"k", b"hello", 1000), Record(None, b"world", 900), Record(b"k2", None, 1100)]


def with_offsets(items, base_offset):
    return [record._replace(offset=base_offset + index) for index, record in enumerate(items)]


@given(items=records, codec=st.sampled_from(Codec), base=st.integers(0, 1 << 50))
def test_records_come_back_from_a_batch(items, codec, base):
    batch = build_batch(items, base_offset=base, codec=codec)
    assert list(iter_records(batch)) == with_offsets(items, base)
    header = read_header(batch)
    assert verify_crc(batch, 0, header)
    assert (header.size, header.record_count, header.codec) == (len(batch), len(items), codec)
    assert header.last_offset == base + len(items) - 1
    assert header.max_timestamp == max(record.timestamp for record in items)


@given(
    pairs=st.lists(st.tuples(st.binary(), st.none() | st.binary(max_size=200)), min_size=1),
    timestamp=st.integers(0, 1 << 50),
)
def test_a_plain_batch_is_the_same_batch(pairs, timestamp):
    built = build_batch(Record(key, value, timestamp) for key, value in pairs)
    assert build_plain_batch(pairs, timestamp) == built


@given(items=records, codec=st.sampled_from(Codec))
def test_kafka_python_reads_our_batches_as_we_do(items, codec):
    batch = build_batch(items, base_offset=5, codec=codec, producer_id=9, producer_epoch=1, base_sequence=3)
    theirs = DefaultRecordBatch(batch)
    assert theirs.validate_crc()
    assert [
        (r.key, r.value, r.timestamp, tuple(tuple(pair) for pair in r.headers), r.offset) for r in theirs
    ] == list(iter_records(batch))


@given(items=records, codec=st.sampled_from(Codec), transactional=st.booleans())
def test_we_read_what_aiokafka_writes(items, codec, transactional):
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=77,
        producer_epoch=3,
        base_sequence=21,
        batch_size=1 << 20,
    )
    for index, record in enumerate(items):
        builder.append(index, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    header = read_header(batch)
    assert verify_crc(batch, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 21)
    assert header.is_transactional == transactional
    assert list(iter_records(batch)) == with_offsets(items, 0)


@given(items=records, before=st.sampled_from(Codec), after=st.sampled_from(Codec))
def test_recompression_changes_nothing_but_the_packing(items, before, after):
    batch = build_batch(items, base_offset=40, leader_epoch=6, codec=before, producer_id=1)
    again = recompress(batch, read_header(batch), after, None)
    header = read_header(again)
    assert verify_crc(again, 0, header)
    assert header.codec is after
    assert header._replace(crc=0, attributes=0, batch_length=0) == read_header(batch)._replace(
        crc=0, attributes=0, batch_length=0
    )
    assert list(iter_records(again)) == list(iter_records(batch))


def test_offset_and_epoch_are_given_without_touching_the_checksum():
    batch = bytearray(bytes(3) + build_batch(HELLO))
    assign(batch, 3, base_offset=1_000_000, leader_epoch=12)
    header = read_header(batch, 3)
    assert (header.base_offset, header.partition_leader_epoch, header.next_offset) == (
        1_000_000,
        12,
        1_000_003,
    )
    assert verify_crc(batch, 3, header)
    assert [r.offset for r in iter_records(batch[3:])] == [1_000_000, 1_000_001, 1_000_002]


@pytest.mark.parametrize("codec", list(Codec))
def test_log_append_time_becomes_the_time_of_every_record(codec):
    batch = bytearray(build_batch(HELLO, codec=codec))
    stamp_log_append_time(batch, 0, read_header(batch), 5000)
    header = read_header(batch)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert verify_crc(batch, 0, header)
    assert [r.timestamp for r in iter_records(batch)] == [5000] * 3
    assert {r.timestamp for r in DefaultRecordBatch(bytes(batch))} == {5000}


def test_a_cut_batch_at_the_end_is_left_out():
    first, second = build_batch(HELLO), build_batch(HELLO, base_offset=3)
    whole = first + second
    assert [(at, h.base_offset) for at, h in iter_headers(whole)] == [(0, 0), (len(first), 3)]
    for cut in (len(whole) - 1, len(first) + HEADER_SIZE, len(first) + 5):
        assert [h.base_offset for _, h in iter_headers(memoryview(whole)[:cut])] == [0]


def test_nonsense_lengths_end_the_walk():
    batch = bytearray(build_batch(HELLO))
    for length in (-1, 0, 48, -(1 << 31)):
        batch[8:12] = length.to_bytes(4, "big", signed=True)
        with pytest.raises(MalformedError):
            list(iter_headers(batch))
        assert not verify_crc(batch, 0, read_header(batch))


def test_old_formats_are_not_taken_for_batches():
    batch = bytearray(build_batch(HELLO))
    batch[16] = 1
    with pytest.raises(MalformedError, match="magic 1"):
        list(iter_headers(batch))


def test_a_short_header_is_malformed():
    with pytest.raises(MalformedError, match="60 are left"):
        read_header(bytes(60))


@given(items=records, codec=st.sampled_from(Codec), data=st.data())
def test_damage_is_found_by_the_checksum_and_never_crashes_the_reader(items, codec, data):
    batch = bytearray(build_batch(items, codec=codec))
    position = data.draw(st.integers(21, len(batch) - 1))
    batch[position] ^= data.draw(st.integers(1, 255))
    assert not verify_crc(batch, 0, read_header(batch))
    with contextlib.suppress(MalformedError):
        list(iter_records(batch))


@pytest.mark.parametrize("count", [-1, 2, 4, 1 << 30])
def test_a_wrong_record_count_is_malformed(count):
    batch = bytearray(build_batch(HELLO))
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    with pytest.raises(MalformedError):
        list(iter_records(batch))


def test_an_undefined_codec_is_malformed():
    batch = bytearray(build_batch(HELLO))
    batch[22] |= 7
    with pytest.raises(MalformedError, match="codec 7"):
        list(iter_records(batch))


def test_header_names_that_are_no_text_survive():
    name = b"\xff\xfe".decode(errors="surrogateescape")
    record = Record(b"k", b"v", 1, ((name, b"x"),))
    assert next(iter_records(build_batch([record]))).headers == ((name, b"x"),)


def test_gaps_between_offsets_are_kept_and_steps_back_refused():
    batch = build_batch([Record(b"a", b"", 0, (), 10), Record(b"b", b"", 0, (), 17)], base_offset=10)
    assert [r.offset for r in iter_records(batch)] == [10, 17]
    assert read_header(batch).last_offset == 17
    with pytest.raises(ValueError, match="does not come after"):
        build_batch([Record(b"a", b"", 0, (), 10), Record(b"b", b"", 0, (), 10)], base_offset=10)
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])


def test_sequences_wrap_after_the_largest_int32():
    header = BatchHeader(0, 49, 0, 2, 0, 0, 4, 0, 0, 1, 0, (1 << 31) - 3, 5)
    assert header.last_sequence == 1
    assert advance_sequence(1, -4) == (1 << 31) - 3
    assert header._replace(base_sequence=-1).last_sequence == -1
