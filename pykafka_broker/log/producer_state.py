"""What a log knows of its producers: the newest batches of each, against duplicates, and open transactions.

State is a function of the log: replaying every batch from a snapshot's offset on leads to the same state.

| a client's batch                                | answer                          |
|-------------------------------------------------|---------------------------------|
| of an unknown producer                          | taken, whatever its sequence    |
| same sequences as one of the last five batches  | duplicate: its first offsets    |
| epoch below the known one                       | INVALID_PRODUCER_EPOCH          |
| epoch above the known one, sequence 0           | taken                           |
| epoch above the known one, other sequence       | OUT_OF_ORDER_SEQUENCE_NUMBER    |
| sequence follows the last one (0 after 2^31-1)  | taken                           |
| any other sequence                              | OUT_OF_ORDER_SEQUENCE_NUMBER    |
| not transactional inside an open transaction    | INVALID_TXN_STATE               |
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykafka_broker.log.producer import NO_OFFSET, Producer
from pykafka_broker.log.producer_snapshot import (
    CorruptSnapshotError,
    list_snapshots,
    read_snapshot,
    snapshot_path,
    write_snapshot,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from pykafka_broker.clock import Clock
    from pykafka_broker.log.producer import BatchMeta
    from pykafka_broker.log.producer_snapshot import SnapshotEntry
    from pykafka_broker.protocol.records.batch import BatchHeader
    from pykafka_broker.protocol.records.control import EndTxnMarker

log = logging.getLogger(__name__)

DEFAULT_EXPIRY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class CompletedTxn:
    """A transaction that a marker ended; an aborted one belongs into the transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool
    last_stable_offset: int


