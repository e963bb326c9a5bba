"""Producer ids, unique in the cluster, drawn from the store a block at a time as Apache Kafka does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.store import BadVersion, ConnectionLost
from pykafka_broker.cluster.znodes import ProducerIdBlock
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.cluster.store import Store

BLOCK_SIZE = 1000
_MAX_ID = 2**63 - 1
_PATIENCE_SECONDS: Final = 1.0
"""A request that waits holds up all that its client asks for on the same connection."""


class ProducerIds:
    """Hands out ids that were never handed out before. Owner: the broker, one for each, which closes it.

    A restart abandons the rest of a block: ids are plenty, and an id used twice would mix two producers. `highest` is
    the greatest id the logs remember: a directory may come from a cluster whose blocks this store never saw.
    """

    def __init__(self, store: Store, broker_id: int, highest: int = -1) -> None:
        self._store = store
        self._broker_id = broker_id
        self._highest = highest
        self._next = 0
        self._last = -1
        self._refilling: asyncio.Task[None] | None = None

    async def next(self) -> int:
        """COORDINATOR_LOAD_IN_PROGRESS, upon which clients ask again, if the store does not answer in time; what was
        asked of it stays asked, for whoever comes next."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while self._next > self._last:
                    await self._refilled()
        except TimeoutError:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "There are no producer ids to be had now."
            ) from None
        self._next += 1
        return self._next - 1

    async def close(self) -> None:
        """Asks for nothing more."""
        if self._refilling is not None:
            self._refilling.cancel()
            await asyncio.gather(self._refilling, return_exceptions=True)

    async def _refilled(self) -> None:
        """Everybody who runs out at the same time waits for the same block."""
        if self._refilling is None or self._refilling.done():
            self._refilling = asyncio.get_running_loop().create_task(self._refill())
        await asyncio.shield(self._refilling)

    async def _refill(self) -> None:
        block = await self.claim_block(self._broker_id)
        self._next, self._last = block.first, block.last

    async def claim_block(self, broker_id: int) -> ProducerIdBlock:
        """A block for that broker alone; nothing of it is handed out here. Waits for the store, however long."""
        while True:
            node = await self._store.get(znodes.PRODUCER_ID_BLOCK)
            claimed = ProducerIdBlock.decode(node.data).last if node.data else -1
            first = max(claimed, self._highest) + 1
            if first > _MAX_ID - BLOCK_SIZE:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Have exhausted all producerIds.")
            block = ProducerIdBlock(broker_id, first, first + BLOCK_SIZE - 1)
            try:
                await self._store.set(znodes.PRODUCER_ID_BLOCK, block.encode(), node.version)
            except BadVersion:
                continue  # another broker took this block; the next one is as good
            except ConnectionLost:
                continue  # it may be ours or not; the next one is, and ids are plenty
            return block
