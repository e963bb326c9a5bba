"""The log of one partition: batches appended at the end, read by offset, found by time, let go of at the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pykafka_broker.log import recovery
from pykafka_broker.log.checkpoints import sync_directory
from pykafka_broker.log.compaction import Survey, survey
from pykafka_broker.log.leftovers import SWAP_SUFFIX
from pykafka_broker.log.log_config import LogConfig, TimestampType
from pykafka_broker.log.log_dir import DELETE_SUFFIX, set_aside_name
from pykafka_broker.log.log_file import Slice
from pykafka_broker.log.log_reader import LogReader
from pykafka_broker.log.offline import Availability, StorageError
from pykafka_broker.log.producer_replay import check_producer, rebuild_producers, replay_batch
from pykafka_broker.log.recovery_point import RecoveryPoint
from pykafka_broker.log.retention import PendingDeletes, count_deletable
from pykafka_broker.log.roll_policy import RollPolicy
from pykafka_broker.log.segment import Found, Segment
from pykafka_broker.log.validation import (
    Buffer,
    check_client_batch,
    check_fetched_batches,
    check_one_batch,
    conform,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import assign

if TYPE_CHECKING:
    from pathlib import Path

    from pykafka_broker.clock import Clock
    from pykafka_broker.log.producer import BatchMeta
    from pykafka_broker.log.recovery import Loaded

__all__ = ["Appended", "Found", "PartitionLog", "Slice", "StorageError"]


class Appended(NamedTuple):
    """Where a batch came to lie, or lies since an earlier attempt of the same producer."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int = -1
    duplicate: bool = False


