"""Batches and logs as the tests of the log package need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.clock import ManualClock
from pykafka_broker.log.log_config import LogConfig
from pykafka_broker.log.partition_log import PartitionLog
from pykafka_broker.protocol.records.batch import build_batch, iter_headers
from pykafka_broker.protocol.records.control import end_txn_marker
from pykafka_broker.protocol.records.record import Record, iter_records

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_700_000_000_000
"""Where a ManualClock begins."""

FAR = 1 << 40
"""An offset or a size that nothing in these tests reaches."""


def batch(
    count: int = 1,
    *,
    size: int = 10,
    timestamp: int = NOW,
    timestamps: tuple[int, ...] = (),
    producer: tuple[int, int, int] | None = None,
    **more: Any,
) -> bytes:
    """A batch of `count` records with values of `size` bytes; `producer` is its id, epoch and first sequence."""
    if producer is not None:
        more |= dict(zip(("producer_id", "producer_epoch", "base_sequence"), producer, strict=True))
    times = timestamps or (timestamp,) * count
    return build_batch([Record(b"k", b"v" * size, at) for at in times], **more)


def batch_of_size(size: int, **more: Any) -> bytes:
    """A batch of one record and exactly `size` bytes."""
    made = batch(size=size - len(batch(size=0, **more)), **more)
    made = (
        batch(size=2 * size - len(batch(size=0, **more)) - len(made), **more) if len(made) != size else made
    )
    assert len(made) == size
    return made


def marker(producer_id: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0) -> bytes:
    return end_txn_marker(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp=NOW,
    )


def open_log(
    path: Path,
    clock: ManualClock | None = None,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    **config: Any,
) -> PartitionLog:
    return PartitionLog.open(
        path / "topic-0",
        LogConfig(**config),
        clock or ManualClock(),
        recovery_point=recovery_point,
        clean=clean,
        log_start_offset=log_start_offset,
    )


def append(log: PartitionLog, *batches: bytes | bytearray, leader_epoch: int = 0) -> list[int]:
    """The first offset of each batch."""
    return [log.append_as_leader(made, leader_epoch).first_offset for made in batches]


def append_marker(log: PartitionLog, made: bytes) -> int:
    return log.append_as_leader(made, 0, from_client=False).first_offset


def read(log: PartitionLog, offset: int = 0, max_bytes: int = FAR, upto: int = FAR, **more: bool) -> bytes:
    return bytes(
        log.read(offset, max_bytes, min(upto, log.log_end_offset), more.get("at_least_one", True)).read()
    )


def read_all(log: PartitionLog) -> list[bytes]:
    """Every batch of the log, as a consumer that starts at the beginning gets them."""
    found: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = read(log, offset)
        if not data:
            break
        for at, header in iter_headers(data):
            found.append(data[at : at + header.size])
            offset = header.next_offset
    return found


def offsets(data: bytes) -> list[int]:
    """The offsets of all records in a run of whole batches."""
    return [
        record.offset
        for at, header in iter_headers(data)
        for record in iter_records(memoryview(data)[at : at + header.size])
    ]


def segment_bases(log: PartitionLog) -> list[int]:
    return sorted(int(path.stem) for path in log.directory.glob("*.log"))


def producer_states(log: PartitionLog) -> dict[int, tuple[Any, ...]]:
    """What a snapshot would say of each producer."""
    return {producer.producer_id: tuple(producer.to_snapshot()) for producer in log.producers}
