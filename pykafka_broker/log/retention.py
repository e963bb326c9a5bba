"""Which segments a log may let go of, and the files that wait for their removal."""

from __future__ import annotations

import logging
import shutil
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pykafka_broker.log.log_config import LogConfig
    from pykafka_broker.log.segment import Segment

log = logging.getLogger(__name__)


def count_deletable(
    segments: Sequence[Segment], config: LogConfig, *, log_start_offset: int, high_watermark: int, now_ms: int
) -> int:
    """How many of the oldest segments go: those below the start of the log, then by size, then by age.

    Nothing at or above the high watermark goes, nor an active segment that is empty already."""
    limit = _count_committed(segments, high_watermark)
    count = 0
    while count < min(limit, len(segments) - 1) and segments[count + 1].base_offset <= log_start_offset:
        count += 1
    if not config.delete:
        return count
    if config.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments[count:]) - config.retention_bytes
        while count < limit and excess - segments[count].size >= 0:
            excess -= segments[count].size
            count += 1
    if config.retention_ms >= 0:
        while count < limit and now_ms - segments[count].retention_timestamp() > config.retention_ms:
            count += 1
    return count


def _count_committed(segments: Sequence[Segment], high_watermark: int) -> int:
    ends = [segment.base_offset for segment in segments[1:]]
    if segments[-1].size:
        ends.append(segments[-1].next_offset)
    return next((count for count, end in enumerate(ends) if end > high_watermark), len(ends))


class PendingDeletes:
    """Renamed files and directories, removed some time later so that readers can finish; its owner is the PartitionLog.

    `add` belongs to the event loop, `purge` to one thread at a time."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Path]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, path: Path, due_ms: int) -> None:
        self._waiting.append((due_ms, path))

    def purge(self, now_ms: int) -> int:
        """Removes what is due; gives how many entries that were. What does not go now is left to the next start."""
        removed = 0
        for _ in range(len(self._waiting)):
            due_ms, path = self._waiting.popleft()
            if due_ms > now_ms:
                self._waiting.append((due_ms, path))
                continue
            removed += 1
            try:
                _remove(path)
            except OSError as error:
                log.warning("%s cannot be removed: %s", path, error)
        return removed


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
