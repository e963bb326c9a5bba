"""How a log gets shorter: at its start by retention and by request, at its end by truncation, and as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.clock import ManualClock
from pykafka_broker.log.log_config import LogConfig
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from tests.log.samples import (
    NOW,
    append,
    append_marker,
    batch,
    batch_of_size,
    marker,
    offsets,
    open_log,
    producer_states,
    read,
    read_all,
    segment_bases,
)

# The start of the log


def test_what_lies_before_the_start_cannot_be_read(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(5), batch(5))
    log.advance_start(3)
    assert log.log_start_offset == 3
    assert offsets(read(log, 3))[0] == 0, "a batch that reaches over the start comes whole"
    with pytest.raises(KafkaError) as error:
        read(log, 2)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    log.advance_start(1)
    assert log.log_start_offset == 3, "the start never goes back"
    with pytest.raises(KafkaError):
        log.advance_start(11)


def test_segments_before_the_start_go_with_the_next_retention_whatever_the_policy(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200, delete=False, compact=True)
    append(log, *(batch_of_size(100) for _ in range(6)))
    log.advance_start(3)
    assert log.apply_retention(log.log_end_offset) == 1
    assert segment_bases(log) == [2, 4]
    log.advance_start(6)
    assert log.apply_retention(log.log_end_offset) == 1
    assert segment_bases(log) == [4], "the active segment stays until it is rolled"


def test_epochs_before_the_start_are_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch in range(4):
        append(log, batch(2), leader_epoch=epoch)
    log.advance_start(5)
    assert log.leader_epochs.entries == ((2, 5), (3, 6))
    log.close()
    assert open_log(tmp_path, clean=True, log_start_offset=5).leader_epochs.entries == ((2, 5), (3, 6))


# Retention


def test_the_oldest_segments_go_while_the_rest_is_large_enough(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200, retention_bytes=400)
    append(log, *(batch_of_size(100) for _ in range(7)))
    assert log.size == 700
    assert log.apply_retention(log.log_end_offset) == 1, "700 less 200 is still 400 or more, less 400 is not"
    assert (segment_bases(log), log.size, log.log_start_offset) == ([2, 4, 6], 500, 2)
    assert log.apply_retention(log.log_end_offset) == 0


def test_segments_go_by_their_newest_record(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock, segment_bytes=200, retention_ms=1000)
    append(log, *(batch_of_size(100, timestamp=NOW + 100 * number) for number in range(6)))
    clock.advance(1100)
    assert log.apply_retention(log.log_end_offset) == 0
    clock.advance(1)
    assert log.apply_retention(log.log_end_offset) == 1
    assert segment_bases(log) == [2, 4]


def test_an_active_segment_that_is_too_old_is_rolled_and_goes_too(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock, segment_bytes=200, retention_ms=1000)
    append(log, *(batch_of_size(100) for _ in range(3)))
    clock.advance(2000)
    assert log.apply_retention(log.log_end_offset) == 2
    assert (segment_bases(log), log.size) == ([3], 0)
    assert log.log_start_offset == log.log_end_offset == 3
    assert append(log, batch()) == [3]


def test_records_without_a_time_age_by_their_file(tmp_path: Path) -> None:
    clock = ManualClock(wall_ms=4_000_000_000_000)  # far after this file was written
    log = open_log(tmp_path, clock)
    append(log, batch(timestamp=-1))
    assert log.apply_retention(log.log_end_offset) == 1


def test_nothing_above_the_high_watermark_goes(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200, retention_bytes=0)
    append(log, *(batch_of_size(100) for _ in range(6)))
    assert log.apply_retention(3) == 1
    assert segment_bases(log) == [2, 4]


def test_a_log_without_limits_keeps_everything(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock, segment_bytes=200, retention_ms=-1, retention_bytes=-1)
    append(log, *(batch_of_size(100) for _ in range(6)))
    clock.advance(10**12)
    assert log.apply_retention(log.log_end_offset) == 0


def test_files_are_removed_some_time_after_they_were_let_go_of(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock, segment_bytes=200, retention_bytes=0, file_delete_delay_ms=500)
    append(log, *(batch_of_size(100) for _ in range(3)))
    assert log.apply_retention(log.log_end_offset) == 2
    deleted = sorted(path.name for path in log.directory.glob("*.deleted"))
    assert deleted[:3] == [f"{0:020d}.{kind}.deleted" for kind in ("index", "log", "timeindex")]
    assert log.pending_deletes() == len(deleted) == 6
    clock.advance(499)
    assert log.purge(clock.wall_ms()) == 0
    clock.advance(1)
    assert log.purge(clock.wall_ms()) == 6
    assert list(log.directory.glob("*.deleted")) == []
    assert log.pending_deletes() == 0


def test_a_file_that_cannot_be_removed_does_not_keep_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path, segment_bytes=200, retention_bytes=0, file_delete_delay_ms=0)
    append(log, *(batch_of_size(100) for _ in range(3)))
    log.apply_retention(log.log_end_offset)
    stubborn = min(log.directory.glob("*.log.deleted"))
    real = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path == stubborn:
            raise PermissionError(1, "Operation not permitted")
        real(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    log.purge(NOW)
    assert list(log.directory.glob("*.deleted")) == [stubborn], "the next start removes it"
    assert (log.pending_deletes(), log.offline) == (0, False)


# Truncation


@pytest.fixture
def five(tmp_path: Path):
    """Batches of three records at 0, 3, 6, 9, 12, two in a segment, each by a leader and with a time of its own."""
    log = open_log(tmp_path, segment_bytes=270, index_interval_bytes=0)
    for number in range(5):
        append(log, batch(3, timestamp=NOW + number), leader_epoch=number)
    assert segment_bases(log) == [0, 6, 12]
    return log


@pytest.mark.parametrize(
    ("offset", "end", "bases"),
    [
        (14, 12, [0, 6, 12]),
        (12, 12, [0, 6, 12]),
        (11, 9, [0, 6]),
        (9, 9, [0, 6]),
        (6, 6, [0, 6]),
        (4, 3, [0]),
        (0, 0, [0]),
    ],
)
def test_truncation_drops_every_batch_that_reaches_the_offset(
    five, offset: int, end: int, bases: list[int]
) -> None:
    assert five.truncate_to(offset)
    assert five.log_end_offset == end
    assert segment_bases(five) == bases
    assert [made[0] for made in (offsets(found) for found in read_all(five))] == list(range(0, end, 3))
    assert five.size == sum(path.stat().st_size for path in five.directory.glob("*.log"))
    assert five.leader_epochs.latest == end // 3 - 1
    newest = five.max_timestamp()
    assert (newest.timestamp if newest else None) == (NOW + end // 3 - 1 if end else None)
    assert append(five, batch(2)) == [end]
    assert offsets(read(five, end)) == [end, end + 1]


def test_truncation_beyond_the_end_changes_nothing(five) -> None:
    assert not five.truncate_to(15)
    assert not five.truncate_to(99)
    assert five.log_end_offset == 15


def test_truncation_before_the_first_segment_empties_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path, log_start_offset=100)
    append(log, batch(3))
    assert log.truncate_to(50)
    assert log.log_start_offset == log.log_end_offset == 50
    assert segment_bases(log) == [50]


def test_an_emptied_log_goes_on_at_the_given_offset_and_knows_nothing_of_before(five) -> None:
    append(five, batch(producer=(9, 0, 0)))
    five.roll()
    five.truncate_fully(1000)
    assert (five.log_start_offset, five.log_end_offset, five.size) == (1000, 1000, 0)
    assert five.leader_epochs.entries == ()
    assert len(five.producers) == 0
    assert list(five.directory.glob("*.snapshot")) == []
    assert append(five, batch(2), leader_epoch=9) == [1000]
    assert segment_bases(five) == [1000]


def test_truncation_takes_producers_and_transactions_back_in_time(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(2, producer=(9, 0, 0), transactional=True))
    before = producer_states(log)
    log.roll()
    append(log, batch(producer=(9, 0, 2), transactional=True))
    append_marker(log, marker(9, commit=False))
    append(log, batch(producer=(8, 0, 0)))
    assert log.aborted_transactions(0, 4) == [(9, 0)]
    log.truncate_to(2)
    assert producer_states(log) == before
    assert log.aborted_transactions(0, 4) == []
    assert log.last_stable_offset(log.log_end_offset) == 0
    assert append(log, batch(producer=(9, 0, 2), transactional=True)) == [2]


def test_a_truncated_segment_takes_times_and_offsets_again(five) -> None:
    five.truncate_to(9)
    for number in range(6):
        append(five, batch(timestamp=NOW - 50 + number))
    assert five.offset_for_timestamp(NOW + 2) == (6, NOW + 2, 2)
    assert five.offset_for_timestamp(NOW + 3) is None


def test_a_truncated_segment_is_indexed_anew(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    append(log, *(batch(5, size=100) for _ in range(6)))
    log.truncate_to(12)
    append(log, *(batch(2, size=number) for number in range(10)))
    for offset in range(log.log_end_offset):
        first = offset // 5 * 5 if offset < 10 else offset // 2 * 2
        assert offsets(read(log, offset))[0] == first


def test_truncation_inside_a_segment_replays_what_is_left_of_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(producer=(9, 0, 0)))
    log.roll()
    append(log, *(batch(producer=(9, 0, sequence)) for sequence in range(1, 5)))
    for end in (3, 2):
        log.truncate_to(end)
        assert [producer.last_sequence for producer in log.producers] == [end - 1]


# The whole log


def test_a_deleted_log_leaves_a_directory_that_goes_later(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock, file_delete_delay_ms=500)
    append(log, batch())
    moved = log.delete()
    assert moved.name.startswith("topic-0.")
    assert moved.name.endswith("-delete")
    assert list(tmp_path.iterdir()) == [moved]
    for use in (lambda: read(log), lambda: append(log, batch()), log.roll):
        with pytest.raises(KafkaError) as error:
            use()
        assert error.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert log.purge(clock.wall_ms()) == 0
    clock.advance(500)
    assert log.purge(clock.wall_ms()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_a_deleted_log_is_never_too_long(tmp_path: Path) -> None:
    from pykafka_broker.log.partition_log import PartitionLog

    name = "t" * 249 + "-0"
    log = PartitionLog.open(tmp_path / name, LogConfig(), ManualClock(), recovery_point=0, clean=False)
    assert len(log.delete().name) == 255


def test_a_closed_log_answers_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.close()
    log.close()
    with pytest.raises(KafkaError) as error:
        append(log, batch())
    assert error.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
