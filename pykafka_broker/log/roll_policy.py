"""When the active segment of a log has taken enough."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.log.log_config import LogConfig
    from pykafka_broker.log.segment import Segment


class RollPolicy:
    """Owner of the time drawn for the present segment; its owner is the PartitionLog."""

    __slots__ = ("_after_ms", "_segment_bytes")

    def __init__(self, config: LogConfig) -> None:
        self.draw(config)

    def draw(self, config: LogConfig) -> None:
        """For a new segment or new settings: segment.ms, less a random part, so that not all logs roll at once."""
        longest = config.segment_ms
        if config.compact and config.max_compaction_lag_ms > 0:
            longest = min(longest, config.max_compaction_lag_ms)
        jitter = min(config.segment_jitter_ms, longest)
        self._after_ms = longest - (random.randrange(jitter) if jitter > 0 else 0)  # noqa: S311 -- spreads load, no secret
        self._segment_bytes = config.segment_bytes

    def needs_new(self, segment: Segment, size: int, last_offset: int, timestamp: int, now_ms: int) -> bool:
        """Whether a batch of `size` bytes has to begin a new segment. RECORD_LIST_TOO_LARGE if it fits into none."""
        room = self._segment_bytes - size
        if room < 0:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"The batch has {size} bytes, a segment at most {self._segment_bytes}.",
            )
        filled = segment.log.size
        return (
            filled > room
            or segment.index_full
            or last_offset > segment.max_last_offset
            or (filled > 0 and segment.waited_ms(now_ms, timestamp) > self._after_ms)
        )

    def is_due(self, segment: Segment, now_ms: int) -> bool:
        """Whether the segment has been filling for long enough by the clock, or its index is full.

        Kafka rolls only when a batch comes; doing it earlier lets the records of a quiet partition be compacted."""
        return segment.size > 0 and (segment.index_full or now_ms - segment.created_ms > self._after_ms)
