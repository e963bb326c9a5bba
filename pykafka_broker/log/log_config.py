"""What a topic may decide about its log: Kafka's topic settings, typed, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pykafka_broker.protocol.records.batch import TimestampType

if TYPE_CHECKING:
    from pykafka_broker.protocol.records.compression import Codec

__all__ = ["NO_LIMIT", "LogConfig", "TimestampType"]

NO_LIMIT: Final = 2**63 - 1
_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings of one partition's log. A change is a new object, handed over by `PartitionLog.update_config`."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096

    retention_ms: int = 7 * _DAY_MS  # -1: no limit
    retention_bytes: int = -1  # -1: no limit
    file_delete_delay_ms: int = 60_000

    flush_messages: int = NO_LIMIT
    flush_ms: int = NO_LIMIT

    max_message_bytes: int = 1024 * 1024 + 12
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = NO_LIMIT
    timestamp_after_max_ms: int = 3_600_000
    compression: Codec | None = None  # None: as the producer sent it
    compression_level: int | None = None  # None: the codec's own default
    down_conversion: bool = True  # whether clients that know no batches are served

    delete: bool = True
    compact: bool = False
    delete_retention_ms: int = _DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NO_LIMIT
    min_cleanable_dirty_ratio: float = 0.5

    min_insync_replicas: int = 1

    preallocate: bool = False
