"""Which part of a log is to be compacted, and which of its segments become one.

The log is clean below its first dirty offset: there no key occurs twice. Dirty is what came since. Neither the active
segment is touched, nor one that holds something undecided or not replicated yet, nor one younger than
min.compaction.lag.ms. Work begins when enough of the log is dirty, or dirty for longer than max.compaction.lag.ms."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pykafka_broker.log.segment import INDEX_SUFFIX, TIME_INDEX_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafka_broker.log.log_config import LogConfig
    from pykafka_broker.log.segment import Segment

_MAX_RELATIVE_OFFSET: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Survey:
    """How clean a log is."""

    first_dirty_offset: int
    upto: int
    """Where the part that can be cleaned ends: where a segment begins."""
    clean_bytes: int
    cleanable_bytes: int
    overdue: bool
    """Something has been dirty for longer than the topic allows."""

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, config: LogConfig) -> bool:
        """Whether the log is to be cleaned now."""
        return (self.overdue and self.cleanable_bytes > 0) or self.ratio > config.min_cleanable_dirty_ratio


def survey(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    first_dirty_offset: int,
    last_stable_offset: int,
    now_ms: int,
) -> Survey:
    """Looks at the segments of a log, the last of them active."""
    bases = [segment.base_offset for segment in segments]
    first_dirty = _index_of(bases, first_dirty_offset)
    dirty = segments[first_dirty:-1]
    limits = [last_stable_offset, bases[-1]]
    if config.min_compaction_lag_ms > 0:
        youngest = now_ms - config.min_compaction_lag_ms
        limits += [next((s.base_offset for s in dirty if s.max_timestamp > youngest), bases[-1])]
    end = _index_of(bases, max(first_dirty_offset, min(limits)))
    return Survey(
        first_dirty_offset=first_dirty_offset,
        upto=bases[end],
        clean_bytes=sum(s.size for s in segments if s.base_offset < first_dirty_offset),
        cleanable_bytes=sum(s.size for s in segments[first_dirty:end]),
        overdue=_is_overdue(dirty, now_ms - max(config.max_compaction_lag_ms, 0)),
    )


def _index_of(bases: list[int], offset: int) -> int:
    return max(bisect_right(bases, offset) - 1, 0)


def _is_overdue(dirty: Sequence[Segment], clean_until_ms: int) -> bool:
    if clean_until_ms <= 0:
        return False
    for segment in dirty:
        first = segment.first_timestamp if segment.size else 0
        segment.log.release()  # a log may have more segments than a process may have files
        if 0 < first < clean_until_ms:
            return True
    return False


def group_segments(segments: Sequence[Segment], upto: int, config: LogConfig) -> list[list[Segment]]:
    """The segments in runs that fit into one each, by size, by the sizes of their indexes, and by their offsets, which
    an index holds in 31 bits. `upto` is where the last of them ends at most. FileNotFoundError if one has gone."""
    groups: list[list[Segment]] = []
    log_left = index_left = time_left = 0
    ends = [after.base_offset for _, after in pairwise(segments)]
    for segment, end in zip(segments, [*ends, upto], strict=True):
        index = segment.path(INDEX_SUFFIX).stat().st_size
        time = segment.path(TIME_INDEX_SUFFIX).stat().st_size
        if (
            groups
            and segment.size <= log_left
            and index <= index_left
            and time <= time_left
            and (segment.size == 0 or end - 1 - groups[-1][0].base_offset <= _MAX_RELATIVE_OFFSET)
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            log_left = config.segment_bytes
            index_left = time_left = config.segment_index_bytes
        log_left -= segment.size
        index_left -= index
        time_left -= time
    return groups