class ProducerState:
    """The producers of one log and their snapshot files. Owned by the log; event-loop thread only."""

    def __init__(self, directory: Path, clock: Clock, expiry_ms: int = DEFAULT_EXPIRY_MS) -> None:
        self._directory = directory
        self._clock = clock
        self._expiry_ms = expiry_ms
        self._producers: dict[int, Producer] = {}
        # First offset of each open transaction → its producer, lowest first: transactions begin in log order.
        self._ongoing: dict[int, int] = {}
        # First offset → marker offset of ended transactions whose marker the high watermark has not passed.
        self._unreplicated: dict[int, int] = {}
        self.end_offset = 0
        """The state covers the log up to here."""
        self._snapshot_offset = 0

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[Producer]:
        return iter(self._producers.values())

    def get(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    # What a batch may do

    def check(self, header: BatchHeader, *, from_client: bool = True) -> BatchMeta | None:
        """None if the batch of a producer may be appended, or the earlier batch it repeats.

        KafkaError by the table above. Batches of our own coordinators (`from_client` False) have no
        sequences; only their epoch is judged.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        if from_client and not header.is_control and (earlier := producer.find_duplicate(header)):
            return earlier
        producer.check_epoch(header)
        if header.is_control:
            return None
        if from_client:
            producer.check_sequence(header)
        if producer.txn_first_offset >= 0 and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has a transaction open and wrote outside of it",
            )
        return None

    def check_marker(self, header: BatchHeader, marker: EndTxnMarker) -> None:
        """KafkaError if the marker comes from a fenced producer epoch or a deposed coordinator."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return
        producer.check_epoch(header)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {header.producer_id}: coordinator epoch {marker.coordinator_epoch} is behind "
                f"{producer.coordinator_epoch}",
            )

    # What batches did

    def update(
        self, header: BatchHeader, first_offset: int, marker: EndTxnMarker | None = None
    ) -> CompletedTxn | None:
        """Take in a batch that is in the log at `first_offset`; for a control batch, with its marker (None if
        compaction emptied it). Timestamps are those of the batch as stored.

        The transaction the marker ended, if it had any data here.
        """
        last_offset = first_offset + header.last_offset_delta
        self.end_offset = last_offset + 1
        if header.is_control:
            return None if marker is None else self._end_transaction(header, first_offset, marker)
        producer = self._producer(header.producer_id)
        producer.add(header, first_offset)
        if header.is_transactional and producer.txn_first_offset < 0:
            producer.txn_first_offset = first_offset
            self._ongoing[first_offset] = header.producer_id
        return None

    def advance(self, offset: int) -> None:
        """The log was read or written up to `offset`, with batches that have no producer id in between."""
        self.end_offset = max(self.end_offset, offset)

    def _end_transaction(self, header: BatchHeader, offset: int, marker: EndTxnMarker) -> CompletedTxn | None:
        producer = self._producer(header.producer_id)
        first_offset, producer.txn_first_offset = producer.txn_first_offset, NO_OFFSET
        producer.move_to_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        if first_offset < 0:
            return None
        self._ongoing.pop(first_offset, None)
        self._unreplicated[first_offset] = offset
        return CompletedTxn(
            producer_id=header.producer_id,
            first_offset=first_offset,
            last_offset=offset,
            aborted=not marker.commit,
            last_stable_offset=next(iter(self._ongoing), offset + 1),
        )

    def _producer(self, producer_id: int) -> Producer:
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = Producer(producer_id)
        return producer

    # What readers may see

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction began."""
        return next(iter(self._ongoing), None)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Below here every transaction is decided, and its marker below the high watermark.

        The high watermark must not go back except through `restore`.
        """
        if not self._ongoing and not self._unreplicated:
            return high_watermark
        for first, marker in list(self._unreplicated.items()):
            if marker < high_watermark:
                del self._unreplicated[first]
        unstable = min((*self._unreplicated, *self._ongoing), default=high_watermark)
        return min(unstable, high_watermark)

    # Forgetting and remembering

    def expire(self) -> int:
        """Forget producers whose newest batch is too old, unless their transaction is open; how many went."""
        now = self._clock.wall_ms()
        expired = [producer.producer_id for producer in self if self._is_expired(producer, now)]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    def _is_expired(self, producer: Producer, now: int) -> bool:
        return producer.txn_first_offset < 0 and now - producer.last_timestamp >= self._expiry_ms

    def clear(self, offset: int) -> None:
        """Forget everything, snapshots too: the log is empty and goes on at `offset`."""
        self._forget()
        for path in list_snapshots(self._directory).values():
            path.unlink(missing_ok=True)
        self.end_offset, self._snapshot_offset = offset, 0

    def restore(self, log_start: int, log_end: int, *, tidy: bool = True) -> int:
        """Load the newest sound snapshot of a log spanning these offsets; returns the offset to replay from.

        With `tidy`, snapshots outside of the log and damaged ones are deleted.
        """
        self._forget()
        self.end_offset = self._snapshot_offset = log_start
        snapshots = list_snapshots(self._directory)
        for offset, path in list(snapshots.items()):
            if not log_start <= offset <= log_end:
                del snapshots[offset]
                if tidy:
                    path.unlink(missing_ok=True)
        for offset, path in reversed(snapshots.items()):
            try:
                self._load(read_snapshot(path))
            except CorruptSnapshotError as error:
                log.warning("%s: %s", path, error)
                if tidy:
                    path.unlink(missing_ok=True)
            else:
                self.end_offset = self._snapshot_offset = offset
                break
        return self.end_offset

    def take_snapshot(self, *, durable: bool = False) -> Path | None:
        """Write the state down under its end offset, if it has moved since the last snapshot."""
        if self.end_offset <= self._snapshot_offset:
            return None
        entries = (producer.to_snapshot() for producer in self)
        path = write_snapshot(self._directory, self.end_offset, entries, durable=durable)
        self._snapshot_offset = self.end_offset
        return path

    def remove_snapshot(self, offset: int) -> None:
        snapshot_path(self._directory, offset).unlink(missing_ok=True)

    def remove_stray_snapshots(self, base_offsets: Collection[int]) -> None:
        """Delete snapshots that start no segment, but not the newest if it lies above all of them."""
        newest_base = max(base_offsets, default=-1)
        strays = {
            offset: path
            for offset, path in list_snapshots(self._directory).items()
            if offset not in base_offsets
        }
        for offset, path in strays.items():
            if offset < newest_base or offset != max(strays):
                path.unlink(missing_ok=True)

    def _forget(self) -> None:
        self._producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()

    def _load(self, entries: list[SnapshotEntry]) -> None:
        now = self._clock.wall_ms()
        producers = [Producer.from_snapshot(entry) for entry in entries]
        self._producers = {
            producer.producer_id: producer for producer in producers if not self._is_expired(producer, now)
        }
        open_txns = [producer for producer in self if producer.txn_first_offset >= 0]
        open_txns.sort(key=lambda producer: producer.txn_first_offset)
        self._ongoing = {producer.txn_first_offset: producer.producer_id for producer in open_txns}
