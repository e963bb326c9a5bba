"""All partitions of a broker: what becomes of a topic whose name another one had before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from pykafka_broker.clock import SystemClock
from pykafka_broker.cluster.view import ClusterView, PartitionInfo, TopicInfo
from pykafka_broker.config import BrokerConfig
from pykafka_broker.log import checkpoints
from pykafka_broker.log.checkpoints import read_offsets
from pykafka_broker.log.log_dir import LogDir
from pykafka_broker.replication.partitions import Partitions
from tests.log.samples import batch

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = ClusterView("c")


class Killed(BaseException):
    """Nothing catches it, as nothing runs after kill -9."""


def view(*topics: tuple[str, int], partitions: int = 1) -> ClusterView:
    """Topics by name and id, all led by broker 1."""
    led = (PartitionInfo(1, 0, (1,), (1,), 0),) * partitions
    return NOTHING.with_topics([TopicInfo(name, UUID(int=number), led, {}) for name, number in topics])


class Lone:
    """Broker 1, alone, as far as its partitions go."""

    def __init__(self, path: Path, at_start: ClusterView) -> None:
        self.where = LogDir.open(path)
        self.partitions = Partitions(1, BrokerConfig.load({}), SystemClock(), [self.where])
        self.partitions.open(at_start)
        self.view = at_start

    async def shows(self, new: ClusterView) -> None:
        await self.partitions.apply(self.view, new)
        self.view = new

    async def checkpoint(self) -> None:
        await self.partitions._checkpoint()

    def write(self, topic: str, count: int, index: int = 0) -> int:
        return self.partitions.leader(topic, index).append(bytearray(batch(count))).first_offset

    def ends(self, topic: str, index: int = 0) -> tuple[int, int]:
        log = self.partitions.leader(topic, index).log
        return log.log_start_offset, log.log_end_offset

    def noted(self) -> set[tuple[str, int]]:
        """Who is mentioned in any checkpoint on the disk."""
        return {key for path in self.where.path.glob("*-offset-checkpoint") for key in read_offsets(path)}

    def killed(self, at_start: ClusterView | None = None) -> Lone:
        """Started again on what is there now."""
        self.where.unlock()
        return Lone(self.where.path, self.view if at_start is None else at_start)


@pytest.fixture
async def lone(tmp_path: Path) -> Lone:
    """Topic "t" has lost its first 100 records, and the checkpoints know."""
    broker = Lone(tmp_path, view(("t", 1)))
    broker.write("t", 150)
    broker.partitions.leader("t", 0).delete_records(100)
    partition = broker.partitions.leader("t", 0)
    partition.log.first_dirty_offset = 120
    partition.log.flush()
    await broker.checkpoint()
    return broker


async def test_a_topic_of_a_deleted_ones_name_keeps_its_records_when_the_broker_is_killed(lone: Lone) -> None:
    await lone.shows(NOTHING)
    assert lone.noted() == set()
    await lone.shows(view(("t", 2)))
    assert lone.write("t", 50) == 0
    again = lone.killed()
    assert again.ends("t") == (0, 50)
    assert again.partitions.leader("t", 0).high_watermark == 50


async def test_so_it_does_if_one_change_replaces_the_other(lone: Lone) -> None:
    await lone.shows(view(("t", 2)))
    lone.write("t", 50)
    assert lone.killed().ends("t") == (0, 50)


async def test_a_topic_made_after_a_kill_begins_at_0_whatever_had_its_name_before(lone: Lone) -> None:
    await lone.shows(NOTHING)
    again = lone.killed()
    await again.shows(view(("t", 2)))
    assert again.write("t", 50) == 0
    assert again.killed().ends("t") == (0, 50)


async def test_a_kill_between_a_deletion_and_its_note_is_made_good_at_the_start(
    lone: Lone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as killing:
        killing.setattr(LogDir, "forget", die)
        with pytest.raises(Killed):
            await lone.shows(NOTHING)
    assert lone.noted() == {("t", 0)}
    again = lone.killed(NOTHING)
    assert again.noted() == set()
    await again.shows(view(("t", 2)))
    assert again.write("t", 50) == 0
    assert again.killed().ends("t") == (0, 50)


async def test_a_kill_before_a_deletion_leaves_the_topic_as_it_was(lone: Lone) -> None:
    assert lone.killed().ends("t") == (100, 150)


async def test_a_disk_that_would_not_forget_is_asked_again_before_the_name_is_used(
    lone: Lone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as failing:
        failing.setattr(checkpoints, "write_offsets", fail)
        with pytest.raises(OSError, match="No space"):
            await lone.shows(NOTHING)
    lone.view = NOTHING
    await lone.shows(view(("t", 2)))
    assert lone.write("t", 50) == 0
    assert lone.killed().ends("t") == (0, 50)


async def test_a_checkpoint_under_way_does_not_bring_back_what_is_deleted_meanwhile(lone: Lone) -> None:
    positions = lone.partitions._positions()
    await lone.shows(NOTHING)
    lone.partitions._checkpoints.write(positions)
    lone.partitions._checkpoints.write_high_watermarks(positions)
    assert lone.noted() == set()


async def test_a_deletion_of_many_partitions_is_noted_once(
    lone: Lone, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = view(("t", 1), ("u", 2), ("v", 3), partitions=50)
    await lone.shows(many)
    await lone.checkpoint()
    written: list[Path] = []
    keep = checkpoints.write_offsets

    def note(path: Path, offsets: dict[tuple[str, int], int]) -> None:
        written.append(path)
        keep(path, offsets)

    monkeypatch.setattr(checkpoints, "write_offsets", note)
    await lone.shows(view(("t", 1), partitions=50))
    assert len(written) == len(set(written)) == 2  # none of them had lost its start
    assert lone.noted() == {("t", n) for n in range(50)}


async def test_others_are_served_while_a_deletion_is_noted(
    lone: Lone, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lone.shows(view(("t", 1), ("u", 2)))
    loop = asyncio.get_running_loop()
    served = asyncio.Event()
    forget = LogDir.forget

    def slow(where: LogDir, keys: list[tuple[str, int]]) -> None:
        asyncio.run_coroutine_threadsafe(served.wait(), loop).result(10)
        forget(where, keys)

    monkeypatch.setattr(LogDir, "forget", slow)
    removing = asyncio.ensure_future(lone.shows(view(("u", 2))))
    await asyncio.sleep(0)
    assert lone.write("u", 3) == 0
    served.set()
    await removing
