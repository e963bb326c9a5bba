"""Finding things in a log: by offset, by time, by transaction. Nothing here reads the records it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykafka_broker.log.log_file import EMPTY_SLICE, LENGTH_PREFIX, Slice

if TYPE_CHECKING:
    from pykafka_broker.log.segment import Found, Segment
    from pykafka_broker.log.segments import Segments

_REMEMBERED_POSITIONS: Final = 64
_LENGTH_AT: Final = 8


class LogReader:
    """Owner of the places where readers of the active segment were last; its owner is the PartitionLog.

    Who reads at the end comes back to exactly where it was told to stop, and is spared the index."""

    __slots__ = ("_positions", "_segments")

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._positions: dict[int, int] = {}  # offset → position in the active segment

    def forget(self) -> None:
        """The active segment was rolled or truncated: no place in it can be trusted."""
        self._positions.clear()

    def slice(self, offset: int, max_bytes: int, upto: int, end: int, at_least_one: bool) -> Slice:
        """The bytes from the batch that holds `offset` on, below offset `upto`; `end` is where the log ends."""
        segments = self._segments
        active = segments.active
        if offset >= upto or offset == end:
            if offset == end:
                self._remember(end, active.log.size)
            return EMPTY_SLICE
        if offset >= active.base_offset:
            segment, position = active, self._position_in_active(offset)
            if upto >= end:
                upto, stop = end, active.log.size
            else:
                stop = self._position_in_active(upto)
            self._remember(upto, stop)
        else:
            segment, position, stop = self._find(offset, upto)
        size = stop - position
        if size > max_bytes:
            whole = _batch_size(segment, position)
            size = max_bytes if whole <= max_bytes else whole if at_least_one else 0
        return segment.log.slice(position, size) if size > 0 else EMPTY_SLICE

    def _position_in_active(self, offset: int) -> int:
        position = self._positions.get(offset)
        if position is None:
            found = self._segments.active.locate(offset)
            position = found[0] if found else self._segments.active.log.size
        return position

    def _remember(self, offset: int, position: int) -> None:
        positions = self._positions
        if offset not in positions:
            if len(positions) >= _REMEMBERED_POSITIONS:
                del positions[next(iter(positions))]
            positions[offset] = position

    def _find(self, offset: int, upto: int) -> tuple[Segment, int, int]:
        """Segment, position of the batch that holds `offset`, and where to stop, from below the active one on."""
        for index in range(self._segments.index_of(offset), len(self._segments)):
            segment = self._use(index)
            found = segment.locate(offset)
            if found is not None:  # else compaction has left nothing between here and the next segment
                break
        else:
            return segment, segment.size, segment.size
        if upto >= segment.next_offset:
            return segment, found[0], segment.size
        last = segment.locate(upto)
        return segment, found[0], last[0] if last else segment.size

    def _use(self, index: int) -> Segment:
        segment = self._segments[index]
        if segment is not self._segments.active:
            self._segments.use(segment)
        return segment

    def offset_for_timestamp(self, timestamp: int, start: int) -> Found | None:
        """The first record at or after `timestamp`, from offset `start` on."""
        for index in range(self._segments.index_of(start), len(self._segments)):
            segment = self._segments[index]
            if segment.max_timestamp >= timestamp:
                found = self._use(index).find_timestamp(timestamp, start)
                if found is not None:
                    return found
        return None

    def max_timestamp(self) -> Found | None:
        """The first record with the largest timestamp of all."""
        newest = max(range(len(self._segments)), key=lambda index: self._segments[index].max_timestamp)
        return self._use(newest).find_max_timestamp()

    def aborted_transactions(self, first: int, upto: int) -> list[tuple[int, int]]:
        """Producer and first offset of every aborted transaction that has records in [first, upto)."""
        found: list[tuple[int, int]] = []
        for index in range(self._segments.index_of(first), len(self._segments)):
            aborted, complete = self._segments[index].txn_index.aborted(first, upto)
            found += [(txn.producer_id, txn.first_offset) for txn in aborted]
            if complete:
                break
        return sorted(found, key=lambda txn: txn[1])


def _batch_size(segment: Segment, position: int) -> int:
    return int.from_bytes(segment.log.read(position + _LENGTH_AT, 4), "big") + LENGTH_PREFIX
