"""What the offset index and the time index have in common: a file of pairs, sorted in both columns.

Every entry is in the file as soon as it was appended. An index that is looked up while its segment grows
keeps its columns in memory; all others answer from the file and hold neither memory nor descriptors, so that
thousands of partitions with many old segments cost next to nothing.
"""

from __future__ import annotations

import errno
import os
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import struct
    from pathlib import Path

_MAX_RELATIVE_OFFSET = (1 << 31) - 1


class CorruptIndexError(Exception):
    """The file cannot be an index of its segment; it has to be rebuilt."""


class IndexFile:
    """A sorted file of (key, value) pairs. Owned by one segment."""

    ENTRY: ClassVar[struct.Struct]
    KEY_TYPE: ClassVar[str]
    VALUE_TYPE: ClassVar[str]
    __slots__ = ("_cache", "_fd", "_last", "base_offset", "entries", "max_entries", "path")

    def __init__(self, path: Path, base_offset: int, max_bytes: int) -> None:
        """Opens the index, or makes an empty file. `sanity_check` says if an old one can be trusted."""
        self.path = path
        self.base_offset = base_offset
        self.max_entries = max_bytes // self.ENTRY.size
        self.entries = 0
        self._last: tuple[int, int] | None = None
        self._cache: tuple[array[int], array[int]] | None = None
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._settle(os.fstat(self._fd).st_size // self.ENTRY.size)
        self.release()

    @property
    def is_full(self) -> bool:
        return self.entries >= self.max_entries

    def sanity_check(self) -> None:
        """CorruptIndexError if length or order of the file are impossible."""
        size = self.path.stat().st_size
        if size % self.ENTRY.size:
            raise CorruptIndexError(f"{self.path}: {size} bytes are not a multiple of {self.ENTRY.size}")
        if self._last is None:
            return
        first = self._entry(0)
        # A preallocated file that was never trimmed ends in zeros, and so in an entry below its first.
        if self.entries > 1 and (self._last[0] <= first[0] or self._last[1] < first[1]):
            raise CorruptIndexError(
                f"{self.path}: the last entry {self._last} is not above the first {first}"
            )
        if min(first) < 0:
            raise CorruptIndexError(f"{self.path}: the first entry {first} is negative")

    def truncate_entries(self, count: int) -> None:
        """Keep the first `count` entries only."""
        if count < self.entries:
            os.truncate(self.path, count * self.ENTRY.size)
            self._cache = None
            self._settle(count)

    def reset(self) -> None:
        """Empty the index, for a rebuild; bytes that are no whole entry go too."""
        os.truncate(self.path, 0)
        self._cache = None
        self._settle(0)

    def release(self) -> None:
        """Let go of descriptor and memory, for an idle or finished segment; the index stays usable."""
        self._cache = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _relative(self, offset: int) -> int:
        relative = offset - self.base_offset
        if not 0 <= relative <= _MAX_RELATIVE_OFFSET:
            raise ValueError(
                f"{self.path}: offset {offset} is out of reach of base offset {self.base_offset}"
            )
        return relative

    def _append(self, key: int, value: int) -> None:
        if self._fd < 0:
            self._open()
        written = os.pwrite(self._fd, self.ENTRY.pack(key, value), self.entries * self.ENTRY.size)
        if written != self.ENTRY.size:
            raise OSError(errno.ENOSPC, "index entry written in part", str(self.path))
        if self._cache is not None:
            self._cache[0].append(key)
            self._cache[1].append(value)
        self._last = (key, value)
        self.entries += 1

    def _entry(self, slot: int) -> tuple[int, int]:
        if self._cache is not None:
            return self._cache[0][slot], self._cache[1][slot]
        return self._columns_at(slot)

    def _columns_at(self, slot: int) -> tuple[int, int]:
        opened = self._fd < 0 and self._open()
        try:
            data = os.pread(self._fd, self.ENTRY.size, slot * self.ENTRY.size)
        finally:
            if opened:
                self.release()
        key, value = self.ENTRY.unpack(data)
        return key, value

    def _slot_up_to(self, key: int) -> int:
        """The last slot whose key is not above `key`, or -1."""
        if self._last is None:
            return -1
        if key >= self._last[0]:  # readers at the end of the log are the most frequent
            return self.entries - 1
        if self._fd >= 0:
            return bisect_right(self._columns()[0], key) - 1
        return self._search_file(key, column=0, right=True) - 1

    def _slots_below_value(self, value: int) -> int:
        """How many entries have a value below `value`."""
        if self._last is None or value > self._last[1]:
            return self.entries
        if self._fd >= 0:
            return bisect_left(self._columns()[1], value)
        return self._search_file(value, column=1, right=False)

    def _search_file(self, target: int, *, column: int, right: bool) -> int:
        """Binary search by reading single entries: twenty reads where the whole file may be megabytes."""
        self._open()
        try:
            slots = range(self.entries)
            bisect = bisect_right if right else bisect_left
            return bisect(slots, target, key=lambda slot: self._columns_at(slot)[column])
        finally:
            self.release()

    def _columns(self) -> tuple[array[int], array[int]]:
        """Both columns in memory, loaded when an index that is being written to is first looked up."""
        if self._cache is None:
            keys, values = array(self.KEY_TYPE), array(self.VALUE_TYPE)
            for key, value in self.ENTRY.iter_unpack(os.pread(self._fd, self.entries * self.ENTRY.size, 0)):
                keys.append(key)
                values.append(value)
            self._cache = keys, values
        return self._cache

    def _open(self) -> bool:
        self._fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        return True

    def _settle(self, entries: int) -> None:
        self.entries = entries
        self._last = self._columns_at(entries - 1) if entries else None
