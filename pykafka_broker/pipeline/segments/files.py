"""The files of a partition as an outsider finds them: segments, indexes, aborted transactions, where the log ends.

A broker may write to them meanwhile. Segments only grow at their end, and a batch counts once it is wholly there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pykafka_broker.log.checkpoints import CheckpointError, read_offsets
from pykafka_broker.log.index_file import CorruptIndexError
from pykafka_broker.log.producer_snapshot import CorruptSnapshotError, list_snapshots, read_snapshot
from pykafka_broker.log.txn_index import TxnIndex
from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.protocol.records.batch import HEADER_SIZE, MAGIC, read_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pykafka_broker.log.txn_index import AbortedTxn
    from pykafka_broker.protocol.records.batch import BatchHeader

_DIRECTORY = re.compile(r"(.+)-(\d+)")
_START_OFFSETS = "log-start-offset-checkpoint"


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """One `.log` file."""

    base_offset: int
    path: Path

    def index(self) -> list[tuple[int, int]]:
        """(offset, position) of the entries of its offset index; the room reserved behind them is left out."""
        try:
            data = self.path.with_suffix(".index").read_bytes()
        except FileNotFoundError:
            return []
        entries = np.frombuffer(data, ">i4", len(data) // 8 * 2).reshape(-1, 2)
        rising = np.diff(entries[:, 1], prepend=0) > 0
        count = len(rising) if rising.all() else int(rising.argmin())
        return [(self.base_offset + int(offset), int(at)) for offset, at in entries[:count]]

    def batches(self, at: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of every batch that is wholly there, without its records."""
        with self.path.open("rb", buffering=0) as file:
            size = file.seek(0, 2)
            while at + HEADER_SIZE <= size:
                file.seek(at)
                header = read_header(file.read(HEADER_SIZE))
                if header.magic != MAGIC or header.size < HEADER_SIZE or at + header.size > size:
                    return
                yield at, header
                at += header.size


@dataclass(frozen=True, slots=True)
class Partition:
    """The directory of a partition."""

    topic: str
    number: int
    path: Path

    def segments(self) -> list[Segment]:
        """By offset. PipelineError if there are none."""
        found = sorted(
            Segment(int(path.stem), path) for path in self.path.glob("*.log") if path.stem.isdecimal()
        )
        if not found:
            raise PipelineError(f"{self.path}: no log segments")
        return found

    def first_offset(self) -> int:
        """Where the log starts: at its first segment, or where DeleteRecords moved the start to."""
        try:
            moved = read_offsets(self.path.parent / _START_OFFSETS)
        except CheckpointError:
            moved = {}  # the broker, too, falls back to the segments
        return max(self.segments()[0].base_offset, moved.get((self.topic, self.number), 0))

    def aborted(self, first: int, upto: int) -> list[AbortedTxn]:
        """The aborted transactions that touch offsets `first` to `upto` (exclusive)."""
        found: list[AbortedTxn] = []
        for segment in self.segments():
            try:
                aborted, _ = TxnIndex(segment.path.with_suffix(".txnindex")).aborted(first, upto)
            except CorruptIndexError as error:
                raise PipelineError(str(error)) from error
            found += aborted
        return found


@dataclass(slots=True)
class Tail:
    """Where a partition ends, followed from look to look. Owned by the reader that looks."""

    partition: Partition
    end_offset: int = 0
    position: int = 0
    """Behind the last whole batch of the last segment."""
    _segment: Segment | None = None
    _open: dict[int, int] = field(default_factory=dict)
    """Producers with a transaction that has not ended, and where it begins."""

    def advance(self) -> None:
        """Look at what was appended since the last look."""
        segments = self.partition.segments()
        if self._segment not in segments:
            self._begin(segments)
        assert self._segment is not None
        for segment in segments[segments.index(self._segment) :]:
            if segment != self._segment:
                self._segment, self.position, self.end_offset = segment, 0, segment.base_offset
            for at, header in segment.batches(self.position):
                self._note(header)
                self.position = at + header.size
                self.end_offset = header.next_offset

    @property
    def last_stable_offset(self) -> int:
        """The first offset of a transaction that has not ended; the end where there is none."""
        return min(self._open.values(), default=self.end_offset)

    def _begin(self, segments: list[Segment]) -> None:
        """At the last snapshot of producers that does not lie behind the last segment's start."""
        self._segment, self._open = segments[0], {}
        for offset, path in reversed(list_snapshots(self.partition.path).items()):
            index = bisect_right([segment.base_offset for segment in segments], offset) - 1
            if index < 0 or segments[index].base_offset != offset:
                continue
            try:
                producers = read_snapshot(path)
            except (CorruptSnapshotError, FileNotFoundError):
                continue
            self._segment = segments[index]
            self._open = {p.producer_id: p.txn_first_offset for p in producers if p.txn_first_offset >= 0}
            break
        self.position, self.end_offset = 0, self._segment.base_offset

    def _note(self, header: BatchHeader) -> None:
        if header.is_control:
            self._open.pop(header.producer_id, None)
        elif header.is_transactional:
            self._open.setdefault(header.producer_id, header.base_offset)


def find_partitions(
    log_dirs: Iterable[Path], topics: Iterable[str] | None, pattern: str | None = None
) -> list[Partition]:
    """The partitions of these topics, or of those whose whole name matches. PipelineError if a topic is missing."""
    found: dict[tuple[str, int], Partition] = {}
    for log_dir in log_dirs:
        if not log_dir.is_dir():
            raise PipelineError(f"{log_dir}: no such log directory")
        for path in log_dir.iterdir():
            match = _DIRECTORY.fullmatch(path.name)
            if match is not None and path.is_dir():
                found[match[1], int(match[2])] = Partition(match[1], int(match[2]), path)
    if topics is None:
        wanted = re.compile(pattern or "")
        return [found[place] for place in sorted(found) if wanted.fullmatch(place[0])]
    names = set(topics)
    if missing := names - {topic for topic, _ in found}:
        raise PipelineError(f"no topic {', '.join(sorted(missing))} in {', '.join(map(str, log_dirs))}")
    return [found[place] for place in sorted(found) if place[0] in names]
