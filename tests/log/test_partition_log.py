"""The log of a partition: what it takes, what it refuses, where it rolls, what readers get."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykafka_broker.clock import ManualClock
from pykafka_broker.log.log_config import LogConfig, TimestampType
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import read_header, verify_crc
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.record import iter_records
from tests.log.samples import (
    FAR,
    NOW,
    append,
    append_marker,
    batch,
    batch_of_size,
    marker,
    offsets,
    open_log,
    read,
    read_all,
    segment_bases,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pykafka_broker.log.partition_log import PartitionLog


def refused(log: PartitionLog, made: bytes | bytearray) -> ErrorCode:
    end, size = log.log_end_offset, log.size
    with pytest.raises(KafkaError) as error:
        append(log, made)
    assert (log.log_end_offset, log.size) == (end, size)
    return error.value.code


# Appending


def test_batches_get_offsets_one_after_another_and_the_leaders_epoch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert append(log, batch(3), batch(2), leader_epoch=7) == [0, 3]
    assert log.log_end_offset == 5
    first, second = (read_header(found) for found in read_all(log))
    assert (first.base_offset, first.last_offset, second.base_offset) == (0, 2, 3)
    assert first.partition_leader_epoch == second.partition_leader_epoch == 7
    assert log.leader_epochs.entries == ((7, 0),)


def test_a_batch_is_served_as_it_came_but_for_offset_and_epoch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(1))
    sent = batch(5, codec=Codec.ZSTD)
    append(log, bytes(sent))
    (_, found) = read_all(log)
    assert found[16:] == sent[16:]


def test_the_buffer_may_be_reused_after_an_append(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    buffer = memoryview(bytearray(batch(2)))
    append(log, buffer)
    buffer[:] = bytes(len(buffer))
    assert offsets(read(log)) == [0, 1]


def test_records_keep_the_time_their_producer_gave_them(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    appended = log.append_as_leader(batch(timestamps=(NOW - 5, NOW - 9)), 0)
    assert (appended.max_timestamp, appended.log_append_time) == (NOW - 5, -1)
    assert [record.timestamp for record in iter_records(read(log))] == [NOW - 5, NOW - 9]


def test_a_topic_may_want_the_time_of_appending(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock, timestamp_type=TimestampType.LOG_APPEND_TIME)
    clock.advance(77)
    appended = log.append_as_leader(batch(timestamps=(5, 9)), 0)
    assert appended.max_timestamp == appended.log_append_time == NOW + 77
    data = read(log)
    assert [record.timestamp for record in iter_records(data)] == [NOW + 77] * 2
    assert verify_crc(data, 0, read_header(data))


@pytest.mark.parametrize(("before", "after", "at"), [(10, FAR, NOW - 11), (FAR, 10, NOW + 11)])
def test_a_timestamp_too_far_from_now_is_refused(tmp_path: Path, before: int, after: int, at: int) -> None:
    log = open_log(tmp_path, timestamp_before_max_ms=before, timestamp_after_max_ms=after)
    assert refused(log, batch(timestamp=at)) is ErrorCode.INVALID_TIMESTAMP
    append(log, batch(timestamp=at + (1 if at < NOW else -1)))


def test_a_batch_over_the_limit_is_refused_and_one_at_the_limit_taken(tmp_path: Path) -> None:
    log = open_log(tmp_path, max_message_bytes=200)
    assert refused(log, batch_of_size(201)) is ErrorCode.MESSAGE_TOO_LARGE
    assert append(log, batch_of_size(200)) == [0]


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200)
    assert refused(log, batch_of_size(201)) is ErrorCode.RECORD_LIST_TOO_LARGE


def test_damage_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    damaged = bytearray(batch(3))
    damaged[-1] ^= 1
    assert refused(log, damaged) is ErrorCode.CORRUPT_MESSAGE
    assert refused(log, batch(3)[:-1]) is ErrorCode.INVALID_RECORD
    assert refused(log, batch() + batch()) is ErrorCode.INVALID_RECORD
    assert refused(log, b"") is ErrorCode.INVALID_RECORD


def test_clients_do_not_write_control_batches(tmp_path: Path) -> None:
    assert refused(open_log(tmp_path), marker(1, commit=True)) is ErrorCode.INVALID_RECORD


def test_a_topic_may_want_another_compression(tmp_path: Path) -> None:
    log = open_log(tmp_path, compression=Codec.GZIP)
    append(log, batch(3, size=500), batch(2, codec=Codec.LZ4))
    assert [read_header(found).codec for found in read_all(log)] == [Codec.GZIP, Codec.GZIP]
    assert [offsets(found) for found in read_all(log)] == [[0, 1, 2], [3, 4]]


def test_a_compacted_topic_wants_keys(tmp_path: Path) -> None:
    from pykafka_broker.protocol.records.batch import build_batch
    from pykafka_broker.protocol.records.record import Record

    log = open_log(tmp_path, compact=True, timestamp_after_max_ms=10)
    assert refused(log, build_batch([Record(None, b"v", NOW)])) is ErrorCode.INVALID_RECORD
    # Of a record without a key and with a wrong time the key is named.
    assert refused(log, build_batch([Record(None, b"v", NOW + 11)])) is ErrorCode.INVALID_RECORD
    append(log, batch())


# Producers


def test_a_retried_batch_is_answered_and_not_written_twice(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    sent = [batch(2, producer=(9, 0, sequence), timestamp=NOW - sequence) for sequence in (0, 2, 4, 6, 8)]
    append(log, *sent)
    for index, made in enumerate(sent):
        repeated = log.append_as_leader(made, 0)
        assert repeated.duplicate
        assert (repeated.first_offset, repeated.last_offset) == (2 * index, 2 * index + 1)
        # Kafka gives the time of the first attempt here, though this topic has CreateTime.
        assert repeated.log_append_time == NOW - 2 * index
    assert log.log_end_offset == 10


def test_sequences_must_follow_each_other(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(2, producer=(9, 0, 0)))
    assert refused(log, batch(producer=(9, 0, 3))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(log, batch(producer=(9, 0, 2)))
    assert refused(log, batch(producer=(9, 1, 5))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(log, batch(producer=(9, 1, 0)))
    assert refused(log, batch(producer=(9, 0, 3))) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_aborted_transaction_is_reported_and_holds_back_the_last_stable_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(), batch(2, producer=(9, 0, 0), transactional=True))
    assert log.last_stable_offset(log.log_end_offset) == 1
    append(log, batch())
    append_marker(log, marker(9, commit=False))
    assert log.last_stable_offset(log.log_end_offset) == 5
    assert log.aborted_transactions(0, 5) == [(9, 1)]
    assert log.aborted_transactions(0, 1) == []
    append(log, batch(producer=(9, 0, 2), transactional=True))
    append_marker(log, marker(9, commit=True))
    assert log.aborted_transactions(5, 7) == []


def test_a_transaction_over_several_segments_is_found_from_its_beginning(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(producer=(9, 0, 0), transactional=True))
    log.roll()
    append(log, batch(producer=(9, 0, 1), transactional=True))
    log.roll()
    append_marker(log, marker(9, commit=False))
    assert log.aborted_transactions(0, 1) == log.aborted_transactions(1, 2) == [(9, 0)]


def test_where_nothing_was_aborted_no_file_is_touched_to_know_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path, segment_bytes=200)
    append(log, *(batch_of_size(100) for _ in range(20)))
    log.close(clean=False)
    log = open_log(tmp_path, segment_bytes=200)
    for name in ("stat", "open"):
        monkeypatch.setattr(f"os.{name}", None)
    assert log.aborted_transactions(0, 20) == []


# Following


def test_a_follower_takes_batches_as_the_leader_has_them(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "a"), open_log(tmp_path / "b")
    append(leader, batch(2, producer=(9, 0, 0)), batch(3), leader_epoch=4)
    append(leader, batch(), leader_epoch=6)
    data = read(leader)
    appended = follower.append_as_follower(data + data[:20])
    assert appended is not None
    assert (appended.first_offset, appended.last_offset, follower.log_end_offset) == (0, 5, 6)
    assert read(follower) == data
    assert follower.leader_epochs.entries == leader.leader_epochs.entries == ((4, 0), (6, 5))
    assert [producer.last_sequence for producer in follower.producers] == [1]
    assert follower.append_as_follower(data[:20]) is None


def test_a_follower_refuses_what_it_has_and_what_is_damaged(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "a"), open_log(tmp_path / "b")
    append(leader, batch(2), batch(3))
    data = bytearray(read(leader))
    data[-1] ^= 1
    with pytest.raises(KafkaError, match="corrupt"):
        follower.append_as_follower(data)
    assert follower.log_end_offset == 0
    data[-1] ^= 1
    follower.append_as_follower(data)
    with pytest.raises(KafkaError, match="where 5 is next"):
        follower.append_as_follower(data)


# Rolling


def test_a_full_segment_is_followed_by_a_new_one(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=300)
    append(log, *(batch_of_size(100) for _ in range(7)))
    assert segment_bases(log) == [0, 3, 6]
    assert [len(read(log, offset)) for offset in (0, 3, 6)] == [300, 300, 100]


def test_records_of_a_later_time_begin_a_new_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_ms=1000)
    append(log, batch(timestamp=NOW - 5000), batch(timestamp=NOW - 4000), batch(timestamp=NOW - 3999))
    assert segment_bases(log) == [0, 2]


def test_a_quiet_segment_is_rolled_by_the_clock(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock, segment_ms=1000)
    assert not log.roll_if_due()
    append(log, batch())
    clock.advance(1000)
    assert not log.roll_if_due()
    clock.advance(1)
    assert log.roll_if_due()
    assert segment_bases(log) == [0, 1]
    clock.advance(5000)
    assert not log.roll_if_due(), "an empty segment has nothing to roll"


def test_jitter_only_ever_shortens_the_time(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock, segment_ms=1000, segment_jitter_ms=500)
    append(log, batch())
    clock.advance(500)
    assert not log.roll_if_due()
    clock.advance(501)
    assert log.roll_if_due()


def test_a_full_index_rolls_the_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0, segment_index_bytes=36)
    for number in range(12):
        append(log, batch(timestamp=NOW + number))
    assert len(segment_bases(log)) > 2
    assert len(read_all(log)) == 12


@pytest.mark.parametrize("index_bytes", [4, 12, 23, 24])
def test_an_index_without_room_is_no_reason_to_fail(tmp_path: Path, index_bytes: int) -> None:
    settings = {"index_interval_bytes": 0, "segment_index_bytes": index_bytes}
    log = open_log(tmp_path, **settings)
    append(log, *(batch() for _ in range(5)))
    log.close()
    log = open_log(tmp_path, clean=False, **settings)
    assert len(read_all(log)) == 5


def test_new_settings_hold_for_the_next_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch_of_size(200))
    log.update_config(LogConfig(segment_bytes=250, max_message_bytes=220))
    append(log, batch_of_size(200))
    assert segment_bases(log) == [0, 1]
    assert refused(log, batch_of_size(221)) is ErrorCode.MESSAGE_TOO_LARGE


def test_rolling_an_empty_log_changes_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.roll()
    assert segment_bases(log) == [0]
    append(log, batch())
    log.roll()
    log.roll()
    assert segment_bases(log) == [0, 1]


# Reading


def test_an_offset_inside_a_batch_gives_the_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(10), batch(10), batch(10))
    for offset in (10, 13, 19):
        assert offsets(read(log, offset))[0] == 10
    assert offsets(read(log, 29)) == list(range(20, 30))


def test_nothing_is_read_at_the_end_and_outside_is_an_error(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert read(log, 0) == b""
    append(log, batch(2))
    assert read(log, 2) == b""
    for outside in (-1, 3):
        with pytest.raises(KafkaError) as error:
            read(log, outside)
        assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_who_waits_at_the_end_gets_what_comes_next(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=350)
    for number in range(10):
        assert read(log, number) == b""
        append(log, batch_of_size(100))
        assert offsets(read(log, number)) == [number]


def test_the_first_batch_comes_whole_only_if_that_is_asked(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch_of_size(200), batch_of_size(100))
    assert len(read(log, 0, max_bytes=10, at_least_one=True)) == 200
    assert len(read(log, 0, max_bytes=10, at_least_one=False)) == 0
    assert len(read(log, 0, max_bytes=250, at_least_one=False)) == 250


@pytest.mark.parametrize("rolled", [False, True])
def test_nothing_at_or_above_the_limit_is_read(tmp_path: Path, rolled: bool) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    append(log, *(batch(2) for _ in range(5)))
    if rolled:
        log.roll()
    assert offsets(read(log, 0, upto=6)) == [0, 1, 2, 3, 4, 5]
    assert offsets(read(log, 0, upto=5)) == [0, 1, 2, 3], "a batch is not cut in two"
    assert read(log, 4, upto=4) == b""


def test_a_read_ends_with_its_segment_and_goes_on_in_the_next(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=300, index_interval_bytes=0)
    append(log, *(batch_of_size(100) for _ in range(20)))
    for offset in range(20):
        assert offsets(read(log, offset)) == list(range(offset, min(offset // 3 * 3 + 3, 20)))


def test_a_slice_stays_readable_when_its_segment_is_deleted(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock, segment_bytes=300, retention_bytes=0)
    append(log, *(batch_of_size(100) for _ in range(4)))
    found = log.read(0, FAR, log.log_end_offset, True)
    assert log.apply_retention(log.log_end_offset) == 2
    clock.advance(60_000)
    log.purge(clock.wall_ms())
    assert offsets(bytes(found.read())) == [0, 1, 2]
    assert found.read_nowait() is not None


# Finding by time


def test_records_are_found_by_time_across_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=400, index_interval_bytes=0)
    for number in range(12):
        append(log, batch(timestamps=(NOW + 20 * number, NOW + 20 * number + 10)), leader_epoch=number // 6)
    assert len(segment_bases(log)) > 2
    for number in range(24):
        expected = (number, NOW + 10 * number, number // 12)
        assert log.offset_for_timestamp(NOW + 10 * number) == expected
        assert log.offset_for_timestamp(NOW + 10 * number - 3) == expected
    assert log.offset_for_timestamp(NOW + 231) is None
    assert log.max_timestamp() == (23, NOW + 230, 1)


def test_the_first_of_several_records_with_the_largest_timestamp_is_found(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    assert log.max_timestamp() is None
    append(log, batch(timestamps=(NOW, NOW + 9, NOW + 9)), batch(timestamp=NOW + 9), batch(timestamp=NOW + 1))
    log.roll()
    append(log, batch(timestamp=NOW + 9))
    assert log.max_timestamp() == (1, NOW + 9, 0)
    assert log.offset_for_timestamp(NOW + 5) == (1, NOW + 9, 0)


def test_times_before_the_start_of_the_log_are_not_found(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(timestamps=(NOW, NOW + 1, NOW + 2)), batch(timestamp=NOW + 3))
    log.advance_start(2)
    assert log.offset_for_timestamp(NOW) == (2, NOW + 2, 0)
