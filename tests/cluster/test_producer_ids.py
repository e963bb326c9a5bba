"""Producer ids from a store whose connection comes and goes."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.cluster import producer_ids, znodes
from pykafka_broker.cluster.producer_ids import BLOCK_SIZE, ProducerIds
from pykafka_broker.cluster.store import ConnectionLost, SessionExpired
from pykafka_broker.cluster.znodes import ProducerIdBlock
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

from .memory_store import MemoryStore, MemoryTree


class AwayStore(MemoryStore):
    """As the real one: what is read while there is no connection waits for one."""

    def __init__(self, tree, session):
        super().__init__(tree, session)
        self.connected = asyncio.Event()
        self.connected.set()
        self.reads = 0

    async def get_many(self, paths):
        self.reads += 1
        await self.connected.wait()
        return await super().get_many(paths)


@pytest.fixture
async def store():
    found = AwayStore(MemoryTree(), 1)
    await found.create("/latest_producer_id_block")
    return found


@pytest.fixture
async def ids(store, monkeypatch):
    monkeypatch.setattr(producer_ids, "_PATIENCE_SECONDS", 0.02)
    found = ProducerIds(store, 1)
    yield found
    await found.close()


@pytest.mark.parametrize("error", [ConnectionLost, SessionExpired])
@pytest.mark.parametrize("happened", [False, True])
async def test_a_claim_whose_connection_breaks_is_made_again(store, ids, error, happened):
    """Nobody knows whether the block was taken. If it was, it is nobody's."""

    def breaks(ops):
        store.before_multi = None
        if happened:
            store.tree.commit(ops, store.session_id)
        raise error(ops[0].path, "the connection broke")

    store.before_multi = breaks
    assert await ids.next() == (BLOCK_SIZE if happened else 0)
    assert await ids.next() == (BLOCK_SIZE if happened else 0) + 1


async def test_while_the_store_is_away_clients_are_told_to_ask_again(store, ids):
    store.connected.clear()
    outcomes = await asyncio.gather(*(ids.next() for _ in range(5)), return_exceptions=True)
    assert [type(found) for found in outcomes] == [KafkaError] * 5
    assert {found.code for found in outcomes} == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    with pytest.raises(KafkaError):
        await ids.next()
    assert store.reads == 1, "what waits for the store is asked once"
    store.connected.set()
    assert await ids.next() == 0
    assert ProducerIdBlock.decode(store.tree.rows[znodes.PRODUCER_ID_BLOCK].data).first == 0


async def test_a_block_that_comes_late_is_handed_out_to_who_asks_next(store, ids):
    store.connected.clear()
    with pytest.raises(KafkaError):
        await ids.next()
    store.connected.set()
    await ids._refilling
    store.connected.clear()
    assert [await ids.next() for _ in range(3)] == [0, 1, 2]


async def test_what_the_log_remembers_is_left_out(store):
    ids = ProducerIds(store, 1, highest=1234)
    assert await ids.next() == 1235
    await ids.close()


async def test_who_closes_waits_for_nothing(store, ids):
    store.connected.clear()
    with pytest.raises(KafkaError):
        await ids.next()
    async with asyncio.timeout(5):
        await ids.close()
