"""What compaction leaves of a batch: all of it, some of its records, only its header, or nothing.

Offsets never change. A batch that loses records keeps its first and last offset, and so the sequence numbers of its
producer. A deletion (a record without a value), and a marker whose transaction is gone, stay readable for
delete.retention.ms after cleaning first met them: the batch's base timestamp then holds the time they may go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykafka_broker.log.record_scan import scan_records, varint
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    read_header,
    records_bytes,
    seal,
    verify_crc,
)
from pykafka_broker.protocol.records.compression import Codec, compress
from pykafka_broker.protocol.records.control import parse_control
from pykafka_broker.protocol.records.record import iter_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pykafka_broker.log.cleaned_transactions import CleanedTransactions
    from pykafka_broker.log.offset_map import OffsetMap
    from pykafka_broker.log.producer import Producer
    from pykafka_broker.log.record_scan import Scanned
    from pykafka_broker.protocol.records.batch import BatchHeader

Kept = tuple["BatchHeader", "bytes | bytearray | memoryview"]


@dataclass(frozen=True, slots=True)
class LastBatch:
    """What must stay of a producer that is still known: its newest batch of data, or else its newest marker."""

    last_offset: int | None
    epoch: int


def last_batches(producers: Iterable[Producer]) -> dict[int, LastBatch]:
    """By producer id."""
    return {
        producer.producer_id: LastBatch(
            producer.batches[-1].last_offset if producer.batches else None, producer.epoch
        )
        for producer in producers
    }


@dataclass(frozen=True, slots=True)
class BatchFilter:
    """The rules of one round. Batches are shown to it in log order, by one thread."""

    offsets: OffsetMap
    transactions: CleanedTransactions
    producers: Mapping[int, LastBatch]
    upto: int
    """Where the round ends: the batch in front of it stays, if empty, so that no offset is forgotten."""
    now_ms: int
    delete_retention_ms: int

    def apply(self, header: BatchHeader, batch: memoryview) -> Kept | None:
        """The batch as it is to be written, None if nothing of it is. MalformedError if it is damaged."""
        if header.is_control:
            return self._control(header, batch)
        if self.transactions.is_aborted(header):
            return self._emptied(header)
        if header.base_offset > self.offsets.latest:
            return header, batch
        if header.record_count == 0:
            return self._emptied(header)
        return self._data(header, batch)

    def _control(self, header: BatchHeader, batch: memoryview) -> Kept | None:
        record = next(iter_records(batch), None)
        spent = self.transactions.is_spent(header, parse_control(record) if record else None)
        horizon = delete_horizon(header)
        if record is None or (spent and horizon is not None and horizon <= self.now_ms):
            return self._emptied(header)
        if spent and horizon is None:
            data = body(header, batch)
            return self._with_horizon(header, data, list(scan_records(data, header.record_count)))
        return header, batch

    def _data(self, header: BatchHeader, batch: memoryview) -> Kept | None:
        data = body(header, batch)
        horizon = delete_horizon(header)
        keep_deletes = horizon is None or self.now_ms < horizon
        kept: list[Scanned] = []
        deletes = False
        newest, latest, base = self.offsets.get, self.offsets.latest, header.base_offset
        for record in scan_records(data, header.record_count):
            _, _, _, _, delta, key, has_value = record
            offset = base + delta
            if offset <= latest and (key is None or offset < newest(key) or not (has_value or keep_deletes)):
                continue
            kept.append(record)
            if not has_value:
                deletes = True
        if not kept:
            return self._emptied(header)
        if deletes and horizon is None:
            return self._with_horizon(header, data, kept)
        if len(kept) == header.record_count:
            return header, batch
        return _rebuilt(header, b"".join(_runs(data, kept)), kept, header.base_timestamp)

    def _emptied(self, header: BatchHeader) -> Kept | None:
        """Only the header, where the batch is the last word of its producer or of the round."""
        if not self._is_last_of_producer(header) and header.next_offset != self.upto:
            return None
        bare = header._replace(
            attributes=header.attributes & ~DELETE_HORIZON_BIT, base_timestamp=NO_TIMESTAMP, record_count=0
        )
        return _sealed(bare, b"", Codec.NONE)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_offset is not None:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _with_horizon(self, header: BatchHeader, data: bytes, kept: list[Scanned]) -> Kept:
        """Says when the deletions may go. Timestamps count from the base timestamp: each is written anew."""
        horizon = self.now_ms + self.delete_retention_ms
        shift = header.base_timestamp - horizon
        parts: list[bytes] = []
        for _, rest, end, timestamp, _, _, _ in kept:
            moved = varint(timestamp + shift)
            parts += (varint(1 + len(moved) + end - rest), b"\0", moved, data[rest:end])
        moved_header = header._replace(
            attributes=header.attributes | DELETE_HORIZON_BIT, base_timestamp=horizon
        )
        return _rebuilt(moved_header, b"".join(parts), kept, header.base_timestamp)


def delete_horizon(header: BatchHeader) -> int | None:
    """When the deletions in a batch may go; None if cleaning has met none there."""
    return header.base_timestamp if header.attributes & DELETE_HORIZON_BIT else None


def body(header: BatchHeader, batch: memoryview) -> bytes:
    """The records of a batch, decompressed. Damage is refused here: a new checksum would hide it for ever."""
    if not verify_crc(batch, 0, header):
        raise MalformedError(f"the batch at offset {header.base_offset} fails its checksum")
    return bytes(records_bytes(batch, 0, header))


def _runs(data: bytes, kept: list[Scanned]) -> list[bytes]:
    """The bytes of the kept records, neighbours in one piece."""
    runs = []
    first, upto = kept[0][0], kept[0][0]
    for start, _, end, *_ in kept:
        if start != upto:
            runs.append(data[first:upto])
            first = start
        upto = end
    runs.append(data[first:upto])
    return runs


def _rebuilt(header: BatchHeader, data: bytes, kept: list[Scanned], base_timestamp: int) -> Kept:
    """A batch of the kept records, whose timestamps were read as counted from `base_timestamp`."""
    newest = header.max_timestamp
    if not header.attributes & LOG_APPEND_TIME_BIT:
        newest = base_timestamp + max(record[3] for record in kept)
    codec = Codec(header.attributes & CODEC_MASK)
    return _sealed(
        header._replace(record_count=len(kept), max_timestamp=newest), compress(codec, data), codec
    )


def _sealed(header: BatchHeader, packed: bytes, codec: Codec) -> Kept:
    batch = seal(header, packed, codec)
    return read_header(batch), batch
