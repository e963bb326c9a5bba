"""A directory of `log.dirs`: one broker at a time, its own, with what the last stop left."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from pykafka_broker.log.checkpoints import read_offsets
from pykafka_broker.log.log_dir import LogDir, LogDirError

if TYPE_CHECKING:
    from pathlib import Path

TOPIC_ID = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")


@pytest.fixture
def opened(tmp_path: Path):
    log_dir = LogDir.open(tmp_path / "data")
    yield log_dir
    log_dir.unlock()


def test_a_directory_is_made_and_held(opened: LogDir) -> None:
    assert (opened.path / ".lock").exists()
    with pytest.raises(LogDirError, match="another broker"):
        LogDir.open(opened.path)
    opened.close(clean=False)
    LogDir.open(opened.path).close(clean=False)


def test_a_directory_is_held_against_other_processes_and_as_java_holds_it(opened: LogDir) -> None:
    for how in ("fcntl.flock", "fcntl.lockf"):
        program = f"import fcntl, sys; {how}(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        tried = subprocess.run(
            [sys.executable, "-c", program, str(opened.path / ".lock")], capture_output=True, check=False
        )
        assert b"BlockingIOError" in tried.stderr


# Whose it is


def test_a_new_directory_is_marked_with_broker_and_cluster(opened: LogDir) -> None:
    assert (opened.broker_id, opened.cluster_id) == (None, None)
    opened.write_identity(7, "cluster-A")
    opened.close(clean=True)
    again = LogDir.open(opened.path)
    assert (again.broker_id, again.cluster_id) == (7, "cluster-A")
    again.write_identity(7, "cluster-A")
    for broker_id, cluster_id in ((8, "cluster-A"), (7, "cluster-B")):
        with pytest.raises(LogDirError, match="this broker's is"):
            again.write_identity(broker_id, cluster_id)
    again.unlock()


def test_a_directory_that_kafka_formatted_keeps_its_words(tmp_path: Path) -> None:
    text = "#\n#Tue Nov 18 09:00:00 UTC 2025\nnode.id=3\ndirectory.id=abc\nversion=1\ncluster.id=a\\=b\n"
    (tmp_path / "meta.properties").write_text(text)
    log_dir = LogDir.open(tmp_path)
    assert (log_dir.broker_id, log_dir.cluster_id) == (3, "a=b")
    log_dir.write_identity(3, "a=b")
    assert (tmp_path / "meta.properties").read_text() == text
    log_dir.unlock()


@pytest.mark.parametrize("text", ["version=9\nbroker.id=1\n", "broker.id=1\n", "version=0\nbroker.id=x\n"])
def test_an_identity_that_does_not_read_is_refused_and_the_lock_given_back(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    for _ in range(2):
        with pytest.raises(LogDirError, match=r"meta\.properties"):
            LogDir.open(tmp_path)


# What lies in it


def test_partitions_are_told_from_everything_else(opened: LogDir) -> None:
    for name in (
        "t-0",
        "t-12",
        "with-dashes-3",
        "a.b_c-0",
        "t-0.0123456789abcdef0123456789abcdef-delete",
        "t-1.0123456789abcdef0123456789abcdef-stray",
        "__cluster_metadata-0",
        "lost+found",
        "t-x",
    ):
        (opened.path / name).mkdir()
    (opened.path / "file-0").touch()
    assert opened.partitions() == [("a.b_c", 0), ("t", 0), ("t", 12), ("with-dashes", 3)]
    assert opened.remove_deleted() == 1
    assert not list(opened.path.glob("*-delete"))


def test_a_partition_knows_its_topic(opened: LogDir) -> None:
    directory = opened.path / "t-0"
    directory.mkdir()
    assert opened.read_topic_id(directory) is None
    opened.write_topic_id(directory, TOPIC_ID)
    assert (directory / "partition.metadata").read_text() == "version: 0\ntopic_id: AQIDBAUGBwgJCgsMDQ4PEA"
    opened.write_topic_id(directory, TOPIC_ID)
    with pytest.raises(LogDirError, match="belongs to topic id"):
        opened.write_topic_id(directory, UUID(int=5))
    (directory / "partition.metadata").write_text("version: 3\ntopic_id: x")
    with pytest.raises(LogDirError, match="does not read"):
        opened.read_topic_id(directory)


def test_what_belongs_to_no_topic_is_set_aside_and_not_lost(opened: LogDir) -> None:
    for name, topic_id in (
        ("mine-0", TOPIC_ID),
        ("renewed-0", UUID(int=1)),
        ("gone-0", None),
        ("old-0", None),
    ):
        directory = opened.path / name
        directory.mkdir()
        (directory / "data").touch()
        if topic_id is not None:
            opened.write_topic_id(directory, topic_id)
    opened.set_strays_aside({("mine", 0): TOPIC_ID, ("renewed", 0): TOPIC_ID, ("old", 0): TOPIC_ID})
    assert opened.partitions() == [("mine", 0), ("old", 0)]
    strays = sorted(opened.path.glob("*-stray"))
    assert [path.name.split(".")[0] for path in strays] == ["gone-0", "renewed-0"]
    assert all((path / "data").exists() for path in strays)


# How far it had come


def test_a_clean_stop_is_remembered_until_the_broker_runs(opened: LogDir) -> None:
    assert not opened.clean
    opened.close(clean=True)
    assert (opened.path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    again = LogDir.open(opened.path)
    assert again.clean
    again.mark_running()
    again.unlock()
    third = LogDir.open(opened.path)
    assert not third.clean
    third.close(clean=False)
    assert not LogDir.open(opened.path).clean


def test_checkpoints_come_back(opened: LogDir) -> None:
    opened.write_checkpoints(
        recovery_points={("t", 0): 5, ("t", 1): 0},
        log_start_offsets={("t", 0): 2, ("t", 1): 0},
        high_watermarks={("t", 0): 6, ("t", 1): 0},
    )
    opened.write_cleaner_offsets({("t", 1): 4})
    opened.close(clean=True)
    again = LogDir.open(opened.path)
    assert again.recovery_points == {("t", 0): 5, ("t", 1): 0}
    assert again.log_start_offsets == {("t", 0): 2}
    assert again.high_watermarks == {("t", 0): 6, ("t", 1): 0}
    assert again.read_cleaner_offsets() == {("t", 1): 4}
    again.unlock()


def written(where: LogDir) -> list[dict[tuple[str, int], int]]:
    """What the checkpoints on the disk say: recovery points, log starts, high watermarks."""
    names = ("recovery-point", "log-start", "replication")
    return [read_offsets(where.path / f"{name}-offset-checkpoint") for name in names]


def fill_checkpoints(where: LogDir, *keys: tuple[str, int]) -> None:
    for name, index in keys:
        (where.path / f"{name}-{index}").mkdir(exist_ok=True)
    offsets = dict.fromkeys(keys, 5)
    where.write_checkpoints(recovery_points=offsets, log_start_offsets=offsets, high_watermarks=offsets)


def test_what_is_forgotten_is_on_the_disk_no_more(opened: LogDir) -> None:
    fill_checkpoints(opened, ("t", 0), ("t", 1), ("u", 0))
    opened.forget([("t", 0), ("u", 0), ("never-here", 3)])
    assert written(opened) == [{("t", 1): 5}] * 3
    assert opened.log_start_offsets == {("t", 1): 5}


def test_nothing_is_written_to_forget_what_was_never_noted(opened: LogDir) -> None:
    fill_checkpoints(opened, ("t", 0))
    before = [path.stat().st_ino for path in sorted(opened.path.glob("*-checkpoint"))]
    opened.forget([("u", n) for n in range(1000)])
    assert [path.stat().st_ino for path in sorted(opened.path.glob("*-checkpoint"))] == before


def test_a_partition_without_a_directory_is_forgotten(opened: LogDir) -> None:
    fill_checkpoints(opened, ("t", 0), ("t", 1), ("__cluster_metadata", 0))
    (opened.path / "t-0").rename(opened.path / "t-0.0123456789abcdef0123456789abcdef-delete")
    opened.unlock()
    again = LogDir.open(opened.path)
    again.forget_missing()
    assert written(again) == [{("t", 1): 5, ("__cluster_metadata", 0): 5}] * 3
    again.unlock()


def test_what_is_set_aside_is_forgotten(opened: LogDir) -> None:
    fill_checkpoints(opened, ("t", 0), ("gone", 0))
    opened.set_strays_aside({("t", 0): TOPIC_ID})
    assert written(opened) == [{("t", 0): 5}] * 3


def test_a_partition_that_is_not_mentioned_keeps_its_checkpoints(opened: LogDir) -> None:
    fill_checkpoints(opened, ("offline", 0), ("t", 0))
    opened.write_checkpoints(
        recovery_points={("t", 0): 7}, log_start_offsets={("t", 0): 0}, high_watermarks={("t", 0): 8}
    )
    assert written(opened) == [
        {("offline", 0): 5, ("t", 0): 7},
        {("offline", 0): 5},
        {("offline", 0): 5, ("t", 0): 8},
    ]


def test_a_damaged_checkpoint_counts_as_none_and_the_stop_as_unclean(opened: LogDir) -> None:
    opened.close(clean=True)
    (opened.path / "recovery-point-offset-checkpoint").write_text("0\n5\n")
    again = LogDir.open(opened.path)
    assert (again.recovery_points, again.clean) == ({}, False)
    again.unlock()
