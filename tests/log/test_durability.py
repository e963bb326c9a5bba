"""What is on the disk when the log says so, and what a disk that fails does to it."""

from __future__ import annotations

import errno
import os
import resource
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.clock import ManualClock
from pykafka_broker.log.partition_log import StorageError
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from tests.log.samples import (
    append,
    append_marker,
    batch,
    batch_of_size,
    marker,
    offsets,
    open_log,
    read,
    read_all,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Syncs:
    """Notes which files were synced, by name; a test may run something while a sync is under way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.meanwhile: Callable[[], object] | None = None
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name)))

    def _wrapped(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(fd: int) -> None:
            self.names.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)
            meanwhile, self.meanwhile = self.meanwhile, None
            if meanwhile is not None:
                meanwhile()
            real(fd)

        return sync


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    return Syncs(monkeypatch)


def _name(base: int, suffix: str) -> str:
    return f"{base:020d}.{suffix}"


# Flushing


def test_a_flush_moves_the_recovery_point_to_the_end(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock)
    append(log, batch(3))
    clock.advance(50)
    assert (log.recovery_point, log.unflushed_ms(clock.wall_ms()), log.needs_flush) == (0, 50, False)
    log.flush()
    assert (log.recovery_point, log.unflushed_ms(clock.wall_ms())) == (3, 0)


def test_a_flush_syncs_log_indexes_and_the_directory_they_are_new_in(tmp_path: Path, syncs: Syncs) -> None:
    log = open_log(tmp_path)
    append(log, batch())
    syncs.names.clear()
    log.flush()
    assert syncs.names == [_name(0, "log"), _name(0, "index"), _name(0, "timeindex"), "topic-0"]


def test_a_second_flush_syncs_only_what_has_changed(tmp_path: Path, syncs: Syncs) -> None:
    log = open_log(tmp_path)
    append(log, batch())
    log.flush()
    syncs.names.clear()
    log.flush()
    assert syncs.names == []
    append(log, batch())
    log.flush()
    assert syncs.names == [_name(0, "log")]


def test_indexes_are_synced_though_nobody_holds_them_open(tmp_path: Path, syncs: Syncs) -> None:
    log = open_log(tmp_path)
    append(log, batch(producer=(9, 0, 0), transactional=True))
    append_marker(log, marker(9, commit=False))
    log.roll()
    log.apply_retention(log.log_end_offset)  # closes what is not in use
    assert log.needs_flush
    log.flush()
    assert {_name(0, suffix) for suffix in ("log", "index", "timeindex", "txnindex")} < set(syncs.names)
    assert log.recovery_point == 2


def test_a_flush_up_to_an_offset_leaves_later_segments_alone(tmp_path: Path, syncs: Syncs) -> None:
    log = open_log(tmp_path)
    append(log, batch(2))
    log.roll()
    append(log, batch(2))
    syncs.names.clear()
    log.flush(upto=2)
    assert log.recovery_point == 2
    assert not any(name.startswith(f"{2:020d}") for name in syncs.names)


def test_the_directory_of_a_new_log_is_made_durable(tmp_path: Path, syncs: Syncs) -> None:
    open_log(tmp_path)
    assert tmp_path.name in syncs.names


def test_what_is_appended_during_a_flush_is_not_promised(tmp_path: Path, syncs: Syncs) -> None:
    log = open_log(tmp_path)
    append(log, batch())
    syncs.meanwhile = lambda: append(log, batch(5))
    log.flush()
    assert (log.recovery_point, log.log_end_offset) == (1, 6)


def test_what_is_truncated_during_a_flush_is_not_promised(tmp_path: Path, syncs: Syncs) -> None:
    log = open_log(tmp_path)
    append(log, batch(5), batch(5))

    def truncate_and_write_again() -> None:
        log.truncate_to(5)
        append(log, batch(5))

    syncs.meanwhile = truncate_and_write_again
    log.flush()
    assert log.recovery_point <= 5
    log.flush()
    assert log.recovery_point == 10


def test_segments_deleted_during_a_flush_do_not_harm_it(tmp_path: Path, syncs: Syncs) -> None:
    log = open_log(tmp_path, segment_bytes=200, retention_bytes=0)
    append(log, *(batch_of_size(100) for _ in range(5)))

    def let_go() -> None:
        assert log.apply_retention(4) == 2

    syncs.meanwhile = let_go
    log.flush()
    assert not log.offline
    assert log.recovery_point == 5
    assert [path.name for path in log.directory.glob("*.log")] == [_name(4, "log")], "nothing was made anew"


def test_a_file_that_vanishes_without_our_doing_takes_the_log_offline(tmp_path: Path, syncs: Syncs) -> None:
    log = open_log(tmp_path)
    append(log, batch())
    syncs.meanwhile = (log.directory / _name(0, "index")).unlink
    with pytest.raises(StorageError):
        log.flush()
    assert log.offline


def test_flushes_and_appends_in_two_threads(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=400, retention_bytes=800, index_interval_bytes=0)
    stop = threading.Event()
    failures: list[Exception] = []

    def flush() -> None:
        while not stop.is_set():
            try:
                log.flush()
                log.purge(log._clock.wall_ms())
            except (OSError, ValueError, KafkaError) as error:
                failures.append(error)
                return

    thread = threading.Thread(target=flush)
    thread.start()
    try:
        for number in range(400):
            append(log, batch_of_size(100))
            if number % 10 == 0:
                log.apply_retention(log.log_end_offset)
            if number % 50 == 49:
                log.truncate_to(log.log_end_offset - 2)
            assert log.recovery_point <= log.log_end_offset
    finally:
        stop.set()
        thread.join()
    assert failures == []
    log.flush()
    assert log.recovery_point == log.log_end_offset


def test_the_recovery_point_goes_back_with_the_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(5), batch(5))
    log.flush()
    log.truncate_to(7)
    assert (log.log_end_offset, log.recovery_point) == (5, 5)
    append(log, batch(9))
    assert log.recovery_point == 5
    log.truncate_fully(3)
    assert log.recovery_point == 3
    log.truncate_fully(100)
    assert log.recovery_point <= 100
    log.flush()
    assert log.recovery_point == 100


# A clean stop


def test_a_clean_stop_leaves_everything_on_the_disk(tmp_path: Path, syncs: Syncs) -> None:
    log = open_log(tmp_path)
    append(log, batch(3, producer=(9, 0, 0)))
    syncs.names.clear()
    log.close()
    assert _name(3, "snapshot.tmp") in syncs.names
    assert syncs.names[-1] == "topic-0", "and the name of the snapshot with it"
    assert {_name(0, suffix) for suffix in ("log", "index", "timeindex")} < set(syncs.names)
    assert log.recovery_point == 3


def test_an_idle_log_is_closed_without_waiting_for_the_disk(tmp_path: Path, syncs: Syncs) -> None:
    log = open_log(tmp_path)
    append(log, batch(3, producer=(9, 0, 0)))
    log.close()
    log = open_log(tmp_path, clean=True)
    syncs.names.clear()
    log.close()
    assert syncs.names == []


def test_an_unclean_stop_leaves_the_files_as_they_are(tmp_path: Path, syncs: Syncs) -> None:
    log = open_log(tmp_path)
    append(log, batch(3))
    syncs.names.clear()
    log.close(clean=False)
    assert syncs.names == []


# A disk that fails


@contextmanager
def failing_writes(suffix: str, code: int = errno.ENOSPC, after: int = 0) -> Iterator[None]:
    """Lets writes to files whose names end so fail; of the one that fails first, `after` bytes are written."""
    real = os.pwrite
    written: list[bool] = []

    def pwrite(fd: int, data: bytes, position: int) -> int:
        if not os.readlink(f"/proc/self/fd/{fd}").endswith(suffix):
            return real(fd, data, position)
        if after and not written:
            written.append(True)
            return real(fd, bytes(data)[:after], position)
        raise OSError(code, os.strerror(code))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        yield


@pytest.mark.parametrize(("code", "after"), [(errno.ENOSPC, 0), (errno.ENOSPC, 50), (errno.EIO, 0)])
def test_a_failed_write_fails_the_request_and_takes_this_log_offline(
    tmp_path: Path, code: int, after: int
) -> None:
    log, other = open_log(tmp_path / "a"), open_log(tmp_path / "b")
    append(log, batch(3))
    with failing_writes("a/topic-0/" + _name(0, "log"), code, after):
        for use in (lambda: append(log, batch(2)), lambda: append(log, batch(2)), lambda: read(log)):
            with pytest.raises(StorageError) as error:
                use()
            assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert (log.offline, other.offline) == (True, False)
        assert append(other, batch(2)) == [0]
    with pytest.raises(StorageError):
        log.close()
    reopened = open_log(tmp_path / "a")
    assert offsets(read(reopened)) == [0, 1, 2], "not one byte of what failed"
    assert reopened.log_end_offset == 3


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_batch_that_cannot_be_indexed_is_not_in_the_log(tmp_path: Path, suffix: str) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    append(log, batch(3))
    with failing_writes(suffix), pytest.raises(StorageError):
        append(log, batch(2))
    assert log.log_end_offset == 3
    assert len(read_all(open_log(tmp_path))) == 1


def test_a_failed_sync_moves_no_recovery_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    append(log, batch(3))

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(StorageError):
        log.flush()
    assert (log.recovery_point, log.offline) == (0, True)
    with pytest.raises(KafkaError):
        log.close()


def test_a_file_system_that_takes_no_more(tmp_path: Path) -> None:
    """A real refusal in the middle of a write, which the system grants everybody: files of a limited size."""
    log = open_log(tmp_path)
    append(log, batch_of_size(100_000), batch_of_size(100_000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256_000, hard))
    try:
        with pytest.raises(StorageError):
            append(log, batch_of_size(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert log.offline
    assert (log.directory / _name(0, "log")).stat().st_size == 200_000
    log.close(clean=False)
    reopened = open_log(tmp_path)
    assert reopened.log_end_offset == 2
    assert append(reopened, batch_of_size(100_000)) == [2]


def test_bytes_the_disk_does_not_give_are_an_error_of_this_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    append(log, batch(3))
    found = log.read(0, 1000, 3, True)

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "preadv", fail)
    for read_it in (found.read_nowait, found.read):
        with pytest.raises(StorageError):
            read_it()
