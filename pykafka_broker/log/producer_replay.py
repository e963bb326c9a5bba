"""Producer state kept in step with the log: fed by every batch that is appended, rebuilt from snapshot and log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from pykafka_broker.log.producer_snapshot import list_snapshots
from pykafka_broker.log.txn_index import AbortedTxn
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.control import read_marker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafka_broker.log.producer import BatchMeta
    from pykafka_broker.log.producer_state import CompletedTxn, ProducerState
    from pykafka_broker.log.segment import Segment
    from pykafka_broker.protocol.records.batch import BatchHeader
    from pykafka_broker.protocol.records.compression import Bytes

log = logging.getLogger(__name__)

_SCAN_BLOCK: Final = 64 * 1024


def check_producer(
    producers: ProducerState, header: BatchHeader, batch: Bytes, *, from_client: bool
) -> BatchMeta | None:
    """The earlier batch that this one repeats, if it does. KafkaError if its producer must not write it."""
    if from_client or not header.is_control:
        return producers.check(header, from_client=from_client)
    marker = read_marker(batch)
    if marker is not None:
        producers.check_marker(header, marker)
    return None


def replay_batch(
    producers: ProducerState, segment: Segment, header: BatchHeader, first_offset: int, batch: Bytes
) -> None:
    """Takes in a producer's batch as it lies in `segment`; an abort is noted in the segment's transaction index.

    MalformedError for a control batch that makes no sense."""
    if not header.is_control:
        producers.update(header, first_offset)
        return
    completed = producers.update(header, first_offset, read_marker(batch))
    if completed is not None and completed.aborted:
        _note_abort(segment, completed)


def _note_abort(segment: Segment, txn: CompletedTxn) -> None:
    segment.note_abort(AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset))


def rebuild_producers(
    producers: ProducerState, segments: Sequence[Segment], end: int, *, clean: bool = False
) -> None:
    """Brings the state to offset `end`: from the newest snapshot, then from the headers of the batches behind it.

    What was deleted from the log but still lies in its first segment counts. After a clean stop without any snapshot
    there were no producers, and nothing is scanned."""
    scan = not clean or bool(segments and list_snapshots(segments[-1].directory))
    position = producers.restore(segments[0].base_offset if segments else end, end)
    for segment in segments:
        if scan and segment.next_offset > position and segment.base_offset < end and segment.size:
            _replay_segment(producers, segment, position, end)
    producers.advance(end)
    producers.take_snapshot()


def rebuild_txn_index(producers: ProducerState, segments: Sequence[Segment], damaged: Segment) -> None:
    """Writes the transaction index of one of `segments` anew. `producers` is a state of its own, spent afterwards."""
    position = producers.restore(0, damaged.base_offset, tidy=False)
    for segment in segments:
        if segment.base_offset < damaged.base_offset and segment.next_offset > position:
            _replay_segment(producers, segment, position, damaged.base_offset)
    damaged.txn_index.reset()
    for at, header in damaged.log.headers(0, _SCAN_BLOCK):
        if header.producer_id >= 0:
            batch = damaged.log.read(at, header.size) if header.is_control else b""
            try:
                replay_batch(producers, damaged, header, header.base_offset, batch)
            except MalformedError as error:
                log.warning("%s at %d: %s", damaged.log.path, at, error)


def _replay_segment(producers: ProducerState, segment: Segment, start: int, end: int) -> None:
    found = segment.locate(start)
    if found is None:
        return
    for position, header in segment.log.headers(found[0], _SCAN_BLOCK):
        if header.base_offset >= end:
            return
        if header.producer_id < 0 or header.base_offset < start:
            continue
        try:
            marker = read_marker(segment.log.read(position, header.size)) if header.is_control else None
        except MalformedError as error:
            log.warning("%s at %d: %s", segment.log.path, position, error)
            continue
        producers.update(header, header.base_offset, marker)
