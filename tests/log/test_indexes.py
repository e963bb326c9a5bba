"""The three index files of a segment: sparse, in Kafka's bytes, and the same from memory and from the file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.log.index_file import CorruptIndexError
from pykafka_broker.log.log_config import LogConfig
from pykafka_broker.log.offset_index import OffsetIndex
from pykafka_broker.log.segment import Segment
from pykafka_broker.log.time_index import TimeIndex
from pykafka_broker.log.txn_index import AbortedTxn, TxnIndex
from tests.log.samples import NOW, batch

if TYPE_CHECKING:
    from pathlib import Path

ROOM = 1 << 20


# By offset


def test_an_entry_is_a_relative_offset_and_a_position(tmp_path: Path) -> None:
    index = OffsetIndex(tmp_path / "i", 1000, ROOM)
    index.append(1005, 70)
    index.append(1300, 0x01020304)
    assert (tmp_path / "i").read_bytes() == bytes.fromhex("00000005 00000046 0000012c 01020304")
    assert list(index) == [(1005, 70), (1300, 0x01020304)]


@given(
    entries=st.dictionaries(st.integers(1, 500), st.integers(1, 9), max_size=40), probe=st.integers(-5, 600)
)
def test_a_lookup_gives_the_greatest_entry_not_above(
    tmp_path_factory: pytest.TempPathFactory, entries: dict[int, int], probe: int
) -> None:
    path = tmp_path_factory.mktemp("index") / "i"
    written = OffsetIndex(path, 100, ROOM)
    position, pairs = 0, []
    for relative in sorted(entries):
        position += entries[relative]
        pairs.append((100 + relative, position))
        written.append(100 + relative, position)
    expected = max((pair for pair in pairs if pair[0] <= 100 + probe), default=(100, 0))
    assert written.lookup(100 + probe) == expected
    read_again = OffsetIndex(path, 100, ROOM)
    assert read_again.lookup(100 + probe) == expected
    read_again.sanity_check()
    written.truncate_to(100 + probe)
    assert list(written) == [pair for pair in pairs if pair[0] < 100 + probe]
    written.release()


def test_offsets_must_rise_and_fit(tmp_path: Path) -> None:
    index = OffsetIndex(tmp_path / "i", 1000, 17)
    index.append(1005, 1)
    for refused in (1005, 1004, 999, 1000 + 2**31):
        with pytest.raises(ValueError, match="offset"):
            index.append(refused, 2)
    index.append(1000 + 2**31 - 1, 2)
    assert index.is_full
    with pytest.raises(ValueError, match="full"):
        index.append(1000 + 2**31, 3)


@pytest.mark.parametrize(
    "content", ["00", "00000005 00000046 00000005 00000050", "00000005 00000046" + "00" * 16]
)
def test_an_index_that_cannot_be_one_is_noticed(tmp_path: Path, content: str) -> None:
    (tmp_path / "i").write_bytes(bytes.fromhex(content))
    with pytest.raises(CorruptIndexError):
        OffsetIndex(tmp_path / "i", 0, ROOM).sanity_check()


def test_an_index_holds_no_descriptor_until_it_is_written_to(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    index = OffsetIndex(tmp_path / "i", 0, ROOM)
    index.append(5, 1)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    index.release()
    assert index.lookup(7) == (5, 1)
    assert index.lookup(3) == (0, 0)
    assert len(os.listdir("/proc/self/fd")) == before


# By time


def test_only_later_times_are_entered(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "t", 1000, ROOM)
    for timestamp, offset in ((50, 1001), (50, 1002), (40, 1003), (60, 1004), (-1, 1004)):
        index.maybe_append(timestamp, offset)
    assert list(index) == [(50, 1001), (60, 1004)]
    assert (tmp_path / "t").read_bytes() == bytes.fromhex(
        "0000000000000032 00000001 000000000000003c 00000004"
    )
    assert [index.lookup(at) for at in (49, 50, 59, 60)] == [(-1, 1000), (50, 1001), (50, 1001), (60, 1004)]
    index.truncate_to(1004)
    assert index.last_entry == (50, 1001)
    index.release()


def test_the_last_slot_is_kept_for_the_end(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "t", 0, 24)
    index.maybe_append(50, 1)
    assert index.is_full
    with pytest.raises(ValueError, match="full"):
        index.maybe_append(60, 2)
    index.maybe_append(60, 2, force=True)
    assert index.entries == 2
    index.release()


# By transaction


def test_the_file_appears_with_the_first_aborted_transaction(tmp_path: Path) -> None:
    index = TxnIndex(tmp_path / "x")
    assert index.aborted(0, 100) == ([], False)
    assert not (tmp_path / "x").exists()
    index.append(AbortedTxn(9, 5, 20, 6))
    assert (tmp_path / "x").read_bytes() == bytes.fromhex(
        "0000 0000000000000009 0000000000000005 0000000000000014 0000000000000006"
    )
    assert TxnIndex(tmp_path / "x").all() == [AbortedTxn(9, 5, 20, 6)]
    with pytest.raises(ValueError, match="not above"):
        TxnIndex(tmp_path / "x").append(AbortedTxn(8, 6, 20, 30))


def test_transactions_are_found_by_the_offsets_they_span(tmp_path: Path) -> None:
    index = TxnIndex(tmp_path / "x")
    first, second = AbortedTxn(1, 0, 10, 5), AbortedTxn(2, 5, 20, 21)
    index.append(first)
    index.append(second)
    assert index.aborted(0, 5) == ([first], True)
    assert index.aborted(0, 6) == ([first, second], True)
    assert index.aborted(11, 30) == ([second], False)
    assert index.aborted(21, 30) == ([], False)
    index.truncate_to(20)
    assert index.all() == [first]
    index.reset()
    assert index.all() == []


@pytest.mark.parametrize("damage", ["torn", "version", "order", "base"])
def test_a_transaction_index_that_cannot_be_one_is_noticed(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x"
    index = TxnIndex(path)
    index.append(AbortedTxn(1, 0, 10, 5))
    index.append(AbortedTxn(2, 5, 20, 21))
    index.sanity_check(0)
    data = path.read_bytes()
    path.write_bytes(
        {"torn": data[:-1], "version": data[:34] + b"\x01" + data[35:], "order": data + data, "base": data}[
            damage
        ]
    )
    with pytest.raises(CorruptIndexError):
        TxnIndex(path).sanity_check(11 if damage == "base" else 0)


# In a segment


def test_a_segment_is_indexed_every_few_bytes(tmp_path: Path) -> None:
    segment = Segment.create(tmp_path, 50, LogConfig(index_interval_bytes=200), NOW)
    made = batch(size=40)
    for number in range(10):
        segment.append(made, 50 + number, NOW + number, 50 + number)
    step = 200 // len(made) + 1
    assert list(segment.offset_index) == [(50 + n, n * len(made)) for n in range(step, 10, step)]
    assert list(segment.time_index) == [(NOW + n, 50 + n) for n in range(step, 10, step)]
    segment.finish()
    segment.finish()
    assert segment.time_index.last_entry == (NOW + 9, 59)
    assert segment.next_offset == 60


def test_a_segment_reaches_no_further_than_a_relative_offset(tmp_path: Path) -> None:
    from tests.log.samples import open_log, segment_bases

    log = open_log(tmp_path)
    far = bytearray(batch())
    far[:8] = (2**31 + 5).to_bytes(8, "big")
    log.append_as_follower(batch())
    log.append_as_follower(far)
    assert segment_bases(log) == [0, 2**31 + 5]
    assert log.log_end_offset == 2**31 + 6
