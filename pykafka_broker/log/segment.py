"""One segment: a `.log` file named after its first offset, with the indexes that lead into it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple

from pykafka_broker.log.checkpoints import sync_file
from pykafka_broker.log.index_file import CorruptIndexError
from pykafka_broker.log.log_file import LogFile
from pykafka_broker.log.offset_index import OffsetIndex
from pykafka_broker.log.time_index import TimeIndex
from pykafka_broker.log.txn_index import AbortedTxn, TxnIndex
from pykafka_broker.protocol.records.record import iter_records

if TYPE_CHECKING:
    from pathlib import Path

    from pykafka_broker.log.log_config import LogConfig
    from pykafka_broker.protocol.records.batch import BatchHeader

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, *INDEX_SUFFIXES)
DELETED_SUFFIX: Final = ".deleted"

NO_TIMESTAMP: Final = -1
_MAX_RELATIVE_OFFSET: Final = 2**31 - 1
# Below, not one entry fits: every batch has a segment of its own.
_SMALLEST_INDEX_BYTES: Final = 2 * TimeIndex.ENTRY.size


class Found(NamedTuple):
    """A record found by its timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int


def segment_path(directory: Path, base_offset: int, suffix: str) -> Path:
    return directory / f"{base_offset:020d}{suffix}"


