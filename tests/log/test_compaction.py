"""Compaction: which segments, which records, what becomes of batches, deletions, producers and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykafka_broker.clock import ManualClock
from pykafka_broker.log.cleaner import CleanerSettings
from pykafka_broker.log.log_config import TimestampType
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import DELETE_HORIZON_BIT, read_header, verify_crc
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.record import iter_records
from tests.log.cleaning import RETENTION, clean, compacted, contents, keyed, records
from tests.log.samples import (
    NOW,
    append,
    append_marker,
    marker,
    producer_states,
    read_all,
    segment_bases,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pykafka_broker.log.partition_log import PartitionLog


def headers(log: PartitionLog) -> list[tuple[int, int, int]]:
    """First offset, last offset and record count of each batch."""
    found = [read_header(batch) for batch in read_all(log)]
    return [(header.base_offset, header.last_offset, header.record_count) for header in found]


# Records


def test_the_last_value_of_each_key_stays_at_its_offset(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1"), ("b", "1")), keyed(("a", "2")), keyed(("c", "1")))
    log.roll()
    append(log, keyed(("c", "2")))
    assert clean(log, ManualClock()) == 4
    assert contents(log) == [(1, "b", "1"), (2, "a", "2"), (3, "c", "1"), (4, "c", "2")]
    assert log.log_end_offset == 5


def test_a_batch_that_loses_records_keeps_its_first_and_last_offset(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1"), ("b", "1"), ("a", "2"), ("b", "2"), ("a", "3")), keyed(("z", "1")))
    log.roll()
    clean(log, ManualClock())
    assert headers(log)[0] == (0, 4, 2)
    assert [record.timestamp - NOW for record in records(log)] == [3, 4, 0]


@pytest.mark.parametrize("codec", Codec)
def test_a_rewritten_batch_keeps_its_compression(tmp_path: Path, codec: Codec) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1" * 99), ("b", "2" * 99), ("a", "3" * 99), codec=codec, leader_epoch=0))
    log.roll()
    clean(log, ManualClock())
    (batch,) = read_all(log)
    header = read_header(batch)
    assert (header.codec, header.record_count) == (codec, 2)
    assert verify_crc(batch, 0, header)
    assert contents(log) == [(1, "b", "2" * 99), (2, "a", "3" * 99)]


def test_a_batch_that_keeps_all_records_is_not_touched(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1"), ("b", "2"), codec=Codec.GZIP))
    before = read_all(log)
    log.roll()
    clean(log, ManualClock())
    assert read_all(log) == before


def test_log_append_time_survives(tmp_path: Path) -> None:
    clock = ManualClock()
    log = compacted(tmp_path, clock, timestamp_type=TimestampType.LOG_APPEND_TIME)
    append(log, keyed(("a", "1"), ("b", "1"), ("a", None), timestamp=NOW - 5000))
    log.roll()
    clean(log, clock)
    assert [record.timestamp for record in records(log)] == [NOW, NOW]


def test_records_of_the_same_long_key_are_one_key(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    long, longer = "k" * 16, "k" * 5000
    append(log, keyed((long, "1"), (longer, "1"), (long, "2"), (longer, "2")))
    log.roll()
    clean(log, ManualClock())
    assert contents(log) == [(2, long, "2"), (3, longer, "2")]


def test_what_was_cleaned_before_gives_way_to_what_came_later(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1"), ("b", "1")))
    log.roll()
    clean(log, ManualClock())
    append(log, keyed(("a", "2")))
    log.roll()
    clean(log, ManualClock())
    assert contents(log) == [(1, "b", "1"), (2, "a", "2")]


# Segments


def test_the_active_segment_is_left_alone(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1")), keyed(("a", "2")))
    assert log.survey(2).cleanable_bytes == 0
    assert clean(log, ManualClock()) == 0
    assert len(contents(log)) == 2


def test_small_segments_become_one(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    for number in range(10):
        append(log, keyed(("a", str(number)), ("b", str(number))))
        log.roll()
    size = log.size
    clean(log, ManualClock())
    assert segment_bases(log) == [0, 20]
    assert contents(log) == [(18, "a", "9"), (19, "b", "9")]
    assert log.size == sum(path.stat().st_size for path in log.directory.glob("*.log")) < size


def test_segments_are_joined_only_up_to_the_segment_size(tmp_path: Path) -> None:
    size = len(keyed(("00", "v")))
    log = compacted(tmp_path, segment_bytes=3 * size)
    for number in range(10):
        append(log, keyed((f"{number:02}", "v")))
        log.roll()
    clean(log, ManualClock())
    assert segment_bases(log) == [0, 3, 6, 9, 10]


def test_segments_are_joined_only_up_to_the_index_size(tmp_path: Path) -> None:
    log = compacted(tmp_path, segment_index_bytes=36)
    for number in range(6):
        append(log, keyed((f"{number}a", "v" * 99)), keyed((f"{number}b", "v" * 99)))
        log.roll()
    clean(log, ManualClock())
    assert len(segment_bases(log)) > 2
    assert max(path.stat().st_size for path in log.directory.glob("*.timeindex")) <= 36


def test_nothing_above_the_last_stable_offset_is_cleaned(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1")))
    log.roll()
    append(log, keyed(("a", "2"), producer_id=9, producer_epoch=0, base_sequence=0, transactional=True))
    log.roll()
    append(log, keyed(("a", "3")))
    log.roll()
    assert log.survey(log.log_end_offset).upto == 1
    assert log.survey(0).upto == 0  # nor above the high watermark


def test_a_segment_younger_than_the_lag_waits_with_all_behind_it(tmp_path: Path) -> None:
    clock = ManualClock()
    log = compacted(tmp_path, clock, min_compaction_lag_ms=60_000)
    for ago in (70_000, 50_000, 90_000):
        append(log, keyed(("a", "1"), timestamp=NOW - ago))
        log.roll()
    assert log.survey(3).upto == 1
    clock.advance(60_000)
    assert log.survey(3).upto == 3


def test_a_log_is_due_when_enough_of_it_is_dirty(tmp_path: Path) -> None:
    log = compacted(tmp_path, min_cleanable_dirty_ratio=0.5)
    append(log, keyed(("a", "1")))
    log.roll()
    assert log.survey(1).is_due(log.config)
    clean(log, ManualClock())
    assert not log.survey(1).is_due(log.config)
    append(log, keyed(("b", "1")))
    log.roll()
    assert log.survey(2).ratio == 0.5
    assert not log.survey(2).is_due(log.config)
    append(log, keyed(("c", "1")))
    log.roll()
    assert log.survey(3).is_due(log.config)


def test_a_log_is_due_when_something_was_dirty_for_too_long(tmp_path: Path) -> None:
    clock = ManualClock()
    log = compacted(tmp_path, clock, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000)
    append(log, keyed(("a", "1")))
    log.roll()
    assert not log.survey(1).is_due(log.config)
    clock.advance(1001)
    assert log.survey(1).is_due(log.config)
    clean(log, clock)
    assert not log.survey(1).is_due(log.config)


def test_a_small_map_cleans_in_several_rounds(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    for number in range(300):
        append(log, keyed((f"key-{number % 100}", str(number))))
    log.roll()
    few = CleanerSettings(map_bytes=2000 * 10, map_load_factor=1.0)
    ends = [clean(log, ManualClock(), few)]
    while ends[-1] < 300:
        assert {f"key-{n % 100}": str(n) for n in range(300)} == {k: v for _, k, v in contents(log)}
        ends.append(clean(log, ManualClock(), few))
    assert len(ends) > 2
    assert ends == sorted(set(ends))
    assert contents(log) == [(n, f"key-{n - 200}", str(n)) for n in range(200, 300)]


def test_one_batch_of_more_keys_than_fit_is_cleaned_all_the_same(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(*((f"key-{number % 500}", str(number)) for number in range(1000))))
    log.roll()
    assert clean(log, ManualClock(), CleanerSettings(map_bytes=1)) == 1000
    assert [offset for offset, _, _ in contents(log)] == list(range(500, 1000))


def test_a_damaged_batch_is_not_made_good_by_a_new_checksum(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1"), ("a", "2")))
    log.roll()
    path = log.directory / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(MalformedError):
        clean(log, ManualClock())
    assert not list(log.directory.glob("*.cleaned"))
    assert path.read_bytes() == data


def test_a_log_that_was_cut_does_not_take_what_was_cleaned_before(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1")), keyed(("a", "2")))
    log.roll()
    segments, ticket = log.segments_to_clean()
    log.truncate_to(1)
    append(log, keyed(("b", "1")))
    log.roll()
    assert not log.swap_in(segments[0], segments[:1], ticket)
    assert contents(log) == [(0, "a", "1"), (1, "b", "1")]


def test_a_cut_log_is_dirty_from_where_it_was_cut(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1")), keyed(("b", "2")))
    log.roll()
    clean(log, ManualClock())
    log.truncate_to(1)
    append(log, keyed(("a", "3")))
    log.roll()
    clean(log, ManualClock())
    assert contents(log) == [(1, "a", "3")]


# Finding things afterwards


def test_a_cleaned_log_is_read_from_any_offset_and_time(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    for number in range(200):
        append(log, keyed((f"{number % 7}", "v" * 40), timestamp=NOW + number))
        if number % 20 == 19:
            log.roll()
    clean(log, ManualClock())
    left = records(log)
    assert [record.offset for record in left] == list(range(193, 200))
    for offset in range(200):
        first = read_header(log.read(offset, 1, 200, True).read())
        assert first.base_offset == max(offset, 193)
    found = log.offset_for_timestamp(NOW + 5)
    assert found is not None
    assert found.offset == 193


def test_a_slice_of_a_replaced_segment_stays_readable(tmp_path: Path) -> None:
    clock = ManualClock()
    log = compacted(tmp_path, clock, file_delete_delay_ms=0)
    append(log, keyed(("a", "1")), keyed(("a", "2")))
    log.roll()
    held = log.read(0, 10_000, 2, True)
    clean(log, clock)
    assert log.purge(clock.wall_ms()) > 0
    assert not list(log.directory.glob("*.deleted"))
    assert [record.value for record in iter_records(held.read()[: held.size // 2])] == [b"1"]
    assert contents(log) == [(1, "a", "2")]


# Deletions


def test_a_deletion_removes_the_key_and_later_itself(tmp_path: Path) -> None:
    clock = ManualClock()
    log = compacted(tmp_path, clock)
    append(log, keyed(("a", "1"), ("b", "1")), keyed(("a", None), ("c", "1")))
    log.roll()
    append(log, keyed(("z", "1")))
    log.roll()
    clean(log, clock)
    assert contents(log) == [(1, "b", "1"), (2, "a", None), (3, "c", "1"), (4, "z", "1")]
    batch = read_header(read_all(log)[1])
    assert batch.attributes & DELETE_HORIZON_BIT
    assert batch.base_timestamp == NOW + RETENTION
    assert [record.timestamp - NOW for record in records(log)] == [1, 0, 1, 0]

    clock.advance(RETENTION - 1)
    clean(log, clock)
    assert (2, "a", None) in contents(log)
    clock.advance(1)
    clean(log, clock)
    assert contents(log) == [(1, "b", "1"), (3, "c", "1"), (4, "z", "1")]


def test_the_time_of_a_deletion_counts_from_the_first_cleaning_and_not_again(tmp_path: Path) -> None:
    clock = ManualClock()
    log = compacted(tmp_path, clock)
    append(log, keyed(("a", None), ("b", "1")), keyed(("z", "1")))
    log.roll()
    clock.advance(50_000)
    clean(log, clock)
    clock.advance(5_000)
    append(log, keyed(("b", "2")))
    log.roll()
    clean(log, clock)
    assert read_header(read_all(log)[0]).base_timestamp == NOW + 50_000 + RETENTION
    assert (0, "a", None) in contents(log)


# Producers


def test_a_producer_goes_on_after_all_its_records_were_cleaned_away(tmp_path: Path) -> None:
    clock = ManualClock()
    log = compacted(tmp_path, clock)
    producer = {"producer_id": 7, "producer_epoch": 3}
    append(log, keyed(("a", "1"), ("a", "2"), **producer, base_sequence=0))
    append(log, keyed(("a", "3"), ("a", "4"), **producer, base_sequence=2))
    append(log, keyed(("a", "5")))
    log.roll()
    clean(log, clock)
    assert contents(log) == [(4, "a", "5")]
    assert headers(log) == [(2, 3, 0), (4, 4, 1)]
    before = producer_states(log)
    log.close(clean=False)
    for snapshot in log.directory.glob("*.snapshot"):
        snapshot.unlink()

    log = compacted(tmp_path, clock)
    assert producer_states(log) == before
    again = log.append_as_leader(keyed(("a", "3"), ("a", "4"), **producer, base_sequence=2), 0)
    assert (again.duplicate, again.first_offset) == (True, 2)
    assert append(log, keyed(("a", "6"), **producer, base_sequence=4)) == [5]


def test_an_emptied_batch_goes_when_its_producer_has_written_another(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    producer = {"producer_id": 7, "producer_epoch": 3}
    append(log, keyed(("a", "1"), **producer, base_sequence=0), keyed(("a", "2")), keyed(("b", "2")))
    log.roll()
    clean(log, ManualClock())
    assert headers(log)[0] == (0, 0, 0)
    append(log, keyed(("c", "1"), **producer, base_sequence=1))
    log.roll()
    clean(log, ManualClock())
    assert headers(log)[0] == (1, 1, 1)


# Transactions


def transactional(*pairs: tuple[str, str | None], sequence: int = 0, producer_id: int = 5) -> bytes:
    return keyed(
        *pairs, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True
    )


def test_aborted_records_go_and_do_not_hide_older_ones(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1")), transactional(("a", "2")))
    append_marker(log, marker(5, commit=False))
    append(log, keyed(("z", "1")))
    log.roll()
    clean(log, ManualClock())
    assert contents(log) == [(0, "a", "1"), (3, "z", "1")]
    assert headers(log) == [(0, 0, 1), (1, 1, 0), (2, 2, 1), (3, 3, 1)]
    assert log.aborted_transactions(0, 4) == [(5, 1)]


def test_a_marker_goes_after_its_records_and_its_time(tmp_path: Path) -> None:
    clock = ManualClock()
    log = compacted(tmp_path, clock)
    append(log, transactional(("a", "1")))
    append_marker(log, marker(5, commit=True))
    append(log, transactional(("b", "1"), sequence=1))
    append_marker(log, marker(5, commit=False))
    append(log, transactional(("a", "2"), sequence=2))
    append_marker(log, marker(5, commit=True))
    append(log, keyed(("z", "1")))
    log.roll()
    clean(log, clock)
    assert [offset for offset, _, _ in headers(log)] == [1, 3, 4, 5, 6]  # the data of both went now
    assert log.aborted_transactions(0, 7) == [(5, 2)]
    clean(log, clock)
    assert log.aborted_transactions(0, 7) == []
    marked = [read_header(batch).attributes & DELETE_HORIZON_BIT > 0 for batch in read_all(log)]
    assert marked == [True, True, False, False, False]
    clock.advance(RETENTION)
    clean(log, clock)
    assert [offset for offset, _, _ in headers(log)] == [4, 5, 6]
    assert contents(log) == [(4, "a", "2"), (6, "z", "1")]


def test_an_aborted_transaction_over_several_segments_is_known_in_each(tmp_path: Path) -> None:
    log = compacted(tmp_path, segment_bytes=150)
    append(log, transactional(("a", "1")), transactional(("b", "1"), sequence=1))
    append(log, transactional(("c", "1"), sequence=2))
    append_marker(log, marker(5, commit=False))
    append(log, keyed(("z", "1")))
    log.roll()
    assert len(segment_bases(log)) > 2
    clean(log, ManualClock())
    assert contents(log) == [(4, "z", "1")]
    assert log.aborted_transactions(0, 5) == [(5, 0)]


def test_a_fenced_producers_epoch_outlives_its_data(tmp_path: Path) -> None:
    clock = ManualClock()
    log = compacted(tmp_path, clock)
    append(log, transactional(("a", "1")))
    append_marker(log, marker(5, commit=False, epoch=4))
    append(log, keyed(("z", "1")))
    log.roll()
    for _ in range(3):
        clock.advance(RETENTION)
        clean(log, clock)
    assert headers(log) == [(1, 1, 0), (2, 2, 1)]
