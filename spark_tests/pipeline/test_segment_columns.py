"""Batches decoded as columns hold what the record reader finds one by one. No Spark needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka_broker.log.txn_index import AbortedTxn, TxnIndex
from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.pipeline.segments.columns import decode
from pykafka_broker.pipeline.segments.files import Partition, Tail, find_partitions
from pykafka_broker.pipeline.segments.splits import plan
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import TimestampType, build_batch, iter_headers
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.control import end_txn_marker
from pykafka_broker.protocol.records.record import NEXT_OFFSET, Record, iter_records

if TYPE_CHECKING:
    from pathlib import Path

some_bytes = st.none() | st.binary(max_size=300)
records = st.builds(
    Record,
    some_bytes,
    some_bytes,
    st.integers(0, 1 << 45),
    st.lists(st.tuples(st.text(max_size=5), some_bytes), max_size=3).map(tuple),
    st.just(NEXT_OFFSET),
)
alike = st.integers(30, 200).map(
    lambda count: [Record(None, b"v" * 100, 1000 + number) for number in range(count)]
)


def rows(chunk: bytes) -> list[tuple[object, ...]]:
    columns = decode(chunk, list(iter_headers(chunk)), headers=True)
    assert columns.headers is not None
    return list(
        zip(
            columns.key.to_pylist(),
            columns.value.to_pylist(),
            columns.timestamp.tolist(),
            [tuple((h["key"], h["value"]) for h in item or ()) for item in columns.headers.to_pylist()],
            columns.offset.tolist(),
            strict=True,
        )
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(records, min_size=1, max_size=40) | alike, st.sampled_from(Codec)),
        min_size=1,
        max_size=4,
    )
)
def test_columns_hold_the_records_of_all_batches(batches: list[tuple[list[Record], Codec]]) -> None:
    chunk, offset = b"", 17
    for content, codec in batches:
        chunk += build_batch(content, base_offset=offset, codec=codec)
        offset += len(content)
    expected = [
        tuple(record)
        for at, header in iter_headers(chunk)
        for record in iter_records(chunk[at : at + header.size])
    ]
    assert rows(chunk) == expected


def many_batches() -> list[bytes]:
    """Small batches of many sizes; records of up to 9 KB, so that lengths take one byte, two and three."""
    built, offset = [], 0
    for number in range(150):
        sizes = [
            9000 if number == 70 and item == 3 else item * number % 211 for item in range(1 + number % 90)
        ]
        content = [Record(None, b"v" * size, 1000 + size) for size in sizes]
        built.append(build_batch(content, base_offset=offset))
        offset += len(content)
    return built


def test_many_small_batches_are_read_side_by_side() -> None:
    built = many_batches()
    expected = [tuple(record) for batch in built for record in iter_records(batch)]
    assert rows(b"".join(built)) == expected


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0xFF])
@pytest.mark.parametrize("number", [0, 70, 89, 149])
def test_damage_in_one_of_many_batches_is_refused(number: int, byte: int) -> None:
    built = many_batches()
    bad = bytearray(built[number])
    bad[61] = byte  # the length of its first record
    built[number] = bytes(bad)
    with pytest.raises(MalformedError):
        rows(b"".join(built))


def test_append_time_is_the_time_of_every_record() -> None:
    batch = build_batch(
        [Record(b"k", b"v", 5), Record(b"k", b"v", 9)], timestamp_type=TimestampType.LOG_APPEND_TIME
    )
    assert [row[2] for row in rows(batch)] == [9, 9]


@pytest.mark.parametrize("at", range(61, 75))
def test_damaged_records_are_refused_and_never_run_away(at: int) -> None:
    good = build_batch([Record(b"key", b"value", 5, (("name", b"x"),))])
    for byte in (0x00, 0x01, 0x7F, 0xFF):
        bad = bytearray(good)
        bad[at] = byte
        try:
            rows(bytes(bad))
        except MalformedError:
            continue


def test_a_log_is_cut_at_indexed_batches_and_ends_at_the_last_whole_one(tmp_path: Path) -> None:
    partition, ends = write_log(tmp_path, batches=20)
    tail = Tail(partition)
    tail.advance()
    assert (tail.end_offset, tail.position) == (20, ends[-1])
    splits = plan(partition, 3, 15, tail.position, 1, committed=True)
    assert len(splits) > 5
    found = [
        offset
        for split in splits
        for columns in split.columns(headers=False)
        for offset in columns.offset.tolist()
    ]
    assert found == list(range(3, 15))


def test_what_is_left_over_at_the_end_is_no_task_of_its_own(tmp_path: Path) -> None:
    partition, ends = write_log(tmp_path, batches=20)
    [split] = plan(partition, 0, 20, ends[-1], ends[-3], committed=True)
    assert (split.begin, split.end) == (0, ends[-1])
    assert len(plan(partition, 0, 20, ends[-1], ends[-1] // 2, committed=True)) == 2


def test_aborted_records_and_markers_are_left_out_and_open_transactions_end_the_stable_log(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    parts = [
        build_batch([Record(None, b"plain")]),
        build_batch(
            [Record(None, b"aborted")], base_offset=1, producer_id=7, producer_epoch=0, transactional=True
        ),
        build_batch(
            [Record(None, b"kept")], base_offset=2, producer_id=8, producer_epoch=0, transactional=True
        ),
        end_txn_marker(
            commit=False, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=1, base_offset=3
        ),
        end_txn_marker(
            commit=True, producer_id=8, producer_epoch=0, coordinator_epoch=0, timestamp=1, base_offset=4
        ),
        build_batch(
            [Record(None, b"open")], base_offset=5, producer_id=7, producer_epoch=0, transactional=True
        ),
    ]
    log = directory / f"{0:020d}.log"
    log.write_bytes(b"".join(parts))
    TxnIndex(log.with_suffix(".txnindex")).append(AbortedTxn(7, 1, 3, 4))
    [partition] = find_partitions([tmp_path], ["t"])
    tail = Tail(partition)
    tail.advance()
    assert (tail.last_stable_offset, tail.end_offset) == (5, 6)
    splits = plan(partition, 0, tail.last_stable_offset, tail.position, 1 << 20, committed=True)
    values = [
        value
        for split in splits
        for found in split.columns(headers=False)
        for value in found.value.to_pylist()
    ]
    assert values == [b"plain", b"kept"]


def test_a_damaged_batch_is_named_by_file_and_byte(tmp_path: Path) -> None:
    partition, ends = write_log(tmp_path, batches=3)
    [segment] = partition.segments()
    data = bytearray(segment.path.read_bytes())
    data[ends[0] + 70] ^= 1
    segment.path.write_bytes(data)
    [split] = plan(partition, 0, 3, ends[-1], 1 << 20, committed=False)
    with pytest.raises(PipelineError, match=rf"0\.log: the batch at byte {ends[0]} fails its checksum"):
        list(split.columns(headers=False))


def write_log(directory: Path, batches: int) -> tuple[Partition, list[int]]:
    """A segment of batches with one record each, every second one indexed, and half a batch at its end."""
    (directory / "t-0").mkdir()
    path = directory / "t-0" / f"{0:020d}.log"
    log, index, ends = b"", b"", []
    for offset in range(batches):
        if offset % 2 and log:
            index += offset.to_bytes(4) + len(log).to_bytes(4)
        log += build_batch([Record(b"key", b"value %d" % offset, 1000)], base_offset=offset)
        ends.append(len(log))
    path.write_bytes(log + build_batch([Record(None, b"cut")], base_offset=batches)[:-3])
    path.with_suffix(".index").write_bytes(index + bytes(64))
    [partition] = find_partitions([directory], ["t"])
    return partition, ends
