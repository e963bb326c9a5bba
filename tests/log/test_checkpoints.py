"""The small texts beside the logs, and what leaders wrote from where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.log.checkpoints import (
    CheckpointError,
    read_lines,
    read_offsets,
    write_atomically,
    write_offsets,
)
from pykafka_broker.log.leader_epochs import LeaderEpochs

if TYPE_CHECKING:
    from pathlib import Path


def test_a_checkpoint_is_a_version_a_count_and_lines(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_offsets(path, {("topic", 0): 17, ("other-topic", 3): 0})
    assert path.read_text() == "0\n2\ntopic 0 17\nother-topic 3 0\n"
    assert read_offsets(path) == {("topic", 0): 17, ("other-topic", 3): 0}
    assert read_offsets(tmp_path / "none") == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n2\ntopic 0 17\n",
        b"0\n1\ntopic 0\n",
        b"0\n1\ntopic zero 17\n",
        b"\xff\xfe",
        b"0\nx\n",
    ],
)
def test_a_checkpoint_that_does_not_read_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(CheckpointError):
        read_offsets(tmp_path / "c")


def test_a_replaced_file_is_the_old_one_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c"
    write_atomically(path, b"old")
    monkeypatch.setattr("os.fsync", lambda fd: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


# Leader epochs


def epochs_of(path: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs(path / "leader-epoch-checkpoint")
    for epoch, start in entries:
        epochs.assign(epoch, start)
    return epochs


def test_epochs_are_on_disk_as_kafka_writes_them(tmp_path: Path) -> None:
    epochs = epochs_of(tmp_path, (0, 0), (3, 10), (3, 12))
    assert epochs.path.read_text() == "0\n2\n0 0\n3 10\n"
    assert LeaderEpochs(epochs.path).entries == epochs.entries == ((0, 0), (3, 10))
    assert [epochs.epoch_for(offset) for offset in (-1, 0, 9, 10, 99)] == [-1, 0, 0, 3, 3]


def test_a_new_leader_replaces_those_who_wrote_nothing(tmp_path: Path) -> None:
    assert epochs_of(tmp_path, (1, 0), (2, 5), (4, 5)).entries == ((1, 0), (4, 5))


def test_epochs_follow_the_ends_of_the_log(tmp_path: Path) -> None:
    epochs = epochs_of(tmp_path, (1, 0), (2, 5), (4, 9), (6, 12))
    epochs.truncate_from_end(12)
    assert epochs.entries == ((1, 0), (2, 5), (4, 9))
    epochs.truncate_from_start(7)
    assert epochs.entries == ((2, 7), (4, 9))
    epochs.save()
    assert LeaderEpochs(epochs.path).entries == ((2, 7), (4, 9))
    epochs.truncate_from_end(0)
    assert epochs.entries == ()
    assert read_lines(epochs.path) == []


def test_moving_the_start_does_not_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    epochs = epochs_of(tmp_path, (1, 0), (2, 5))
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    epochs.truncate_from_start(3)
    assert synced == []
    epochs.save()
    assert synced != []
    synced.clear()
    epochs.save()
    assert synced == []


@pytest.mark.parametrize("content", ["0\n1\n1\n", "0\n1\n1 2 3\n", "0\n1\na b\n", "nonsense"])
def test_epochs_that_do_not_read_are_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(content)
    with pytest.raises(CheckpointError):
        LeaderEpochs(path)


@given(
    starts=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), max_size=6),
    asked=st.integers(-1, 40),
    ahead=st.integers(0, 4),
    tail=st.integers(1, 5),
)
def test_where_an_epoch_ended(
    tmp_path_factory: pytest.TempPathFactory, starts: list[tuple[int, int]], asked: int, ahead: int, tail: int
) -> None:
    """Against the plain reading: the leader's epoch is one more entry at the end of the log; an epoch ends where the
    next known one begins."""
    epoch, offset, entries = -1, 0, []
    for epoch_step, offset_step in starts:
        epoch, offset = epoch + epoch_step, offset + offset_step
        entries.append((epoch, offset))
    log_end = offset + tail
    leader = max(epoch + ahead, 0)
    epochs = epochs_of(tmp_path_factory.mktemp("epochs"), *entries)

    known = entries if leader == epoch else [*entries, (leader, log_end)]
    if asked < 0 or asked > leader:
        expected = (-1, -1)
    elif asked == leader:
        expected = (leader, log_end)
    else:
        below = [entry for entry in known if entry[0] <= asked]
        above = [entry for entry in known if entry[0] > asked]
        expected = (below[-1][0] if below else asked, above[0][1])
    assert epochs.end_offset_as_leader(asked, leader, log_end) == expected
    if leader == epoch:
        assert epochs.end_offset_for(asked, log_end) == expected
