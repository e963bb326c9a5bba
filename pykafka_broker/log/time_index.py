"""`.timeindex`: up to which offset no record of a segment is newer than a timestamp."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from construct import Int32sb, Int64sb, Struct

from pykafka_broker.log.index_file import IndexFile
from pykafka_broker.protocol.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator

TIME_INDEX_ENTRY = Struct("timestamp" / Int64sb, "relative_offset" / Int32sb)


class TimeIndex(IndexFile):
    """Sparse map from the greatest timestamp so far to its offset; both rise. Owned by one segment."""

    ENTRY = struct.Struct(">qi")
    KEY_TYPE = "q"
    VALUE_TYPE = "i"
    __slots__ = ()

    @property
    def is_full(self) -> bool:
        # one slot stays free for the entry written when the segment is closed to writes
        return self.entries >= self.max_entries - 1

    @property
    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) if there is none."""
        if self._last is None:
            return NO_TIMESTAMP, self.base_offset
        return self._last[0], self.base_offset + self._last[1]

    def maybe_append(self, timestamp: int, offset: int, force: bool = False) -> None:
        """Add an entry if `timestamp` is above the last one's.

        ValueError if the offset goes back, or if the index is full and `force` does not claim the last slot.
        """
        if not force and self.is_full:
            raise ValueError(f"{self.path}: the time index is full ({self.entries} entries)")
        last_timestamp, last_offset = self.last_entry
        if self._last is not None and offset < last_offset:
            raise ValueError(f"{self.path}: offset {offset} is below the last one, {last_offset}")
        if timestamp > last_timestamp:
            self._append(timestamp, self._relative(offset))

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """(timestamp, offset) of the greatest entry not above `timestamp`; (-1, base offset) if none is."""
        slot = self._slot_up_to(timestamp)
        if slot < 0:
            return NO_TIMESTAMP, self.base_offset
        found, relative = self._entry(slot)
        return found, self.base_offset + relative

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and above `offset`."""
        self.truncate_entries(self._slots_below_value(offset - self.base_offset))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """(timestamp, offset) of every entry."""
        data = self.path.read_bytes()[: self.entries * self.ENTRY.size]
        return ((at, self.base_offset + relative) for at, relative in self.ENTRY.iter_unpack(data))
