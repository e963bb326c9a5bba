"""Cleaning beside the event loop: it goes on serving, and what happens to a log meanwhile is noticed."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from pykafka_broker.clock import ManualClock
from pykafka_broker.config import BrokerConfig
from pykafka_broker.log.log_dir import LogDir
from pykafka_broker.replication.compactor import CleanerCheckpoints, Compactor
from pykafka_broker.replication.partition import Partition
from tests.log.cleaning import compacted, contents, keyed
from tests.log.samples import append, segment_bases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def compactor_of(**properties: object) -> Compactor:
    given = {name.replace("_", "."): str(value) for name, value in properties.items()}
    return Compactor(BrokerConfig.load(given), ManualClock())


@pytest.fixture
def compactor() -> Iterator[Compactor]:
    made = compactor_of()
    yield made
    made.close()


def partition(path: Path, **config: Any) -> Partition:
    return Partition("topic", 0, uuid4(), compacted(path, **config), 0)


def fill(dirty: Partition, records: int, keys: int = 50, value: str = "v" * 50) -> None:
    """Batches of 100 records, ten to a segment."""
    for first in range(0, records, 100):
        append(dirty.log, keyed(*((f"key-{n % keys}", f"{n}{value}") for n in range(first, first + 100))))
        if first % 1000 == 900:
            dirty.log.roll()


async def copying(dirty: Partition) -> None:
    """The thread has read all keys and is writing a new segment, which the loop has not taken yet."""
    while not list(dirty.log.directory.glob("*.cleaned")):  # noqa: ASYNC110 -- a thread makes the file
        await asyncio.sleep(0)


async def test_the_dirtiest_log_comes_first_and_a_clean_one_never(
    tmp_path: Path, compactor: Compactor
) -> None:
    less, more = partition(tmp_path / "less"), partition(tmp_path / "more")
    for each in (less, more):
        fill(each, 1000)
        assert await compactor.clean_dirtiest([each])
    fill(less, 1000)
    fill(more, 3000)
    assert await compactor.clean_dirtiest([less, more])
    assert (less.log.first_dirty_offset, more.log.first_dirty_offset) == (1000, 4000)
    assert await compactor.clean_dirtiest([less, more])
    assert less.log.first_dirty_offset == 2000
    assert not await compactor.clean_dirtiest([less, more])


async def test_a_topic_that_is_not_compacted_is_left_alone(tmp_path: Path, compactor: Compactor) -> None:
    plain = partition(tmp_path, compact=False)
    fill(plain, 1000)
    assert not await compactor.clean_dirtiest([plain])


async def test_reads_and_appends_go_on_while_a_log_is_cleaned(tmp_path: Path, compactor: Compactor) -> None:
    busy = partition(tmp_path)
    fill(busy, 20_000)
    held = busy.read(0, 1 << 20, committed=False, at_least_one=True)
    expected = held.read().tobytes()
    cleaning = asyncio.create_task(compactor.clean_dirtiest([busy]))
    written, longest = 20_000, 0.0
    while not cleaning.done():
        began = time.monotonic()
        append(busy.log, keyed(("key-0", f"{written}")))
        written += 1
        assert busy.read(written - 1, 1000, committed=True, at_least_one=True).size > 0
        assert busy.read(written // 2, 1000, committed=True, at_least_one=True).size > 0
        await asyncio.sleep(0)
        longest = max(longest, time.monotonic() - began)
    assert await cleaning
    assert written > 20_050, "the loop hardly ran beside the cleaner"
    assert longest < 0.5
    assert held.read().tobytes() == expected
    found = contents(busy.log)
    assert [offset for offset, _, _ in found if offset < 20_000] == list(range(19_950, 20_000))
    assert [offset for offset, _, _ in found if offset >= 20_000] == list(range(20_000, written))


async def test_retention_in_the_middle_ends_the_round_and_the_next_one_succeeds(
    tmp_path: Path, compactor: Compactor
) -> None:
    dirty = partition(tmp_path)
    fill(dirty, 20_000)
    cleaning = asyncio.create_task(compactor.clean_dirtiest([dirty]))
    await copying(dirty)
    dirty.log.advance_start(3500)
    assert dirty.log.apply_retention(dirty.high_watermark) == 3
    assert not await cleaning
    assert not list(dirty.log.directory.glob("*.cleaned"))
    assert segment_bases(dirty.log)[0] == 3000
    assert await compactor.clean_dirtiest([dirty])
    assert len(contents(dirty.log)) == 50


async def test_a_log_deleted_in_the_middle_is_let_go_of(
    tmp_path: Path, compactor: Compactor, caplog: pytest.LogCaptureFixture
) -> None:
    dirty = partition(tmp_path)
    fill(dirty, 20_000)
    cleaning = asyncio.create_task(compactor.clean_dirtiest([dirty]))
    await copying(dirty)
    dirty.log.delete()
    assert not await cleaning
    assert not await compactor.clean_dirtiest([dirty])
    assert "left alone" not in caplog.text


async def test_a_stop_ends_a_round_within_moments(tmp_path: Path) -> None:
    compactor = compactor_of(log_cleaner_io_max_bytes_per_second=1000)
    dirty = partition(tmp_path)
    fill(dirty, 2000)
    cleaning = asyncio.create_task(compactor.clean_dirtiest([dirty]))
    await asyncio.sleep(0)  # it has been started
    compactor.stop()
    began = time.monotonic()
    assert not await cleaning
    compactor.close()
    assert time.monotonic() - began < 5
    assert not list(dirty.log.directory.glob("*.cleaned"))
    assert len(contents(dirty.log)) == 2000


async def test_the_throttle_holds_cleaning_back(tmp_path: Path) -> None:
    dirty = partition(tmp_path)
    fill(dirty, 1000)
    compactor = compactor_of(log_cleaner_io_max_bytes_per_second=2 * dirty.log.size)
    began = time.monotonic()
    assert await compactor.clean_dirtiest([dirty])  # reads the log twice
    assert time.monotonic() - began > 0.8
    compactor.close()


async def test_a_damaged_log_is_reported_once_and_left_alone(
    tmp_path: Path, compactor: Compactor, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, sound = partition(tmp_path / "damaged"), partition(tmp_path / "sound")
    fill(damaged, 1000)
    fill(sound, 1000)
    path = damaged.log.directory / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    assert not await compactor.clean_dirtiest([damaged, sound])
    assert await compactor.clean_dirtiest([damaged, sound])
    assert not await compactor.clean_dirtiest([damaged, sound])
    assert caplog.text.count("cannot be cleaned") == 1
    assert path.read_bytes() == data


def test_how_far_logs_are_clean_is_remembered_for_those_that_are_still_there(tmp_path: Path) -> None:
    where, other = LogDir.open(tmp_path / "a"), LogDir.open(tmp_path / "b")
    entries = [(where, ("topic", 0), 7), (where, ("topic", 1), 8), (other, ("topic", 2), 9)]
    CleanerCheckpoints([where, other]).write(lambda: entries)
    assert CleanerCheckpoints([where]).read(where) == {("topic", 0): 7, ("topic", 1): 8}
    assert CleanerCheckpoints([other]).read(other) == {("topic", 2): 9}
    CleanerCheckpoints([where, other]).write(lambda: entries[1:])
    assert where.read_cleaner_offsets() == {("topic", 1): 8}
    assert (where.path / "cleaner-offset-checkpoint").read_text() == "0\n1\ntopic 1 8\n"
    where.close(clean=False)
    other.close(clean=False)
