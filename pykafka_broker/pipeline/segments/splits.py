"""What one Spark task reads: a stretch of one segment file, between offsets."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.pipeline.segments.columns import decode
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import HEADER_SIZE, iter_headers, read_header, verify_crc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafka_broker.log.txn_index import AbortedTxn
    from pykafka_broker.pipeline.segments.columns import Columns
    from pykafka_broker.pipeline.segments.files import Partition
    from pykafka_broker.protocol.records.batch import BatchHeader

READ_BYTES = 4 << 20
"""Asked of the file at once."""


@dataclass(frozen=True)
class Split(InputPartition):
    """Bytes `begin` to `end` of a segment, of which offsets `first` to `upto` (exclusive) are wanted."""

    topic: str
    partition: int
    path: str
    begin: int
    end: int
    first: int
    upto: int
    aborted: tuple[AbortedTxn, ...] = ()

    def columns(self, *, headers: bool) -> Iterator[Columns]:
        """The records wanted. PipelineError names the file and the byte where it is damaged."""
        for at, chunk, batches in self._chunks():
            wanted = [(pos, header) for pos, header in batches if self._wants(header)]
            for pos, header in wanted:
                if not verify_crc(chunk, pos, header):
                    raise PipelineError(f"{self.path}: the batch at byte {at + pos} fails its checksum")
            if not wanted:
                continue
            try:
                yield decode(chunk, wanted, headers=headers)
            except MalformedError as error:
                raise PipelineError(f"{self.path}: behind byte {at + wanted[0][0]}: {error}") from error

    def _wants(self, header: BatchHeader) -> bool:
        if header.is_control or header.record_count <= 0:
            return False
        if header.next_offset <= self.first or header.base_offset >= self.upto:
            return False
        return not (header.is_transactional and self._aborted(header))

    def _aborted(self, header: BatchHeader) -> bool:
        return any(
            txn.producer_id == header.producer_id
            and txn.first_offset <= header.base_offset <= txn.last_offset
            for txn in self.aborted
        )

    def _chunks(self) -> Iterator[tuple[int, bytes, list[tuple[int, BatchHeader]]]]:
        """(position, bytes, batches in them): whole batches, at least one in each."""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            at = self.begin
            while at < self.end:
                chunk = self._read(fd, at)
                batches = list(iter_headers(chunk))
                if not batches:
                    raise PipelineError(f"{self.path}: cut short at byte {at}")
                yield at, chunk, batches
                last, header = batches[-1]
                at += last + header.size
        except MalformedError as error:
            raise PipelineError(f"{self.path}: behind byte {at}: {error}") from error
        finally:
            os.close(fd)

    def _read(self, fd: int, at: int) -> bytes:
        chunk = os.pread(fd, min(READ_BYTES, self.end - at), at)
        if len(chunk) >= HEADER_SIZE and (size := read_header(chunk).size) > len(chunk):
            chunk = os.pread(fd, min(size, self.end - at), at)
        return chunk


def plan(
    partition: Partition, first: int, upto: int, last_position: int, split_bytes: int, *, committed: bool
) -> list[Split]:
    """Splits of about `split_bytes`, at most half as much again: offsets `first` to `upto` (exclusive).

    `last_position` is where the last segment ends: behind it a batch may still be on its way.
    """
    if first >= upto:
        return []
    aborted = tuple(partition.aborted(first, upto)) if committed else ()
    segments = partition.segments()
    splits: list[Split] = []
    for segment, follower in zip(segments, [*segments[1:], None], strict=True):
        if segment.base_offset >= upto or (follower is not None and follower.base_offset <= first):
            continue
        size = last_position if follower is None else segment.path.stat().st_size
        begins = _cut(segment.index(), first, upto, split_bytes)
        if len(begins) > 1 and size - begins[-1] < split_bytes // 2:
            begins.pop()  # a task costs as much as reading some ten megabytes: no small one for what is left over
        for begin, end in zip(begins, [*begins[1:], size], strict=True):
            if begin < end:
                splits.append(
                    Split(
                        partition.topic, partition.number, str(segment.path), begin, end, first, upto, aborted
                    )
                )
    return splits


def _cut(index: list[tuple[int, int]], first: int, upto: int, split_bytes: int) -> list[int]:
    """Positions of batches to begin at, `split_bytes` apart or more."""
    begins = [0]
    last_offset = -1
    for offset, position in index:
        if offset <= first:
            begins = [position]  # an entry names the batch its offset lies in, or a later one's predecessor
        elif last_offset + 1 >= upto:
            break  # the batches from here on lie behind what is wanted
        elif position - begins[-1] >= split_bytes:
            begins.append(position)
        last_offset = offset
    return begins


def log_directories(option: str) -> list[Path]:
    return [Path(part.strip()) for part in option.split(",") if part.strip()]
