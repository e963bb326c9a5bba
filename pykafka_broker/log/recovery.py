"""How a log comes back from disk: leftovers put away, a torn tail cut off, indexes and producer state made whole.

After a clean stop only figures are read. After any other, every batch from the recovery point on is checked, the
first damaged one and all behind it go, and the indexes of what was checked are written anew."""

from __future__ import annotations

import logging
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pykafka_broker.log.checkpoints import CheckpointError
from pykafka_broker.log.index_file import CorruptIndexError
from pykafka_broker.log.leader_epochs import LeaderEpochs
from pykafka_broker.log.leftovers import base_offset_of, put_away_leftovers
from pykafka_broker.log.log_file import LENGTH_PREFIX, LogFile
from pykafka_broker.log.producer_replay import rebuild_producers, rebuild_txn_index, replay_batch
from pykafka_broker.log.producer_state import ProducerState
from pykafka_broker.log.segment import LOG_SUFFIX, Segment, segment_path
from pykafka_broker.log.segments import Segments
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, MalformedError
from pykafka_broker.protocol.records.batch import MAGIC, MAGIC_AT, verify_crc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pykafka_broker.clock import Clock
    from pykafka_broker.log.log_config import LogConfig
    from pykafka_broker.protocol.records.batch import BatchHeader

log = logging.getLogger(__name__)

_EPOCHS_FILE: Final = "leader-epoch-checkpoint"
_SCAN_BLOCK: Final = 1024 * 1024
_LEGACY_LEAST: Final = 14  # checksum, magic, attributes, and the lengths of key and value


@dataclass(frozen=True, slots=True)
class Loaded:
    """A log as it was found: at least one segment, the last of them active."""

    segments: Segments
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    leader_epochs: LeaderEpochs
    producers: ProducerState


def load(
    directory: Path,
    config: LogConfig,
    clock: Clock,
    *,
    recovery_point: int,
    clean: bool,
    log_start_offset: int,
    producer_expiry_ms: int,
) -> Loaded:
    """The log in `directory`, repaired as far as it has to be. OSError if the disk fails, KafkaError for a log in a
    format older than batches."""
    now = clock.wall_ms()
    segments = [_open_segment(directory, base, config, now) for base in put_away_leftovers(directory)]
    _join(segments)
    sound = len(segments) if clean else _first_unflushed(segments, recovery_point)
    _mend_txn_indexes(directory, clock, segments[:sound])
    epochs = open_epochs(directory)
    producers = ProducerState(directory, clock, expiry_ms=producer_expiry_ms)
    if segments and clean and not segments[-1].settle_end():
        clean, recovery_point = False, segments[-1].base_offset
    if segments and not clean:
        _recover_unflushed(segments, epochs, producers, recovery_point)
        _join(segments)
    if segments and segments[-1].next_offset < log_start_offset:
        log.warning("%s ends before its start offset %d: emptied", directory, log_start_offset)
        _remove(segments, producers)
        segments.clear()
    if not segments:
        segments.append(Segment.create(directory, log_start_offset, config, now))
        epochs.clear()
        producers.clear(log_start_offset)
    start, end = max(log_start_offset, segments[0].base_offset), segments[-1].next_offset
    epochs.truncate_from_start(start)
    epochs.truncate_from_end(end)
    if clean:
        rebuild_producers(producers, segments, end, clean=True)
    producers.remove_stray_snapshots([segment.base_offset for segment in segments])
    for segment in segments:
        segment.release()
    return Loaded(
        Segments(segments), start, end, end if clean else min(recovery_point, end), epochs, producers
    )


