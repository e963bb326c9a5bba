"""The segments of one log in the order of their offsets."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafka_broker.log.segment import Segment

_OPEN_INACTIVE: Final = 4  # consumers that lag in different places do not make us reopen files all the time


class Segments:
    """Owner of the order and of which old segments are open; its owner is the PartitionLog."""

    __slots__ = ("_bases", "_items", "_open", "active")

    def __init__(self, segments: list[Segment]) -> None:
        self._items = segments
        self._bases = [segment.base_offset for segment in segments]
        self._open: list[Segment] = []
        self.active = segments[-1]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Segment:
        return self._items[index]

    def snapshot(self) -> list[Segment]:
        """A copy, for a thread to walk over."""
        return self._items.copy()

    def index_of(self, offset: int) -> int:
        """Index of the segment `offset` falls into: the last that begins at or below it (or else the first)."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def add(self, segment: Segment) -> None:
        self.use(self.active)
        self._items.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment

    def use(self, segment: Segment) -> None:
        """Notes that a segment below the active one is being read; the longest unused one is closed."""
        opened = self._open
        if opened and opened[-1] is segment:
            return
        if segment in opened:
            opened.remove(segment)
        opened.append(segment)
        if len(opened) > _OPEN_INACTIVE:
            opened.pop(0).release()

    def release_inactive(self) -> None:
        for segment in self._open:
            segment.release()
        self._open.clear()

    def holds(self, segments: list[Segment]) -> bool:
        """Whether these are still neighbours below the active segment."""
        index = self.index_of(segments[0].base_offset)
        found = self._items[index : index + len(segments)]
        return found == segments and found[-1] is not self.active

    def replace(self, old: list[Segment], new: Segment) -> None:
        """Puts `new` in the place of `old`, which are neighbours below the active segment."""
        index = self.index_of(old[0].base_offset)
        self._items[index : index + len(old)] = [new]
        self._bases[index : index + len(old)] = [new.base_offset]
        self._open = [segment for segment in self._open if segment not in old]

    def drop_first(self, count: int) -> list[Segment]:
        dropped = self._items[:count]
        del self._items[:count], self._bases[:count]
        self._open = [segment for segment in self._open if segment not in dropped]
        return dropped

    def drop_after(self, index: int) -> list[Segment]:
        """Takes away every segment behind `index`; that one becomes the active segment."""
        dropped = self._items[index + 1 :]
        del self._items[index + 1 :], self._bases[index + 1 :]
        self.active = self._items[-1]
        self._open = [
            segment for segment in self._open if segment not in dropped and segment is not self.active
        ]
        return dropped

    def replace_all(self, segment: Segment) -> list[Segment]:
        dropped = self._items
        self._items, self._bases, self._open = [segment], [segment.base_offset], []
        self.active = segment
        return dropped
