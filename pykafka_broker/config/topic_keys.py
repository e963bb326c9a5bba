"""The topic settings Kafka 3.9 and 4.3 know: type, default, range, and the broker property behind each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pykafka_broker.config.broker import (
    BOOLEAN,
    CLEANUP_POLICIES,
    COMPRESSION_TYPES,
    DOUBLE,
    INT,
    LIST,
    LONG,
    STRING,
    TIMESTAMP_TYPES,
)
from pykafka_broker.config.values import LONG_MAX, ConfigKey, GzipLevel, Range, ThrottledReplicas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafka_broker.config.values import ConfigType, Validator


@dataclass(frozen=True, slots=True)
class TopicKey:
    """A topic setting and the broker property that gives its default, where there is one."""

    key: ConfigKey
    synonym: str | None

    @property
    def name(self) -> str:
        return self.key.name


def _row(
    name: str,
    kind: ConfigType,
    default: str | int,
    validator: Validator | None,
    synonym: str | None,
    doc: str,
    effect: bool = True,
    retired: bool = False,
) -> TopicKey:
    return TopicKey(
        ConfigKey(name, kind, str(default), validator, doc=doc, effect=effect, retired=retired), synonym
    )


_OLDEST = "log.message.timestamp.before.max.ms"
_NEWEST = "log.message.timestamp.after.max.ms"
SINGLE_TIMESTAMP_BOUND: Final = "message.timestamp.difference.max.ms"
_LAG = "log.cleaner.{}.compaction.lag.ms"
_REPLICAS = ThrottledReplicas()
_WEEK_MS = 604800000

_ROWS = (
    _row(
        "cleanup.policy", LIST, "delete", CLEANUP_POLICIES, "log.cleanup.policy", "delete, compact, or both"
    ),
    _row(
        "compression.gzip.level",
        INT,
        -1,
        GzipLevel(),
        "compression.gzip.level",
        "Level for compression.type gzip",
    ),
    _row(
        "compression.lz4.level",
        INT,
        9,
        Range(1, 17),
        "compression.lz4.level",
        "Level for compression.type lz4",
    ),
    _row(
        "compression.type",
        STRING,
        "producer",
        COMPRESSION_TYPES,
        "compression.type",
        "Codec of the stored batches",
    ),
    _row("compression.zstd.level", INT, 3, Range(-131072, 22), "compression.zstd.level", "Level for zstd"),
    _row(
        "delete.retention.ms",
        LONG,
        86400000,
        Range(0),
        "log.cleaner.delete.retention.ms",
        "Life of a tombstone",
    ),
    _row(
        "file.delete.delay.ms", LONG, 60000, Range(0), "log.segment.delete.delay.ms", "Wait before files go"
    ),
    _row(
        "flush.messages", LONG, LONG_MAX, Range(1), "log.flush.interval.messages", "Records between two syncs"
    ),
    _row("flush.ms", LONG, LONG_MAX, Range(0), "log.flush.interval.ms", "Time between two syncs"),
    _row(
        "follower.replication.throttled.replicas",
        LIST,
        "",
        _REPLICAS,
        None,
        "Throttled followers",
    ),
    _row(
        "index.interval.bytes",
        INT,
        4096,
        Range(0),
        "log.index.interval.bytes",
        "Bytes between two index entries",
    ),
    _row("leader.replication.throttled.replicas", LIST, "", _REPLICAS, None, "Throttled leaders"),
    _row(
        "local.retention.bytes",
        LONG,
        -2,
        Range(-2),
        "log.local.retention.bytes",
        "Tiered storage",
        effect=False,
    ),
    _row("local.retention.ms", LONG, -2, Range(-2), "log.local.retention.ms", "Tiered storage", effect=False),
    _row(
        "max.compaction.lag.ms",
        LONG,
        LONG_MAX,
        Range(1),
        _LAG.format("max"),
        "Age at which compaction is due",
    ),
    _row("max.message.bytes", INT, 1048588, Range(0), "message.max.bytes", "Largest record batch accepted"),
    _row(
        "message.timestamp.after.max.ms", LONG, 3600000, Range(0), _NEWEST, "How far a record may lie ahead"
    ),
    _row(
        "message.timestamp.before.max.ms", LONG, LONG_MAX, Range(0), _OLDEST, "How far a record may lie back"
    ),
    _row(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        TIMESTAMP_TYPES,
        "log.message.timestamp.type",
        "Whose time",
    ),
    _row(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        "0.5",
        Range(0, 1),
        "log.cleaner.min.cleanable.ratio",
        "Dirty share",
    ),
    _row(
        "min.compaction.lag.ms", LONG, 0, Range(0), _LAG.format("min"), "Age below which nothing is compacted"
    ),
    _row("min.insync.replicas", INT, 1, Range(1), "min.insync.replicas", "In-sync replicas acks=all needs"),
    _row(
        "preallocate", BOOLEAN, "false", None, "log.preallocate", "Reserve a segment's size when it is made"
    ),
    _row("remote.log.copy.disable", BOOLEAN, "false", None, None, "Tiered storage", effect=False),
    _row("remote.log.delete.on.disable", BOOLEAN, "false", None, None, "Tiered storage", effect=False),
    _row("remote.storage.enable", BOOLEAN, "false", None, None, "Tiered storage", effect=False),
    _row(
        "retention.bytes", LONG, -1, None, "log.retention.bytes", "Size a partition may keep, -1 for no limit"
    ),
    _row(
        "retention.ms",
        LONG,
        _WEEK_MS,
        Range(-1),
        "log.retention.ms",
        "How long records are kept, -1 for ever",
    ),
    _row("segment.bytes", INT, 1 << 30, Range(14), "log.segment.bytes", "Size at which a segment is rolled"),
    _row(
        "segment.index.bytes",
        INT,
        10485760,
        Range(4),
        "log.index.size.max.bytes",
        "Largest size of an index file",
    ),
    _row("segment.jitter.ms", LONG, 0, Range(0), "log.roll.jitter.ms", "Random part taken off segment.ms"),
    _row("segment.ms", LONG, _WEEK_MS, Range(1), "log.roll.ms", "Age at which a segment is rolled"),
    _row(
        "unclean.leader.election.enable",
        BOOLEAN,
        "false",
        None,
        "unclean.leader.election.enable",
        "Risk data loss",
    ),
    # What only Kafka 3.9 knows: kept, so that its topics and scripts still load.
    _row(
        "message.downconversion.enable",
        BOOLEAN,
        "true",
        None,
        "log.message.downconversion.enable",
        "Serve clients that know no batches",
        retired=True,
    ),
    _row("message.format.version", STRING, "3.0-IV1", None, None, "Kafka 3 only", effect=False, retired=True),
    _row(
        SINGLE_TIMESTAMP_BOUND,
        LONG,
        LONG_MAX,
        Range(0),
        None,
        "Kafka 3's one bound for both directions",
        retired=True,
    ),
)
TOPIC_KEYS: Mapping[str, TopicKey] = {row.name: row for row in _ROWS}