def _open_segment(directory: Path, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
    """A segment whose indexes by offset and time are there and plausible, rebuilt where they were not. Its files are
    closed again: a log may have more segments than a process may have files."""
    path = segment_path(directory, base_offset, LOG_SUFFIX)
    segment = Segment(directory, base_offset, config, size=path.stat().st_size, created_ms=now_ms)
    try:
        segment.check_indexes()
    except CorruptIndexError as error:
        log.warning("indexes are rebuilt: %s", error)
        segment.reset_indexes()
        for position, header in segment.log.headers(0, _SCAN_BLOCK):
            if not _fits(segment, header, None):
                break
            segment.note_recovered(position, header)
        segment.finish()
        segment.flush()  # what lies below the recovery point is not flushed again
    _refuse_legacy(segment, 0)
    segment.release()
    return segment


def _join(segments: Sequence[Segment]) -> None:
    """A segment reaches to the next one, even if the last batches before that were compacted away."""
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset


def _mend_txn_indexes(directory: Path, clock: Clock, segments: Sequence[Segment]) -> None:
    for segment in segments:
        try:
            segment.txn_index.sanity_check(segment.base_offset)
        except CorruptIndexError as error:
            log.warning("transaction index is rebuilt: %s", error)
            rebuild_txn_index(ProducerState(directory, clock), segments, segment)
            segment.flush()


def open_epochs(directory: Path) -> LeaderEpochs:
    """The leader epochs of the log in `directory`, read from its batches if their checkpoint is damaged."""
    path = directory / _EPOCHS_FILE
    try:
        return LeaderEpochs(path)
    except CheckpointError as error:
        log.warning("leader epochs are read from the batches again: %s", error)
        path.unlink()
    epochs = LeaderEpochs(path)
    for file in sorted(directory.glob(f"*{LOG_SUFFIX}")):
        if base_offset_of(file) is not None:
            for _, header in LogFile(file, file.stat().st_size).headers(0, _SCAN_BLOCK):
                _note_epoch(epochs, header)
    return epochs


def _note_epoch(epochs: LeaderEpochs, header: BatchHeader) -> None:
    if header.partition_leader_epoch > epochs.latest:
        epochs.assign(header.partition_leader_epoch, header.base_offset)


def _first_unflushed(segments: Sequence[Segment], recovery_point: int) -> int:
    return max(bisect_right([segment.base_offset for segment in segments], recovery_point) - 1, 0)


def _recover_unflushed(
    segments: list[Segment],
    epochs: LeaderEpochs,
    producers: ProducerState,
    recovery_point: int,
) -> None:
    """Checks the segments the disk may not wholly have; behind the first damage nothing is kept."""
    first = _first_unflushed(segments, recovery_point)
    rebuild_producers(producers, segments[:first], segments[first].base_offset)
    for index in range(first, len(segments)):
        segment = segments[index]
        following = segments[index + 1].base_offset if index + 1 < len(segments) else None
        if not _recover_segment(segment, epochs, producers, following):
            lost = segments[index + 1 :]
            if lost:
                log.warning(
                    "%s: %d segments behind a damaged batch are removed", segment.directory, len(lost)
                )
            _remove(lost, producers)
            del segments[index + 1 :]
            break
    producers.advance(segments[-1].next_offset)
    producers.take_snapshot()


def _recover_segment(
    segment: Segment, epochs: LeaderEpochs, producers: ProducerState, following: int | None
) -> bool:
    """Checks every batch and writes the indexes anew; False if something had to be cut off."""
    segment.reset_indexes()
    segment.txn_index.reset()
    producers.advance(segment.base_offset)
    producers.take_snapshot()
    good = 0
    for position, header, batch in segment.log.batches(0, _SCAN_BLOCK):
        if not _fits(segment, header, following) or not verify_crc(batch, 0, header):
            break
        if header.producer_id >= 0:
            try:
                replay_batch(producers, segment, header, header.base_offset, batch)
            except MalformedError as error:
                log.warning("%s at %d: %s", segment.log.path, position, error)
                break
        segment.note_recovered(position, header)
        _note_epoch(epochs, header)
        good = position + header.size
    if good < segment.size:
        _refuse_legacy(segment, good)
        log.warning("%s: %d bytes cut off after byte %d", segment.log.path, segment.size - good, good)
        segment.log.truncate(good)
        segment.finish()
        return False
    segment.finish()
    return True


def _fits(segment: Segment, header: BatchHeader, following: int | None) -> bool:
    """Offsets rise within the segment and stay below the next one."""
    return segment.next_offset <= header.base_offset <= header.last_offset <= segment.max_last_offset and (
        following is None or header.last_offset < following
    )


def _refuse_legacy(segment: Segment, position: int) -> None:
    """A message of the formats before batches is no damage: it must not be cut off, only not be served."""
    start = segment.log.read(position, LENGTH_PREFIX + 5)
    if len(start) < LENGTH_PREFIX + 5 or not 0 <= start[MAGIC_AT] < MAGIC:
        return
    length, crc = int.from_bytes(start[8:12], "big"), int.from_bytes(start[12:16], "big")
    body = segment.log.read(position + LENGTH_PREFIX, min(length, segment.size - position))
    # A file that grew before its bytes came is full of noughts, whose checksum is right.
    if len(body) == length >= _LEGACY_LEAST and zlib.crc32(body[4:]) == crc:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"{segment.log.path} holds messages of magic {start[MAGIC_AT]}; let Apache Kafka convert them.",
        )


def _remove(segments: Sequence[Segment], producers: ProducerState) -> None:
    for segment in segments:
        for path in segment.mark_deleted():
            path.unlink()
        producers.remove_snapshot(segment.base_offset)
