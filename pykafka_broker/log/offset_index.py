"""`.index`: where in a segment the batch of an offset lies, one entry every few kilobytes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from construct import Int32sb, Struct

from pykafka_broker.log.index_file import IndexFile

if TYPE_CHECKING:
    from collections.abc import Iterator

OFFSET_INDEX_ENTRY = Struct("relative_offset" / Int32sb, "position" / Int32sb)


class OffsetIndex(IndexFile):
    """Sparse map from offset to file position. Owned by one segment."""

    ENTRY = struct.Struct(">ii")
    KEY_TYPE = "i"
    VALUE_TYPE = "i"
    __slots__ = ()

    @property
    def last_offset(self) -> int:
        """Offset of the last entry; the base offset if there is none."""
        return self.base_offset if self._last is None else self.base_offset + self._last[0]

    def append(self, offset: int, position: int) -> None:
        """Add an entry. ValueError unless its offset is above the last one's, or if the index is full."""
        if self.is_full:
            raise ValueError(f"{self.path}: the index is full ({self.entries} entries)")
        if self._last is not None and offset <= self.last_offset:
            raise ValueError(f"{self.path}: offset {offset} is not above the last one, {self.last_offset}")
        self._append(self._relative(offset), position)

    def lookup(self, offset: int) -> tuple[int, int]:
        """(offset, position) of the greatest entry not above `offset`; (base offset, 0) if there is none."""
        slot = self._slot_up_to(offset - self.base_offset)
        if slot < 0:
            return self.base_offset, 0
        relative, position = self._entry(slot)
        return self.base_offset + relative, position

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and above `offset`."""
        self.truncate_entries(self._slot_up_to(offset - self.base_offset - 1) + 1)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """(offset, position) of every entry."""
        data = self.path.read_bytes()[: self.entries * self.ENTRY.size]
        return ((self.base_offset + relative, at) for relative, at in self.ENTRY.iter_unpack(data))
