"""Compacted logs as the tests of compaction need them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pykafka_broker.log.batch_filter import last_batches
from pykafka_broker.log.cleaner import CleanerSettings, CleaningRound
from pykafka_broker.log.pace import Pace
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.protocol.records.record import Record, iter_records
from tests.log.samples import NOW, open_log, read_all

if TYPE_CHECKING:
    from pathlib import Path

    from pykafka_broker.clock import ManualClock
    from pykafka_broker.log.partition_log import PartitionLog

RETENTION = 10_000
"""How long deletions stay readable here."""


def compacted(path: Path, clock: ManualClock | None = None, **more: Any) -> PartitionLog:
    settings = {
        "compact": True,
        "delete": False,
        "min_cleanable_dirty_ratio": 0.0,
        "index_interval_bytes": 100,
    }
    return open_log(path, clock, **(settings | {"delete_retention_ms": RETENTION} | more))


def keyed(*records: tuple[str, str | None], timestamp: int = NOW, **more: Any) -> bytes:
    """A batch of keys and values; None deletes the key."""
    return build_batch(
        [
            Record(key.encode(), None if value is None else value.encode(), timestamp + number)
            for number, (key, value) in enumerate(records)
        ],
        **more,
    )


def clean(log: PartitionLog, clock: ManualClock, settings: CleanerSettings | None = None) -> int:
    """One round, as the broker does it; gives where the log is dirty from now."""
    plan = log.survey(log.log_end_offset)
    segments, ticket = log.segments_to_clean()
    pace = Pace(threading.Event())
    work = CleaningRound(segments, plan, log.config, settings or CleanerSettings(), pace, clock.wall_ms())
    for group in work.begin():
        assert log.swap_in(work.clean(group, last_batches(log.producers)), group, ticket)
    log.first_dirty_offset = work.end_offset
    return work.end_offset


def contents(log: PartitionLog) -> list[tuple[int, str, str | None]]:
    """Offset, key and value of every record a consumer gets, but for control records."""
    return [
        (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
        for record in records(log)
    ]


def records(log: PartitionLog) -> list[Record]:
    return [record for found in read_all(log) if not found[22] & 0x20 for record in iter_records(found)]
