"""One round of cleaning one log: find the newest record of every key in the dirty part, then copy what is left of the
segments into new ones. This half runs in a thread and only reads the log; the event loop swaps its results in."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pykafka_broker.log.batch_filter import BatchFilter, LastBatch, body
from pykafka_broker.log.cleaned_transactions import CleanedTransactions
from pykafka_broker.log.compaction import group_segments
from pykafka_broker.log.leftovers import CLEANED_SUFFIX
from pykafka_broker.log.log_file import LogFile
from pykafka_broker.log.offset_map import OffsetMap
from pykafka_broker.log.segment import LOG_SUFFIX, SEGMENT_SUFFIXES, TXN_INDEX_SUFFIX, Segment
from pykafka_broker.log.txn_index import TxnIndex
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.control import parse_control
from pykafka_broker.protocol.records.record import iter_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pykafka_broker.log.compaction import Survey
    from pykafka_broker.log.log_config import LogConfig
    from pykafka_broker.log.pace import Pace
    from pykafka_broker.log.txn_index import AbortedTxn
    from pykafka_broker.protocol.records.batch import BatchHeader

_WRITE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """What one round may use."""

    map_bytes: int = 128 * 1024 * 1024
    map_load_factor: float = 0.9
    read_bytes: int = 512 * 1024


class CleaningRound:
    """Owner of what one round knows; used by one thread at a time, first `begin`, then `clean` for every group.

    Everything may raise FileNotFoundError when the log is being deleted or cut meanwhile, MalformedError for a damaged
    batch, and what `pace` raises to stop it."""

    def __init__(
        self,
        segments: Sequence[Segment],
        plan: Survey,
        config: LogConfig,
        settings: CleanerSettings,
        pace: Pace,
        now_ms: int,
    ) -> None:
        """A round over `segments`, all of the log, as far as `plan` says."""
        self._segments = segments
        self._plan = plan
        self._config = config
        self._settings = settings
        self._pace = pace
        self._now_ms = now_ms
        self._offsets = OffsetMap(plan.first_dirty_offset, settings.map_bytes, settings.map_load_factor)
        self._transactions = CleanedTransactions(())

    @property
    def end_offset(self) -> int:
        """Where the log is dirty from when the round is done."""
        return self._offsets.latest + 1

    def begin(self) -> list[list[Segment]]:
        """Finds the newest record of every key; gives the segments to clean, in groups that become one segment each."""
        aborted = [txn for segment in self._segments for txn in _aborted_in(segment)]
        self._index([txn for txn in aborted if txn.last_offset >= self._plan.first_dirty_offset])
        self._transactions = CleanedTransactions(aborted)
        involved = [segment for segment in self._segments if segment.base_offset < self.end_offset]
        return group_segments(involved, self._plan.upto, self._config) if involved else []

    def _index(self, aborted: list[AbortedTxn]) -> None:
        transactions = CleanedTransactions(aborted)
        start, upto = self._plan.first_dirty_offset, self._plan.upto
        for segment in self._segments:
            if segment.next_offset <= start or segment.base_offset >= upto:
                continue
            for header, batch in self._batches(segment):
                if header.last_offset < start:
                    continue
                if header.is_control:
                    record = next(iter_records(batch), None)
                    transactions.is_spent(header, parse_control(record) if record else None)
                elif not transactions.is_aborted(header) and not self._offsets.add_batch(
                    header, body(header, batch)
                ):
                    return
                self._offsets.advance(header.last_offset)
            self._offsets.advance(segment.next_offset - 1)

    def clean(self, group: list[Segment], producers: Mapping[int, LastBatch]) -> Segment:
        """What is left of a group, as one segment on disk that is not part of the log yet. Groups come in log order."""
        cleaned = Segment.create(
            group[0].directory, group[0].base_offset, self._config, group[0].created_ms, CLEANED_SUFFIX
        )
        try:
            self._copy(group, cleaned, producers)
        except BaseException:
            discard(cleaned)
            raise
        return cleaned

    def _copy(self, group: list[Segment], cleaned: Segment, producers: Mapping[int, LastBatch]) -> None:
        rules = BatchFilter(
            self._offsets,
            self._transactions,
            producers,
            self._plan.upto,
            self._now_ms,
            self._config.delete_retention_ms,
        )
        output = _Output(cleaned, self._pace)
        for segment in group:
            for header, batch in self._batches(segment):
                kept = rules.apply(header, batch)
                if kept is not None:
                    output.add(*kept)
        output.flush()
        for txn in self._transactions.retained:
            cleaned.note_abort(txn)
        self._transactions.retained.clear()
        cleaned.finish()
        cleaned.flush()
        cleaned.release()
        # Where records have no timestamps, the age of the file decides about retention.
        modified = group[-1].path(LOG_SUFFIX).stat().st_mtime_ns
        os.utime(cleaned.path(LOG_SUFFIX), ns=(modified, modified))

    def _batches(self, segment: Segment) -> Iterator[tuple[BatchHeader, memoryview]]:
        file = LogFile(segment.path(LOG_SUFFIX), segment.size)
        position = 0
        for position, header, batch in file.batches(0, self._settings.read_bytes):
            self._pace.spend(header.size)
            yield header, batch
            position += header.size
        if position != segment.size:
            raise MalformedError(f"{file.path}: no batch at byte {position}")


class _Output:
    """Owner of the batches on their way into a cleaned segment: written in large pieces, indexed one by one."""

    __slots__ = ("_buffer", "_pace", "_segment", "_waiting")

    def __init__(self, segment: Segment, pace: Pace) -> None:
        self._segment = segment
        self._pace = pace
        self._buffer = bytearray()
        self._waiting: list[BatchHeader] = []

    def add(self, header: BatchHeader, batch: bytes | bytearray | memoryview) -> None:
        self._buffer += batch
        self._waiting.append(header)
        if len(self._buffer) >= _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        self._pace.spend(len(self._buffer))
        position = self._segment.log.append(self._buffer)
        for header in self._waiting:
            self._segment.note_recovered(position, header)
            position += header.size
        self._buffer.clear()
        self._waiting.clear()


def discard(cleaned: Segment) -> None:
    """Removes the files of a cleaned segment nobody wants any more."""
    cleaned.release()
    for suffix in SEGMENT_SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            cleaned.path(suffix).unlink()


def _aborted_in(segment: Segment) -> list[AbortedTxn]:
    return TxnIndex(segment.path(TXN_INDEX_SUFFIX)).all()
