"""One producer in one log: its epoch, its newest batches, its open transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pykafka_broker.log.producer_snapshot import SnapshotEntry
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    advance_sequence,
)

if TYPE_CHECKING:
    from pykafka_broker.protocol.records.batch import BatchHeader

BATCHES_KEPT = 5
"""As many as an idempotent producer may have in flight."""
NO_OFFSET = -1


class BatchMeta(NamedTuple):
    """A batch that is in the log, as far as a duplicate of it needs to be answered."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class Producer:
    """One producer id in one log. Owned by ProducerState."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "producer_id", "txn_first_offset")

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_PRODUCER_EPOCH
        self.batches: tuple[BatchMeta, ...] = ()
        self.coordinator_epoch = -1
        self.last_timestamp = NO_TIMESTAMP
        self.txn_first_offset = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def find_duplicate(self, header: BatchHeader) -> BatchMeta | None:
        """The remembered batch that has the same epoch and sequences."""
        if header.producer_epoch == self.epoch:
            first, last = header.base_sequence, header.last_sequence
            for batch in self.batches:
                if batch.first_sequence == first and batch.last_sequence == last:
                    return batch
        return None

    def check_epoch(self, header: BatchHeader) -> None:
        if header.producer_epoch < self.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id}: epoch {header.producer_epoch} is behind {self.epoch}",
            )

    def check_sequence(self, header: BatchHeader) -> None:
        expected = 0
        if header.producer_epoch == self.epoch and self.last_sequence != NO_SEQUENCE:
            expected = advance_sequence(self.last_sequence, 1)
        if header.base_sequence != expected:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}: sequence {header.base_sequence} where {expected} comes next "
                f"(epoch {header.producer_epoch}, known epoch {self.epoch})",
            )

    def add(self, header: BatchHeader, first_offset: int) -> None:
        """Remember a batch of data that is in the log at `first_offset`."""
        self.move_to_epoch(header.producer_epoch)
        batch = BatchMeta(
            header.base_sequence,
            header.last_sequence,
            first_offset,
            first_offset + header.last_offset_delta,
            header.max_timestamp,
        )
        self.batches = (*self.batches[-BATCHES_KEPT + 1 :], batch)
        self.last_timestamp = header.max_timestamp

    def move_to_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch, self.batches = epoch, ()

    def to_snapshot(self) -> SnapshotEntry:
        last = self.batches[-1] if self.batches else None
        return SnapshotEntry(
            producer_id=self.producer_id,
            epoch=self.epoch,
            last_sequence=last.last_sequence if last else NO_SEQUENCE,
            last_offset=last.last_offset if last else NO_OFFSET,
            offset_delta=last.last_offset - last.first_offset if last else 0,
            timestamp=self.last_timestamp,
            coordinator_epoch=self.coordinator_epoch,
            txn_first_offset=self.txn_first_offset,
        )

    @classmethod
    def from_snapshot(cls, entry: SnapshotEntry) -> Producer:
        producer = cls(entry.producer_id)
        producer.epoch = entry.epoch
        producer.coordinator_epoch = entry.coordinator_epoch
        producer.last_timestamp = entry.timestamp
        producer.txn_first_offset = entry.txn_first_offset
        if entry.last_offset >= 0:
            delta = entry.offset_delta
            first_sequence = NO_SEQUENCE  # as in a transaction's offset commits
            if entry.last_sequence != NO_SEQUENCE:
                first_sequence = advance_sequence(entry.last_sequence, -delta)
            batch = BatchMeta(
                first_sequence,
                entry.last_sequence,
                entry.last_offset - delta,
                entry.last_offset,
                entry.timestamp,
            )
            producer.batches = (batch,)
        return producer
