"""The store under test: each test that asks for one runs on SQLite and on ZooKeeper, unless it says otherwise."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Protocol

import pytest

from pykafka_broker.clock import ManualClock
from pykafka_broker.cluster.sqlite_store import SqliteStore
from pykafka_broker.cluster.zookeeper_store import ZookeeperSettings, ZookeeperStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from compat_tests.servers import Zookeeper
    from pykafka_broker.cluster.store import Store


class OpenStore(Protocol):
    async def __call__(self) -> Store: ...


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "zookeeper"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def settings(zookeeper: Zookeeper) -> ZookeeperSettings:
    """A tree of the test's own in the shared ZooKeeper."""
    return ZookeeperSettings(f"{zookeeper.connect}/{uuid.uuid4().hex}", session_timeout_ms=10_000)


@pytest.fixture
async def open_store(
    kind: str, tmp_path: Path, clock: ManualClock, request: pytest.FixtureRequest
) -> AsyncIterator[OpenStore]:
    """Opens the tree of this test as a new session; what the test leaves open is closed."""
    opened: list[Store] = []
    settings = request.getfixturevalue("settings") if kind == "zookeeper" else None

    async def open_store() -> Store:
        store = await (
            SqliteStore.open(tmp_path / "metadata.db", clock)
            if settings is None
            else ZookeeperStore.open(settings)
        )
        opened.append(store)
        return store

    yield open_store
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    return await open_store()
