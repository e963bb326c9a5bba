"""How a log comes back: after a clean stop without a look at its batches, after a crash with one at each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pykafka_broker.clock import ManualClock
from pykafka_broker.log.producer_snapshot import list_snapshots
from pykafka_broker.log.recovery import open_epochs
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
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
    producer_states,
    read,
    read_all,
    segment_bases,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pykafka_broker.log.partition_log import PartitionLog

SETTINGS: dict[str, Any] = {"segment_bytes": 300, "index_interval_bytes": 0}


def file(log: PartitionLog, base: int, suffix: str) -> Path:
    return log.directory / f"{base:020d}{suffix}"


@pytest.fixture
def nine(tmp_path: Path):
    """Offsets 0 to 8, a batch of 100 bytes each, three in a segment; stopped as by a crash."""
    log = open_log(tmp_path, **SETTINGS)
    append(log, *(batch_of_size(100, timestamp=NOW + number) for number in range(9)))
    assert segment_bases(log) == [0, 3, 6]
    log.close(clean=False)
    return log


def damage(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


# A clean stop


def test_a_log_comes_back_as_it_was(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    append(log, *(batch_of_size(100, producer=(9, 0, number)) for number in range(5)), leader_epoch=3)
    before = (read_all(log), producer_states(log), log.leader_epochs.entries, log.size, log.max_timestamp())
    log.close()
    log = open_log(tmp_path, clean=True, **SETTINGS)
    assert (
        read_all(log),
        producer_states(log),
        log.leader_epochs.entries,
        log.size,
        log.max_timestamp(),
    ) == before
    assert log.recovery_point == log.log_end_offset == 5
    assert append(log, batch()) == [5]


def test_after_a_clean_stop_no_batch_is_checked(nine: PartitionLog, tmp_path: Path) -> None:
    damage(file(nine, 3, ".log"), 150)
    log = open_log(tmp_path, clean=True, **SETTINGS)
    assert log.log_end_offset == 9


def test_files_of_old_segments_are_not_held_open(nine: PartitionLog, tmp_path: Path) -> None:
    import os

    before = len(os.listdir("/proc/self/fd"))
    log = open_log(tmp_path, **SETTINGS)
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(read_all(log)) == 9


def test_a_torn_end_is_noticed_even_after_a_clean_stop(nine: PartitionLog, tmp_path: Path) -> None:
    with file(nine, 6, ".log").open("ab") as log_file:
        log_file.write(b"\0" * 70)
    log = open_log(tmp_path, clean=True, **SETTINGS)
    assert log.log_end_offset == 9
    assert file(log, 6, ".log").stat().st_size == 300


# A crash


def test_a_torn_batch_at_the_end_is_cut_off(nine: PartitionLog, tmp_path: Path) -> None:
    with file(nine, 6, ".log").open("r+b") as log_file:
        log_file.truncate(299)
    log = open_log(tmp_path, **SETTINGS)
    assert (log.log_end_offset, log.size) == (8, 800)
    assert file(log, 6, ".log").stat().st_size == 200
    assert log.max_timestamp() == (7, NOW + 7, 0)
    assert append(log, batch()) == [8]


def test_behind_a_damaged_batch_nothing_is_kept(nine: PartitionLog, tmp_path: Path) -> None:
    damage(file(nine, 3, ".log"), 150)
    log = open_log(tmp_path, **SETTINGS)
    assert log.log_end_offset == 4
    assert segment_bases(log) == [0, 3]
    assert [offsets(found) for found in read_all(log)] == [[0], [1], [2], [3]]
    assert not any(offset > 4 for offset in list_snapshots(log.directory))


def test_what_was_flushed_is_not_checked_again(nine: PartitionLog, tmp_path: Path) -> None:
    damage(file(nine, 0, ".log"), 150)
    log = open_log(tmp_path, recovery_point=3, **SETTINGS)
    assert log.log_end_offset == 9
    assert log.recovery_point == 3, "what was checked is not therefore on the disk"


def test_an_offset_that_does_not_fit_is_damage(nine: PartitionLog, tmp_path: Path) -> None:
    damage(file(nine, 3, ".log"), 100)  # the first byte of the second batch's offset
    assert open_log(tmp_path, **SETTINGS).log_end_offset == 4


def test_a_recovery_point_beyond_the_end_goes_back_to_it(nine: PartitionLog, tmp_path: Path) -> None:
    log = open_log(tmp_path, recovery_point=77, **SETTINGS)
    assert log.recovery_point == log.log_end_offset == 9


def test_a_control_batch_that_makes_no_sense_is_damage(tmp_path: Path) -> None:
    from pykafka_broker.protocol.records.batch import build_batch
    from pykafka_broker.protocol.records.record import Record

    log = open_log(tmp_path)
    append(log, batch(2))
    log.close(clean=False)
    nonsense = build_batch(
        [Record(b"\0", b"", NOW)],
        base_offset=2,
        producer_id=9,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    with file(log, 0, ".log").open("ab") as log_file:
        log_file.write(nonsense)
    log = open_log(tmp_path)
    assert log.log_end_offset == 2
    assert append(log, batch()) == [2]


def test_a_log_that_ends_before_its_start_begins_anew_there(nine: PartitionLog, tmp_path: Path) -> None:
    log = open_log(tmp_path, log_start_offset=50, **SETTINGS)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)
    assert segment_bases(log) == [50]
    assert log.leader_epochs.entries == ()
    assert append(log, batch()) == [50]


def test_messages_of_older_formats_are_refused_and_not_cut_off(tmp_path: Path) -> None:
    import zlib

    body = b"\x01\x00" + NOW.to_bytes(8, "big") + b"\xff\xff\xff\xff" + b"\0\0\0\x05hello"
    message = bytes(8) + (4 + len(body)).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body
    directory = tmp_path / "topic-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(message)
    with pytest.raises(KafkaError) as error:
        open_log(tmp_path)
    assert error.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    assert (directory / f"{0:020d}.log").read_bytes() == message


# Indexes


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("how", ["missing", "torn", "zeros", "beyond"])
def test_a_bad_index_is_written_anew(
    nine: PartitionLog, tmp_path: Path, clean: bool, suffix: str, how: str
) -> None:
    for base in (0, 6):
        path = file(nine, base, suffix)
        match how:
            case "missing":
                path.unlink()
            case "torn":
                path.write_bytes(path.read_bytes()[:-1] or b"\0")
            case "zeros":
                path.write_bytes(path.read_bytes() + bytes(240))
            case "beyond":
                path.write_bytes(b"\x7f" * (8 if suffix == ".index" else 12))
    recovery_point = 9 if clean else 6
    log = open_log(tmp_path, clean=clean, recovery_point=recovery_point, **SETTINGS)
    for offset in range(9):
        assert offsets(read(log, offset))[0] == offset
        if how != "beyond" or suffix == ".index":
            assert log.offset_for_timestamp(NOW + offset) == (offset, NOW + offset, 0)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("how", ["torn", "other version", "index missing"])
def test_aborted_transactions_survive_bad_indexes(tmp_path: Path, clean: bool, how: str) -> None:
    log = open_log(tmp_path)
    append(log, batch(2, producer=(9, 0, 0), transactional=True))
    log.roll()
    append(log, batch(producer=(9, 0, 2), transactional=True))
    append_marker(log, marker(9, commit=False))
    append(log, batch(producer=(8, 0, 0), transactional=True))
    append_marker(log, marker(8, commit=False))
    log.roll()
    append(log, batch())
    aborted = log.aborted_transactions(0, FAR)
    assert aborted == [(9, 0), (8, 4)]
    log.flush()
    log.close(clean=clean)
    path = file(log, 2, ".txnindex")
    match how:
        case "torn":
            path.write_bytes(path.read_bytes()[:-3])
        case "other version":
            path.write_bytes(b"\x07" + path.read_bytes()[1:])
        case "index missing":
            file(log, 2, ".index").unlink()
    states = producer_states(log)
    log = open_log(tmp_path, clean=clean, recovery_point=log.recovery_point)
    assert log.aborted_transactions(0, FAR) == aborted
    assert producer_states(log) == states


def test_an_index_smaller_than_the_settings_allow_today_is_no_obstacle(
    nine: PartitionLog, tmp_path: Path
) -> None:
    log = open_log(tmp_path, index_interval_bytes=0, segment_bytes=300, segment_index_bytes=24)
    assert len(read_all(log)) == 9


# Producers


def test_producers_come_from_the_snapshot_and_the_batches_behind_it(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    append(log, *(batch_of_size(100, producer=(number % 2, 0, number // 2)) for number in range(7)))
    states = producer_states(log)
    log.close(clean=False)
    assert sorted(list_snapshots(log.directory)) == [3, 6]
    for recovery_point in (0, 4, 7):
        log = open_log(tmp_path, recovery_point=recovery_point, **SETTINGS)
        assert producer_states(log) == states
        log.close(clean=False)


@pytest.mark.parametrize("recovery_point", [0, 4, 7])
def test_without_any_snapshot_producers_come_from_the_batches(tmp_path: Path, recovery_point: int) -> None:
    log = open_log(tmp_path, **SETTINGS)
    append(log, *(batch_of_size(100, producer=(number % 2, 0, number // 2)) for number in range(7)))
    states = producer_states(log)
    log.close(clean=False)
    for path in list_snapshots(log.directory).values():
        path.unlink()
    assert producer_states(open_log(tmp_path, recovery_point=recovery_point, **SETTINGS)) == states


def test_a_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    append(log, *(batch_of_size(100, producer=(number % 2, 0, number // 2)) for number in range(7)))
    states = producer_states(log)
    log.close()
    for path in list_snapshots(log.directory).values():
        damage(path, -1)
    assert producer_states(open_log(tmp_path, clean=True, **SETTINGS)) == states


def test_a_snapshot_without_its_log_is_not_believed(nine: PartitionLog, tmp_path: Path) -> None:
    log = open_log(tmp_path / "b")
    append(log, *(batch(producer=(9, 0, number)) for number in range(4)))
    log.close()
    file(log, 0, ".log").unlink()
    log = open_log(tmp_path / "b")
    assert (log.log_end_offset, len(log.producers)) == (0, 0)
    append(log, *(batch() for _ in range(6)))
    log.close()
    assert len(open_log(tmp_path / "b", clean=True).producers) == 0


@pytest.mark.parametrize("clean", [True, False])
def test_producers_are_remembered_longer_than_what_they_wrote(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path, retention_bytes=0)
    append(log, batch(2, producer=(9, 0, 0)))
    assert log.apply_retention(2) == 1
    assert log.log_start_offset == log.log_end_offset == 2
    log.close(clean=clean)
    log = open_log(tmp_path, clean=clean, log_start_offset=2)
    assert log.append_as_leader(batch(2, producer=(9, 0, 0)), 0).duplicate


def test_a_producer_that_was_silent_too_long_is_forgotten(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock)
    append(log, batch(producer=(9, 0, 0)))
    clock.advance(86_400_000)
    log.apply_retention(0)
    assert len(log.producers) == 0


# Epochs


def test_leader_epochs_that_do_not_read_come_from_the_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch in (2, 5, 6):
        append(log, batch(2), leader_epoch=epoch)
    log.close()
    (log.directory / "leader-epoch-checkpoint").write_text("0\n3\n2 0\n")
    (log.directory / "notes.log").write_text("no segment")
    assert open_epochs(log.directory).latest == 6
    (log.directory / "leader-epoch-checkpoint").write_text("0\n3\n2 0\n")
    log = open_log(tmp_path, clean=True)
    assert log.leader_epochs.entries == ((2, 0), (5, 2), (6, 4))


def test_leader_epochs_that_are_gone_come_from_the_batches_that_are_checked(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch in (2, 5):
        append(log, batch(2), leader_epoch=epoch)
    log.close(clean=False)
    (log.directory / "leader-epoch-checkpoint").unlink()
    assert open_log(tmp_path).leader_epochs.entries == ((2, 0), (5, 2))


def test_epochs_of_batches_that_were_lost_are_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(2), leader_epoch=1)
    append(log, batch(2), leader_epoch=2)
    log.close(clean=False)
    path = file(log, 0, ".log")
    path.write_bytes(path.read_bytes()[:-1])
    assert open_log(tmp_path).leader_epochs.entries == ((1, 0),)


# Leftovers


def test_what_was_being_deleted_is_gone(nine: PartitionLog, tmp_path: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        path = file(nine, 0, suffix)
        path.rename(path.with_name(path.name + ".deleted"))
    (nine.directory / "leader-epoch-checkpoint.tmp").touch()
    log = open_log(tmp_path, **SETTINGS)
    assert (log.log_start_offset, log.log_end_offset) == (3, 9)
    assert not [path for path in log.directory.iterdir() if path.suffix in (".deleted", ".tmp")]


def test_a_cleaning_that_did_not_end_never_happened(nine: PartitionLog, tmp_path: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        path = file(nine, 0, suffix)
        path.with_name(path.name + ".cleaned").write_bytes(path.read_bytes()[:100])
    log = open_log(tmp_path, **SETTINGS)
    assert len(read_all(log)) == 9
    assert list(log.directory.glob("*.cleaned")) == []


def test_a_cleaning_that_had_ended_takes_the_place_of_what_it_was_made_from(
    nine: PartitionLog, tmp_path: Path
) -> None:
    cleaned = file(nine, 0, ".log").read_bytes()[200:] + file(nine, 3, ".log").read_bytes()[200:]
    file(nine, 0, ".log.swap").write_bytes(cleaned)
    log = open_log(tmp_path, recovery_point=6, **SETTINGS)
    assert segment_bases(log) == [0, 6]
    assert [offsets(found) for found in read_all(log)] == [[2], [5], [6], [7], [8]]
    assert offsets(read(log, 0)) == [2, 5]
    assert offsets(read(log, 3)) == [5]
    assert list(log.directory.glob("*.swap")) == []


def test_an_index_without_a_log_is_removed(nine: PartitionLog, tmp_path: Path) -> None:
    file(nine, 6, ".log").unlink()
    log = open_log(tmp_path, **SETTINGS)
    assert log.log_end_offset == 6
    assert not file(log, 6, ".index").exists()


def test_other_files_in_the_directory_are_left_alone(nine: PartitionLog, tmp_path: Path) -> None:
    for name in ("partition.metadata", "notes.txt", "old.log", "x.index.bak"):
        (nine.directory / name).write_text("mine")
    open_log(tmp_path, **SETTINGS).close()
    for name in ("partition.metadata", "notes.txt", "old.log", "x.index.bak"):
        assert (nine.directory / name).read_text() == "mine"
