"""Acknowledgements that wait for the disk share its work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

from pykafka_broker.replication.partition import Partition
from tests.log.samples import open_log

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MOST_LOOKS = 100


class SlowDisk:
    """A log as far as flushing goes. Whoever looks at it again and again, and never lets go, fails."""

    def __init__(self) -> None:
        self.log_end_offset = 1
        self.flushes = 0
        self._flushed = 0
        self._looks = 0

    @property
    def recovery_point(self) -> int:
        self._looks += 1
        assert self._looks < MOST_LOOKS, "the loop is held up"
        return self._flushed

    def flush(self) -> None:
        self.flushes += 1
        self._flushed = self.log_end_offset


async def test_who_comes_just_as_a_flush_has_ended_starts_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing the flush was to wake has run yet: this one must not take the flush for one that is under way."""
    disk = SlowDisk()
    partition = Partition("topic", 0, uuid4(), open_log(tmp_path), 0)
    partition.log = disk
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def in_a_thread(work: object) -> None:
        await ended

    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "to_thread", in_a_thread)
        first = asyncio.create_task(partition.flushed())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    disk.flush()
    ended.set_result(None)
    disk.log_end_offset = 2
    late = [asyncio.create_task(late_comer(partition, turns)) for turns in range(5)]
    await asyncio.wait_for(asyncio.gather(first, *late), 10)
    assert disk.recovery_point == 2
    assert disk.flushes == 2


async def late_comer(partition: Partition, turns: int) -> None:
    """Asks so many turns of the loop from now."""
    for _ in range(turns):
        await asyncio.sleep(0)
    await partition.flushed()
