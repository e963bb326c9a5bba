"""Loading a shard: its partition is replayed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pykafka_broker.coordinator.offsets import NO_PRODUCER
from pykafka_broker.coordinator.records import decode_record
from pykafka_broker.protocol.records.batch import iter_headers
from pykafka_broker.protocol.records.control import read_marker
from pykafka_broker.protocol.records.record import iter_records

if TYPE_CHECKING:
    from pykafka_broker.coordinator.shard import GroupShard

_WITHOUT_PAUSE: Final = 1_000
"""Records replayed in one go, some ten milliseconds' worth."""


async def replay_batches(shard: GroupShard, view: memoryview) -> tuple[int, int]:
    """Replays whole batches, and says how many records they held and at which offset they end."""
    records = end = 0
    replay = shard.replay
    pause = _WITHOUT_PAUSE
    for position, header in iter_headers(view):
        batch = view[position : position + header.size]
        end = header.next_offset
        if header.is_control:
            marker = read_marker(batch)
            if marker is not None:
                shard.end_transaction(header.producer_id, committed=marker.commit)
            continue
        if records > pause:
            pause = records + _WITHOUT_PAUSE
            await asyncio.sleep(0)  # whoever is served already goes on being served
        producer_id = header.producer_id if header.is_transactional else NO_PRODUCER
        for found in iter_records(batch):
            records += 1
            record = decode_record(found.key, found.value) if found.key is not None else None
            if record is not None:
                replay(record, producer_id)
    return records, end
