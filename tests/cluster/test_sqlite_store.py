"""What only the store in a file does."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings

from pykafka_broker.clock import ManualClock
from pykafka_broker.cluster.sqlite_store import SqliteStore
from pykafka_broker.cluster.store import StoreError

from .tree_model import HISTORIES, run_against_model


@pytest.fixture
def kind():
    return "sqlite"


async def test_ephemerals_of_a_killed_broker_are_gone_at_the_next_start(tmp_path, clock):
    killed = await SqliteStore.open(tmp_path / "db", clock)
    await killed.create("/gone", ephemeral=True)
    owner = (await killed.get("/gone")).ephemeral_owner
    killed._db._connection.close()  # what a kill leaves behind: no chance to say goodbye
    reopened = await SqliteStore.open(tmp_path / "db", clock)
    assert not await reopened.exists("/gone")
    await reopened.create("/gone", ephemeral=True)
    assert (await reopened.get("/gone")).ephemeral_owner != owner
    await reopened.close()
    killed._thread.shutdown()


async def test_a_second_broker_on_the_same_file_is_refused(tmp_path, clock, store):
    with pytest.raises(StoreError, match="cannot open"):
        await SqliteStore.open(tmp_path / "metadata.db", clock)


async def test_a_file_that_is_no_store_is_refused(tmp_path, clock):
    (tmp_path / "junk").write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError, match="cannot open"):
        await SqliteStore.open(tmp_path / "junk", clock)


async def test_a_cancelled_caller_does_not_swallow_the_news(store, monkeypatch):
    heard, writing, may_write = asyncio.Event(), asyncio.Event(), threading.Event()
    loop, write = asyncio.get_running_loop(), store._db._write

    def slow_disk(staged):
        loop.call_soon_threadsafe(writing.set)
        assert may_write.wait(10)
        write(staged)

    monkeypatch.setattr(store._db, "_write", slow_disk)
    await store.watch_data("/a", lambda path: heard.set())
    caller = asyncio.create_task(store.create("/a"))
    await asyncio.wait_for(writing.wait(), 10)
    caller.cancel()
    may_write.set()
    await asyncio.wait_for(heard.wait(), 10)
    assert await store.exists("/a")


async def test_a_failed_write_is_reported_and_leaves_the_store_usable(store, monkeypatch):
    write = store._db._write

    def full_disk(staged):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store._db, "_write", full_disk)
    with pytest.raises(StoreError, match="disk is full"):
        await store.create("/a")
    monkeypatch.setattr(store._db, "_write", write)
    assert not await store.exists("/a")
    await store.create("/a")


async def test_a_file_of_the_first_release_is_opened(tmp_path, clock):
    """It had no column for the time of the last change."""
    store = await SqliteStore.open(tmp_path / "db", clock)
    await store.create("/a", b"kept")
    await store.close()
    with sqlite3.connect(tmp_path / "db") as connection:
        connection.execute("ALTER TABLE nodes DROP COLUMN mtime_ms")
    connection.close()
    store = await SqliteStore.open(tmp_path / "db", clock)
    assert (await store.get("/a")).data == b"kept"
    await store.set("/a", b"new")
    assert (await store.get("/a")).mtime_ms == clock.wall_ms()
    await store.close()


@settings(max_examples=60, deadline=None)
@given(HISTORIES)
def test_any_history_matches_a_plain_model_and_survives_reopening(steps):
    with tempfile.TemporaryDirectory() as directory:
        path, clock = Path(directory, "db"), ManualClock()
        asyncio.run(run_against_model(lambda: SqliteStore.open(path, clock), steps))
