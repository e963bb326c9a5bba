"""Large slices are handed to the kernel as mapped pages, and only when they are in memory."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.log.log_file import LogFile

if TYPE_CHECKING:
    from pathlib import Path

MEGABYTE = 1 << 20
CONTENT = os.urandom(2 * MEGABYTE)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are mapped on Linux only")


@pytest.fixture
def log(tmp_path: Path) -> LogFile:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(CONTENT)
    return LogFile(path, len(CONTENT))


def test_a_mapped_slice_has_the_bytes_of_the_file(log: LogFile) -> None:
    for position, size in ((0, MEGABYTE), (12_345, 777_777), (MEGABYTE, MEGABYTE), (5, 10)):
        view = log.slice(position, size).view_nowait()
        assert view is not None
        assert view.readonly or size < 64 * 1024
        assert view == CONTENT[position : position + size]


def test_the_kernel_sends_a_mapped_slice(log: LogFile) -> None:
    view = log.slice(4_000, 100_000).view_nowait()
    assert view is not None
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sent = ours.send(view)
        assert theirs.recv(sent, socket.MSG_WAITALL) == CONTENT[4_000 : 4_000 + sent]


def test_what_was_appended_since_is_mapped_too(log: LogFile) -> None:
    log.slice(0, MEGABYTE).view_nowait()
    more = os.urandom(MEGABYTE)
    log.append(more)
    view = log.slice(2 * MEGABYTE, MEGABYTE).view_nowait()
    assert view is not None
    assert view == more


def test_a_view_outlives_the_file(log: LogFile) -> None:
    view = log.slice(0, MEGABYTE).view_nowait()
    log.release()
    log.path.unlink()
    assert view is not None
    assert view == CONTENT[:MEGABYTE]


def test_what_is_not_in_memory_is_left_to_a_thread(log: LogFile) -> None:
    log.sync()
    log.release()
    with log.path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    found = log.slice(0, 2 * MEGABYTE)
    view = found.view_nowait()
    assert view is None or view == CONTENT  # a file system in memory forgets nothing
    assert found.read() == CONTENT


def test_a_slice_of_a_file_that_was_cut_is_not_mapped(log: LogFile) -> None:
    found = log.slice(0, 2 * MEGABYTE)
    os.truncate(log.path, MEGABYTE)
    assert found.view_nowait() is None
    assert found.read() == CONTENT[:MEGABYTE]