class PartitionLog:
    """One partition on disk. Its owner is the Partition that holds it; everything belongs to the event loop's thread
    except `flush` and `purge`, which may run in another."""

    def __init__(self, directory: Path, config: LogConfig, clock: Clock, loaded: Loaded) -> None:
        self.directory = directory
        self.topic, _, partition = directory.name.rpartition("-")
        self.partition = int(partition)
        self.config = config
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.leader_epochs = loaded.leader_epochs
        self.producers = loaded.producers
        self.first_dirty_offset: int | None = None  # up to where it is compacted; None: never was
        self._clock = clock
        self._segments = loaded.segments
        self._size = sum(segment.size for segment in loaded.segments)
        self._reader = LogReader(loaded.segments)
        self._pending = PendingDeletes()
        self._disk = Availability(directory)
        self._closed = False
        self._rolling = RollPolicy(config)
        self._synced = RecoveryPoint(directory, loaded.recovery_point, clock.wall_ms())

    @classmethod
    def open(
        cls,
        directory: Path,
        config: LogConfig,
        clock: Clock,
        *,
        recovery_point: int,
        clean: bool,
        log_start_offset: int = 0,
        producer_expiry_ms: int = 86_400_000,
    ) -> PartitionLog:
        """The log in `directory` (named topic-partition), made if there is none, validated from `recovery_point` on
        unless the last stop was clean."""
        if not directory.exists():
            directory.mkdir(parents=True)
            sync_directory(directory.parent)
        loaded = recovery.load(
            directory,
            config,
            clock,
            recovery_point=recovery_point,
            clean=clean,
            log_start_offset=log_start_offset,
            producer_expiry_ms=producer_expiry_ms,
        )
        return cls(directory, config, clock, loaded)

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self._size

    @property
    def offline(self) -> bool:
        return self._disk.ended

    @property
    def recovery_point(self) -> int:
        """Everything below is on the disk."""
        return self._synced.offset

    @property
    def needs_flush(self) -> bool:
        """Whether a segment that takes no more batches still waits for the disk."""
        return self.recovery_point < self._segments.active.base_offset

    def unflushed_ms(self, now_ms: int) -> int:
        """How long ago the log was flushed; 0 if nothing came since."""
        return now_ms - self._synced.flushed_ms if self.recovery_point < self.log_end_offset else 0

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where read_committed sees: the first offset of the oldest open transaction, at most the watermark."""
        return max(self.producers.last_stable_offset(high_watermark), self.log_start_offset)

    def end_offset_for_epoch(self, epoch: int, leader_epoch: int) -> tuple[int, int]:
        """The greatest epoch not above `epoch` and where it ended; `leader_epoch` writes at the end of the log
        even if it has written nothing yet. (-1, -1) if that cannot be known."""
        return self.leader_epochs.end_offset_as_leader(epoch, leader_epoch, self.log_end_offset)

    # Appending

    def append_as_leader(self, records: Buffer, leader_epoch: int, *, from_client: bool = True) -> Appended:
        """Takes one batch: judged by header and checksum, given its offsets in place, written in one piece.

        KafkaError with Kafka's code if it is refused. `records` may be reused as soon as this returns."""
        with self._disk:
            return self._append(records, leader_epoch, from_client)

    def _append(self, records: Buffer, leader_epoch: int, from_client: bool) -> Appended:
        config = self.config
        now = self._clock.wall_ms()
        header = check_client_batch(records, config, now) if from_client else check_one_batch(records, config)
        if header.producer_id >= 0:
            earlier = check_producer(self.producers, header, records, from_client=from_client)
            if earlier is not None:
                return self._repeated(earlier)
        records, header = conform(records, header, config, now)
        first = self.log_end_offset
        last = first + header.last_offset_delta
        max_timestamp = header.max_timestamp
        assign(records, 0, first, leader_epoch)
        segment = self._segment_for(len(records), first, last, max_timestamp, now)
        if leader_epoch > self.leader_epochs.latest:
            self.leader_epochs.assign(leader_epoch, first)
        segment.append(records, last, max_timestamp, last)
        self.log_end_offset = last + 1
        self._size += len(records)
        if header.producer_id >= 0:
            replay_batch(self.producers, segment, header, first, records)
        stamped = config.timestamp_type is TimestampType.LOG_APPEND_TIME
        return Appended(first, last, max_timestamp, max_timestamp if stamped else -1)

    def _repeated(self, batch: BatchMeta) -> Appended:
        # As in Kafka, the time of the earlier batch is given here even if producers set the timestamps.
        timestamp = batch.timestamp
        return Appended(batch.first_offset, batch.last_offset, timestamp, timestamp, True)

    def append_as_follower(self, records: Buffer) -> Appended | None:
        """Takes batches as the leader has them, with its offsets and epochs; None if there is no whole batch."""
        view = memoryview(records)
        batches = check_fetched_batches(view, self.log_end_offset)
        if not batches:
            return None
        size = batches[-1][0] + batches[-1][1].size
        first, last = batches[0][1].base_offset, batches[-1][1].last_offset
        newest = max((header for _, header in batches), key=lambda header: header.max_timestamp)
        with self._disk:
            segment = self._segment_for(size, first, last, newest.max_timestamp, self._clock.wall_ms())
            for _, header in batches:
                if header.partition_leader_epoch > self.leader_epochs.latest:
                    self.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
            segment.append(view[:size], last, newest.max_timestamp, newest.last_offset)
            self.log_end_offset = last + 1
            self._size += size
            for position, header in batches:
                if header.producer_id >= 0:
                    batch = view[position : position + header.size]
                    replay_batch(self.producers, segment, header, header.base_offset, batch)
        return Appended(first, last, newest.max_timestamp)

    def _segment_for(self, size: int, first: int, last: int, timestamp: int, now: int) -> Segment:
        if self._rolling.needs_new(self._segments.active, size, last, timestamp, now):
            self._roll(max(first, self.log_end_offset))
        return self._segments.active

    # Rolling

    def roll_if_due(self) -> bool:
        """Closes an active segment that has been filling for segment.ms by the clock, or whose index is full."""
        due = self._rolling.is_due(self._segments.active, self._clock.wall_ms())
        if due:
            self.roll()
        return due

    def roll(self) -> None:
        """Begins a new segment at the end of the log."""
        with self._disk:
            self._roll(self.log_end_offset)

    def _roll(self, base_offset: int) -> None:
        old = self._segments.active
        if old.size == 0 and old.base_offset == base_offset:
            old.reset_indexes()
            return
        old.finish()
        self._segments.add(Segment.create(self.directory, base_offset, self.config, self._clock.wall_ms()))
        # Recovery of the new segment starts from this state instead of from the log before it.
        self.producers.advance(base_offset)
        self.producers.take_snapshot()
        self._reader.forget()
        self._rolling.draw(self.config)
        self._synced.note_new_files()

    # Reading

    def read(self, offset: int, max_bytes: int, upto: int, at_least_one: bool) -> Slice:
        """The bytes from the batch that holds `offset` on, below offset `upto`, of one segment, at most `max_bytes`.

        The first batch comes whole if `at_least_one` (and not at all if it does not fit, without); the last may be
        cut. OFFSET_OUT_OF_RANGE outside of the log."""
        with self._disk:
            if not self.log_start_offset <= offset <= self.log_end_offset:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"Offset {offset} is not in [{self.log_start_offset}, {self.log_end_offset}].",
                )
            return self._reader.slice(offset, max_bytes, upto, self.log_end_offset, at_least_one)

    def offset_for_timestamp(self, timestamp: int) -> Found | None:
        """The first record at or after `timestamp`."""
        with self._disk:
            return self._reader.offset_for_timestamp(timestamp, self.log_start_offset)

    def max_timestamp(self) -> Found | None:
        """The first record with the largest timestamp of all."""
        with self._disk:
            return self._reader.max_timestamp()

    def segment_starts(self) -> list[tuple[int, int]]:
        """Where each segment begins, at or after the start of the log, and when it was last written to (ms)."""
        with self._disk:
            return [
                (max(segment.base_offset, self.log_start_offset), segment.modified_ms)
                for segment in self._segments
            ]

    def aborted_transactions(self, first: int, upto: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions with records in [first, upto), by first offset."""
        with self._disk:
            return self._reader.aborted_transactions(first, upto)

    # Letting go

    def advance_start(self, offset: int) -> None:
        """Hides everything below `offset`; whole segments below it go with the next retention."""
        if offset > self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"Offset {offset} is beyond the end of the log.")
        if offset > self.log_start_offset:
            with self._disk:
                self.log_start_offset = offset
                self.leader_epochs.truncate_from_start(offset)

    def apply_retention(self, high_watermark: int) -> int:
        """Lets go of old segments by start offset, size and age; gives how many went."""
        now = self._clock.wall_ms()
        self._segments.release_inactive()
        self.producers.expire()
        with self._disk:
            count = count_deletable(
                self._segments.snapshot(),
                self.config,
                log_start_offset=self.log_start_offset,
                high_watermark=high_watermark,
                now_ms=now,
            )
            if count == 0:
                return 0
            if count == len(self._segments):
                self._roll(self.log_end_offset)
            self.advance_start(max(self._segments[count].base_offset, self.log_start_offset))
            self._discard(self._segments.drop_first(count))
        return count

    # Compaction

    def survey(self, high_watermark: int) -> Survey:
        """What of the log can be compacted."""
        with self._disk:
            first_dirty = self.first_dirty_offset
            if first_dirty is None or not self.log_start_offset <= first_dirty <= self.log_end_offset:
                first_dirty = self.log_start_offset
            return survey(
                self._segments.snapshot(),
                self.config,
                first_dirty_offset=first_dirty,
                last_stable_offset=self.last_stable_offset(high_watermark),
                now_ms=self._clock.wall_ms(),
            )

    def segments_to_clean(self) -> tuple[list[Segment], int]:
        """All segments, for a thread to read those below the active one, and a ticket for `swap_in`."""
        return self._segments.snapshot(), self._synced.truncations

    def swap_in(self, cleaned: Segment, old: list[Segment], ticket: int) -> bool:
        """Puts a cleaned segment in the place of those it was made from; False if the log has let go of one of them,
        or has been cut since the ticket was given."""
        with self._disk:
            if ticket != self._synced.truncations or not self._segments.holds(old):
                return False
            self._size += cleaned.size - sum(segment.size for segment in old)
            # From here to the end a start after a crash comes to the same result.
            cleaned.change_suffix(SWAP_SUFFIX)
            for segment in old:
                self._pending_delete(segment)
            cleaned.change_suffix("")
            cleaned.next_offset = old[-1].next_offset
            self._segments.replace(old, cleaned)
            for segment in old[1:]:
                self.producers.remove_snapshot(segment.base_offset)
        return True

    # Cutting off

    def truncate_to(self, offset: int) -> bool:
        """Drops every batch that reaches `offset` or lies above it; whether there was any."""
        with self._disk:
            if offset >= self.log_end_offset:
                self.leader_epochs.truncate_from_end(self.log_end_offset)
                return False
            if offset < self._segments[0].base_offset:
                self.truncate_fully(offset)
                return True
            self._begin_truncation()
            index = self._segments.index_of(offset)
            self._discard(self._segments.drop_after(index))
            self._end_truncation(self._segments.active.truncate_to(offset))
        return True

    def truncate_fully(self, offset: int) -> None:
        """Empties the log; the next batch gets `offset`."""
        with self._disk:
            self._begin_truncation()
            for segment in self._segments:
                self._pending_delete(segment)
            fresh = Segment.create(self.directory, offset, self.config, self._clock.wall_ms())
            self._segments.replace_all(fresh)
            self.log_start_offset = offset
            self.leader_epochs.clear()
            self._synced.note_new_files()
            self._end_truncation(offset)

    def _begin_truncation(self) -> None:
        self._synced.begin_truncation()
        self._reader.forget()

    def _end_truncation(self, end: int) -> None:
        self.log_end_offset = end
        self.log_start_offset = min(self.log_start_offset, end)
        self._size = sum(segment.size for segment in self._segments)
        if self.first_dirty_offset is not None:
            self.first_dirty_offset = min(self.first_dirty_offset, end)
        self.leader_epochs.truncate_from_end(end)
        self._synced.end_truncation(end)
        rebuild_producers(self.producers, self._segments.snapshot(), end)

    def _discard(self, segments: list[Segment]) -> None:
        for segment in segments:
            self._size -= segment.size
            self._pending_delete(segment)
            self.producers.remove_snapshot(segment.base_offset)

    def _pending_delete(self, segment: Segment) -> None:
        due = self._clock.wall_ms() + self.config.file_delete_delay_ms
        for path in segment.mark_deleted():
            self._pending.add(path, due)

    def pending_deletes(self) -> int:
        """How many files (or directories) wait for `purge`."""
        return len(self._pending)

    def purge(self, now_ms: int) -> int:
        """Removes the files whose time has come; may run in a thread."""
        return self._pending.purge(now_ms)

    # Durability and life

    def flush(self, upto: int | None = None) -> None:
        """Everything below `upto` (all, if None) is on the disk when this returns. May run in a thread."""
        # In this order: a truncation after the first line is noticed, a batch after the second one not promised.
        truncations = self._synced.truncations
        end = self.log_end_offset
        target = end if upto is None else min(upto, end)
        if target > self.recovery_point:
            with self._disk:
                self._synced.flush(self._segments.snapshot(), target, truncations, self._clock.wall_ms())

    def close(self, clean: bool = True) -> None:
        """Leaves the directory as Kafka does after a clean stop; with `clean` False files are only let go of.

        Raises what took the log offline, if something did: the stop is not clean then."""
        if self._closed:
            return
        self._closed = True
        try:
            if clean:
                self.flush()
                with self._disk:
                    self._leave_word()
        finally:
            self._release()
            self._disk.end(ErrorCode.NOT_LEADER_OR_FOLLOWER, "The log is closed.")

    def _leave_word(self) -> None:
        """What a start after a clean stop relies on without looking at the log."""
        active = self._segments.active
        active.finish()
        active.flush_indexes()
        self.leader_epochs.save()
        self.producers.advance(self.log_end_offset)
        if self.producers.take_snapshot(durable=True) is not None:
            sync_directory(self.directory)

    def delete(self) -> Path:
        """Moves the directory out of sight under the name Kafka gives it; `purge` removes it when its time has come."""
        target = self.directory.with_name(set_aside_name(self.directory.name, DELETE_SUFFIX))
        self._closed = True
        self._disk.end(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The log is deleted.")
        self._release()
        try:
            self.directory.rename(target)
        except OSError as error:
            raise StorageError(f"{self.directory}: {error}") from error
        self._pending = PendingDeletes()
        self._pending.add(target, self._clock.wall_ms() + self.config.file_delete_delay_ms)
        return target

    def update_config(self, config: LogConfig) -> None:
        """From now on these settings hold."""
        self.config = config
        self._segments.active.update_config(config)
        self._rolling.draw(config)

    def _release(self) -> None:
        for segment in self._segments:
            segment.release()
