"""How far a log is known to be on the disk: what a start after a crash need not check again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pykafka_broker.log.checkpoints import sync_directory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pykafka_broker.log.segment import Segment


class RecoveryPoint:
    """Owner of a log's recovery point; its owner is the PartitionLog.

    `flush` may run in a thread while the event loop appends, rolls, truncates and deletes. The point only moves
    forward over what was synced before, and only if no truncation came in between."""

    __slots__ = ("_directory", "_files_changed", "_flushing", "_state", "flushed_ms", "offset", "truncations")

    def __init__(self, directory: Path, offset: int, now_ms: int) -> None:
        self.offset = offset
        self.flushed_ms = now_ms
        self._directory = directory
        self._files_changed = True
        self._flushing = (
            threading.Lock()
        )  # one flush at a time: the second relies on what the first has synced
        self._state = (
            threading.Lock()
        )  # offset and truncations change together; never held while the disk works
        self.truncations = 0

    def note_new_files(self) -> None:
        """The next flush has to sync the directory too."""
        self._files_changed = True

    def begin_truncation(self) -> None:
        with self._state:
            self.truncations += 1

    def end_truncation(self, end: int) -> None:
        """The log ends at `end` now."""
        with self._state:
            self.truncations += 1
            self.offset = min(self.offset, end)

    def flush(self, segments: Sequence[Segment], upto: int, truncations: int, now_ms: int) -> None:
        """Everything of `segments` below `upto` is on the disk when this returns. `truncations` is their number as it
        was before the end of the log was asked for."""
        with self._flushing:
            done = self.offset
            if upto <= done:
                return
            for segment in segments:
                if segment.next_offset > done and segment.base_offset < upto:
                    segment.flush()
            if self._files_changed:
                self._files_changed = False
                sync_directory(self._directory)
            with self._state:
                self.flushed_ms = now_ms
                if self.truncations == truncations:
                    self.offset = max(self.offset, upto)
