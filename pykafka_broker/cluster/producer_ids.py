"""Producer ids, unique in the cluster, drawn from the store a block at a time as Apache Kafka does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.store import BadVersion
from pykafka_broker.cluster.znodes import ProducerIdBlock
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.cluster.store import Store

BLOCK_SIZE = 1000
_MAX_ID = 2**63 - 1


class ProducerIds:
    """Hands out ids that were never handed out before. Owner: the broker, one for each.

    A restart abandons the rest of a block: ids are plenty, and an id used twice would mix two producers. `highest` is
    the greatest id the logs remember: a directory may come from a cluster whose blocks this store never saw.
    """

    def __init__(self, store: Store, broker_id: int, highest: int = -1) -> None:
        self._store = store
        self._broker_id = broker_id
        self._highest = highest
        self._next = 0
        self._last = -1
        self._refill = asyncio.Lock()

    async def next(self) -> int:
        async with self._refill:
            if self._next > self._last:
                block = await self.claim_block(self._broker_id)
                self._next, self._last = block.first, block.last
            self._next += 1
            return self._next - 1

    async def claim_block(self, broker_id: int) -> ProducerIdBlock:
        """A block for that broker alone; nothing of it is handed out here."""
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
            return block