class Segment:
    """Owner of one segment's files and of what is remembered about them; its owner is the PartitionLog.

    Descriptors are opened at first use and given back by `release`."""

    __slots__ = (
        "_deleted",
        "_first_timestamp",
        "_indexes_changed",
        "_interval",
        "_max_index_bytes",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offset_index",
        "_time_index",
        "_txn_index",
        "_unindexed",
        "base_offset",
        "created_ms",
        "directory",
        "file_suffix",
        "index_full",
        "log",
        "max_last_offset",
        "next_offset",
    )

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        *,
        size: int,
        created_ms: int,
        file_suffix: str = "",
    ) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.file_suffix = file_suffix  # what all file names end in while the segment is not part of the log
        self.created_ms = created_ms
        self.next_offset = base_offset  # set by the loader for a segment that has batches
        self.max_last_offset = base_offset + _MAX_RELATIVE_OFFSET
        self.log = LogFile(self.path(LOG_SUFFIX), size)
        self._interval = config.index_interval_bytes
        self._max_index_bytes = config.segment_index_bytes
        self.index_full = config.segment_index_bytes < _SMALLEST_INDEX_BYTES
        self._indexes_changed = False
        self._deleted = False
        self._unindexed = 0
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = None if size else NO_TIMESTAMP
        self._max_timestamp_offset = base_offset
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TxnIndex | None = None

    @classmethod
    def create(
        cls, directory: Path, base_offset: int, config: LogConfig, now_ms: int, file_suffix: str = ""
    ) -> Segment:
        """An empty segment with its files on disk; what lay there under the same name is gone."""
        segment = cls(directory, base_offset, config, size=0, created_ms=now_ms, file_suffix=file_suffix)
        for suffix in SEGMENT_SUFFIXES:
            segment.path(suffix).unlink(missing_ok=True)
        for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            segment.path(suffix).touch(0o644)
        segment._indexes_changed = True
        return segment

    def path(self, suffix: str) -> Path:
        return segment_path(self.directory, self.base_offset, suffix + self.file_suffix)

    @property
    def size(self) -> int:
        return self.log.size

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            self._offset_index = OffsetIndex(self.path(INDEX_SUFFIX), self.base_offset, self._max_index_bytes)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._time_index = TimeIndex(
                self.path(TIME_INDEX_SUFFIX), self.base_offset, self._max_index_bytes
            )
        return self._time_index

    @property
    def txn_index(self) -> TxnIndex:
        if self._txn_index is None:
            self._txn_index = TxnIndex(self.path(TXN_INDEX_SUFFIX))
        return self._txn_index

    # What it holds

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in the segment, -1 if there is none."""
        return self._max_timestamp if self._max_timestamp is not None else self._load_max_timestamp()

    def _load_max_timestamp(self) -> int:
        timestamp, offset = self.time_index.last_entry
        self._max_timestamp, self._max_timestamp_offset = timestamp, offset
        return timestamp

    @property
    def first_timestamp(self) -> int:
        """The timestamp that ages the segment: the largest of its first batch, -1 if unknown."""
        if self._first_timestamp is None:
            first = next(self.log.headers(0), None)
            self._first_timestamp = first[1].max_timestamp if first else NO_TIMESTAMP
        return self._first_timestamp

    def retention_timestamp(self) -> int:
        """The largest timestamp; for a segment without any, when its file was last written."""
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return int(self.path(LOG_SUFFIX).stat().st_mtime * 1000)

    @property
    def modified_ms(self) -> int:
        """When the file was last written to, by the file system's clock."""
        return self.log.path.stat().st_mtime_ns // 1_000_000

    def waited_ms(self, now_ms: int, timestamp: int) -> int:
        """How long the segment has been filling, by record time if its records have one."""
        first = self.first_timestamp if self.log.size else NO_TIMESTAMP
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    # Writing

    def append(
        self,
        data: bytes | bytearray | memoryview,
        last_offset: int,
        max_timestamp: int,
        max_timestamp_offset: int,
    ) -> int:
        """Writes whole batches at the end, indexed as Kafka indexes. All of it or, with an OSError, nothing."""
        position = self.log.append(data)
        if max_timestamp > self.max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = max_timestamp_offset
        if self._unindexed > self._interval and not self.index_full:
            try:
                self._index(last_offset, position)
            except OSError:
                self.log.size = position
                self.log.cut_back()
                raise
        if position == 0:
            self._first_timestamp = max_timestamp
        self._unindexed += len(data)
        self.next_offset = last_offset + 1
        return position

    def _index(self, last_offset: int, position: int) -> None:
        self.offset_index.append(last_offset, position)
        self.time_index.maybe_append(self.max_timestamp, self._max_timestamp_offset)
        self._unindexed = 0
        self._indexes_changed = True
        self.index_full = self.offset_index.is_full or self.time_index.is_full

    def note_abort(self, txn: AbortedTxn) -> None:
        """Remembers a transaction whose abort marker lies here, for those who read only what is committed."""
        self.txn_index.append(txn)
        self._indexes_changed = True

    def note_recovered(self, position: int, header: BatchHeader) -> None:
        """Takes in a batch that already lies in the file, in order, while indexes are being rebuilt."""
        if position == 0:
            self._first_timestamp = header.max_timestamp
        if header.max_timestamp > self.max_timestamp:
            self._max_timestamp, self._max_timestamp_offset = header.max_timestamp, header.last_offset
        if self._unindexed > self._interval and not self.index_full:
            self._index(header.last_offset, position)
        self._unindexed += header.size
        self.next_offset = header.next_offset

    def check_indexes(self) -> None:
        """CorruptIndexError if the index by offset or by time is missing or cannot belong to this log."""
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            if not self.path(suffix).exists():
                raise CorruptIndexError(f"{self.path(suffix)} is missing")
        self.offset_index.sanity_check()
        self.time_index.sanity_check()
        if self.offset_index.lookup(self.max_last_offset)[1] >= max(self.size, 1):
            raise CorruptIndexError(f"{self.path(INDEX_SUFFIX)} points behind the log's end")

    def reset_indexes(self) -> None:
        """Forgets figures and the indexes by offset and time, before they are rebuilt from the log."""
        self.offset_index.reset()
        self.time_index.reset()
        self.next_offset = self.base_offset
        self.index_full = self._max_index_bytes < _SMALLEST_INDEX_BYTES
        self._indexes_changed = True
        self._unindexed = 0
        self._first_timestamp = None
        self._max_timestamp, self._max_timestamp_offset = NO_TIMESTAMP, self.base_offset

    def settle_end(self) -> bool:
        """Finds out where the batches end; False if there is something behind them that is no batch."""
        _, position = self.offset_index.lookup(self.max_last_offset)
        end, self.next_offset = 0, self.base_offset
        for at, header in self.log.headers(position):
            self.next_offset = header.next_offset
            end = at + header.size
        self.index_full = self.offset_index.is_full or self.time_index.is_full
        return end == self.size

    def finish(self) -> None:
        """Leaves the files as a segment that takes no more batches has them: the time index ends with the maximum."""
        if self.max_timestamp > self.time_index.last_entry[0]:
            self.time_index.maybe_append(self.max_timestamp, self._max_timestamp_offset, force=True)
            self._indexes_changed = True

    def flush(self) -> None:
        """Everything to the disk; may run in one thread at a time. A segment deleted meanwhile has nothing to keep."""
        try:
            self.log.sync()
            self.flush_indexes()
        except FileNotFoundError:
            if not self._deleted:
                raise

    def flush_indexes(self) -> None:
        # Their owner may release the index objects at any time, so their files are opened by name.
        if self._indexes_changed:
            self._indexes_changed = False
            sync_file(self.path(INDEX_SUFFIX))
            sync_file(self.path(TIME_INDEX_SUFFIX))
            with contextlib.suppress(FileNotFoundError):  # most segments have none
                sync_file(self.path(TXN_INDEX_SUFFIX))

    # Finding

    def locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        """Position and header of the first batch that reaches `offset` or lies above it."""
        _, position = self.offset_index.lookup(offset)
        for found in self.log.headers(position):
            if found[1].last_offset >= offset:
                return found
        return None

    def find_timestamp(self, timestamp: int, from_offset: int) -> Found | None:
        """The first record at or after `timestamp`, from `from_offset` on."""
        _, indexed = self.time_index.lookup(timestamp)
        _, start = self.offset_index.lookup(max(indexed, from_offset))
        for position, header in self.log.headers(start):
            if header.max_timestamp < timestamp or header.last_offset < from_offset:
                continue
            for record in iter_records(memoryview(self.log.read(position, header.size))):
                if record.timestamp >= timestamp and record.offset >= from_offset:
                    return Found(record.offset, record.timestamp, header.partition_leader_epoch)
        return None

    def find_max_timestamp(self) -> Found | None:
        """The first record that carries the segment's largest timestamp."""
        largest = self.max_timestamp
        if largest < 0:
            return None
        _, start = self.offset_index.lookup(self._max_timestamp_offset)
        for position, header in self.log.headers(start):
            if header.max_timestamp == largest:
                for record in iter_records(memoryview(self.log.read(position, header.size))):
                    if record.timestamp == largest:
                        return Found(record.offset, largest, header.partition_leader_epoch)
        return None

    # Shrinking and leaving

    def truncate_to(self, offset: int) -> int:
        """Drops every batch that reaches `offset` or lies above it; gives where the log ends now.

        A batch that would be cut in two goes whole; in a gap left by compaction the end is `offset` itself."""
        found = self.locate(offset)
        if found is None:
            self.next_offset = offset
            return offset
        position, header = found
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.log.truncate(position)
        self.next_offset = min(offset, header.base_offset)
        self.index_full = self.offset_index.is_full or self.time_index.is_full
        self._indexes_changed = True
        self._unindexed = 0
        self._first_timestamp = None
        self._max_timestamp = NO_TIMESTAMP if position == 0 else None
        self._max_timestamp_offset = self.base_offset
        if position:
            self._restore_max_timestamp()
        return self.next_offset

    def _restore_max_timestamp(self) -> None:
        # The time index may lag behind the log by one interval: the batches after its last entry decide too.
        timestamp, offset = self.time_index.last_entry
        for _, header in self.log.headers(self.offset_index.lookup(max(offset, self.base_offset))[1]):
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        self._max_timestamp, self._max_timestamp_offset = timestamp, offset

    def release(self) -> None:
        """Gives descriptors and cached index pages back; the segment stays usable."""
        self.log.release()
        for index in (self._offset_index, self._time_index):
            if index is not None:
                index.release()
        # The transaction index holds nothing open, and remembers that most segments have none.
        self._offset_index = self._time_index = None

    def update_config(self, config: LogConfig) -> None:
        self._interval = config.index_interval_bytes

    def change_suffix(self, file_suffix: str) -> None:
        """Renames the files, the log first; the segment follows them."""
        self.release()
        for suffix in SEGMENT_SUFFIXES:
            path = self.path(suffix)
            if path.exists():
                path.rename(segment_path(self.directory, self.base_offset, suffix + file_suffix))
        self.file_suffix = file_suffix
        self.log.path = self.path(LOG_SUFFIX)
        self._txn_index = None

    def mark_deleted(self) -> list[Path]:
        """Renames the files out of sight; gives the new names, to be removed when readers are done."""
        self._deleted = True  # first: a flush in a thread that misses a file asks for it
        renamed = []
        for suffix in SEGMENT_SUFFIXES:
            path = self.path(suffix)
            target = path.with_name(path.name + DELETED_SUFFIX)
            if path.exists():
                path.rename(target)
                renamed.append(target)
        self.release()
        return renamed
