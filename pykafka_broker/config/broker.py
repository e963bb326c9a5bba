"""The broker's properties, by Kafka's names and with its defaults, each declared beside its attribute.

An attribute is its property with the dots as underscores. Properties Kafka knows and this broker has no use
for are in `inert`: accepted, checked for their type, and answered with a warning.
"""

from __future__ import annotations

import dataclasses
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pykafka_broker.config import resolve
from pykafka_broker.config.inert import INERT_KEYS
from pykafka_broker.config.values import LONG_MAX, ConfigKey, ConfigType, GzipLevel, Importance, OneOf, Range

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pykafka_broker.config.listeners import Endpoint
    from pykafka_broker.config.values import Validator, Value

BOOLEAN, STRING, INT, SHORT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.SHORT
LONG, DOUBLE, LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

COMPRESSION_TYPES = OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"))
CLEANUP_POLICIES = OneOf(("compact", "delete"))
TIMESTAMP_TYPES = OneOf(("CreateTime", "LogAppendTime"))
_REBALANCE_PROTOCOLS = OneOf(("classic", "consumer", "streams"))
_MIGRATIONS = OneOf(("disabled", "upgrade", "downgrade", "bidirectional"))
_PROTOCOL_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
_FOREVER = str(LONG_MAX)
_KAFKA_LOG_DIR = "/tmp/kafka-logs"  # noqa: S108  Kafka's own default, kept


def prop(
    kind: ConfigType,
    default: str | int | None,
    validator: Validator | None,
    importance: Importance,
    doc: str,
    *,
    internal: bool = False,
    retired: bool = False,
) -> Any:
    """A field whose property is declared right here; its name is the attribute's."""
    text = None if default is None else str(default)
    return field(
        metadata={
            "key": ConfigKey("", kind, text, validator, importance, doc, internal=internal, retired=retired)
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """A checked configuration. Attributes hold what is in force: after precedence and with defaults."""

    given: Mapping[str, str]  # as the operator wrote them, for DescribeConfigs
    values: Mapping[str, Value]  # every known property, parsed, before precedence
    warnings: tuple[str, ...]  # one line for each accepted property that does nothing here

    # who and where
    broker_id: int = prop(INT, -1, Range(-1), HIGH, "Number of this broker in its cluster; -1 when not given")
    node_id: int = prop(
        INT, -1, Range(-1), HIGH, "The newer name of broker.id; given together they must agree"
    )
    broker_rack: str | None = prop(
        STRING, None, None, MEDIUM, "Rack told to clients and used to spread replicas"
    )
    listeners: tuple[Endpoint, ...] = prop(
        LIST, "PLAINTEXT://:9092", None, HIGH, "Where to listen: NAME://host:port"
    )
    advertised_listeners: tuple[Endpoint, ...] = prop(LIST, None, None, HIGH, "Addresses told to clients")
    listener_security_protocol_map: Mapping[str, str] = prop(
        STRING, _PROTOCOL_MAP, None, LOW, "Protocol of a listener"
    )
    inter_broker_listener_name: str = prop(STRING, None, None, MEDIUM, "Listener other brokers use")
    security_inter_broker_protocol: str = prop(STRING, "PLAINTEXT", None, MEDIUM, "Protocol between brokers")
    controller_listener_names: tuple[str, ...] = prop(
        LIST, None, None, HIGH, "KRaft listeners: left closed here"
    )
    log_dir: tuple[str, ...] = prop(
        LIST, _KAFKA_LOG_DIR, None, HIGH, "Data directory when log.dirs is not given"
    )
    log_dirs: tuple[Path, ...] = prop(LIST, None, None, HIGH, "Data directories")

    # a cluster: its tree, its controller, its replicas
    zookeeper_connect: str | None = prop(
        STRING, None, None, HIGH, "host:port,host:port/chroot: be part of that cluster", retired=True
    )
    zookeeper_session_timeout_ms: int = prop(
        INT, 18000, None, HIGH, "Silence after which a broker is taken for dead", retired=True
    )
    zookeeper_connection_timeout_ms: int | None = prop(
        INT,
        None,
        None,
        HIGH,
        "How long to wait for ZooKeeper at the start; the session's timeout",
        retired=True,
    )
    zookeeper_login: str | None = prop(
        ConfigType.PASSWORD,
        None,
        None,
        HIGH,
        "user:password for ZooKeeper; ours alone, Kafka has JAAS",
        internal=True,
    )
    zookeeper_login_scheme: str = prop(
        STRING,
        "digest",
        OneOf(("digest", "sasl")),
        HIGH,
        "How to log in: digest, or SASL's DIGEST-MD5",
        internal=True,
    )
    zookeeper_set_acl: bool = prop(BOOLEAN, "false", None, HIGH, "Nodes only we may change", retired=True)
    controlled_shutdown_enable: bool = prop(BOOLEAN, "true", None, MEDIUM, "Hand over leaders before a stop")
    controlled_shutdown_max_retries: int = prop(
        INT, 3, None, MEDIUM, "How often handing over is tried again", retired=True
    )
    controlled_shutdown_retry_backoff_ms: int = prop(
        LONG, 5000, None, MEDIUM, "Time between two tries", retired=True
    )
    auto_leader_rebalance_enable: bool = prop(
        BOOLEAN, "true", None, HIGH, "Give leadership back to preferred replicas"
    )
    leader_imbalance_per_broker_percentage: int = prop(
        INT, 10, None, HIGH, "How many leaders may be misplaced", retired=True
    )
    leader_imbalance_check_interval_seconds: int = prop(
        LONG, 300, Range(1), HIGH, "How often misplaced leaders are looked for"
    )
    replica_lag_time_max_ms: int = prop(LONG, 30000, None, HIGH, "Lag after which a follower is out of sync")
    replica_fetch_max_bytes: int = prop(INT, 1048576, Range(0), MEDIUM, "Bytes fetched of one partition")
    replica_fetch_response_max_bytes: int = prop(
        INT, 10485760, Range(0), MEDIUM, "Bytes fetched in one response"
    )
    replica_fetch_min_bytes: int = prop(INT, 1, None, HIGH, "Bytes a leader waits for")
    replica_fetch_wait_max_ms: int = prop(INT, 500, None, HIGH, "How long a leader waits for bytes")
    replica_fetch_backoff_ms: int = prop(INT, 1000, Range(0), MEDIUM, "Pause after a failed fetch")
    replica_socket_timeout_ms: int = prop(INT, 30000, None, HIGH, "How long a leader may take to answer")
    replication_quota_window_num: int = prop(
        INT, 11, Range(1), LOW, "Windows a throttled rate is measured over"
    )
    replication_quota_window_size_seconds: int = prop(INT, 1, Range(1), LOW, "Length of such a window")
    replica_selector_class: str | None = prop(STRING, None, None, MEDIUM, "Who reads from which replica")

    # topics
    num_partitions: int = prop(INT, 1, Range(1), MEDIUM, "Partitions of a topic created without a count")
    default_replication_factor: int = prop(
        INT, 1, None, MEDIUM, "Replicas of a topic created without a count"
    )
    auto_create_topics_enable: bool = prop(
        BOOLEAN, "true", None, HIGH, "Create a topic when a client asks for it"
    )
    delete_topic_enable: bool = prop(BOOLEAN, "true", None, HIGH, "Allow topics to be deleted")
    min_insync_replicas: int = prop(INT, 1, Range(1), HIGH, "In-sync replicas a write with acks=all needs")
    unclean_leader_election_enable: bool = prop(
        BOOLEAN, "false", None, HIGH, "Let a lagging replica lead; loses data"
    )
    message_max_bytes: int = prop(INT, 1048588, Range(0), HIGH, "Largest record batch accepted")
    compression_type: str = prop(
        STRING, "producer", COMPRESSION_TYPES, HIGH, "Codec on disk; producer: as it came"
    )
    compression_gzip_level: int = prop(INT, -1, GzipLevel(), MEDIUM, "gzip level when the broker compresses")
    compression_lz4_level: int = prop(INT, 9, Range(1, 17), MEDIUM, "lz4 level when the broker compresses")
    compression_zstd_level: int = prop(
        INT, 3, Range(-131072, 22), MEDIUM, "zstd level when the broker compresses"
    )

    # log: segments, retention, flushing (14: Kafka 3.9's lower bound; 4.x wants a megabyte)
    log_segment_bytes: int = prop(INT, 1 << 30, Range(14), HIGH, "Size at which a segment is rolled")
    log_segment_delete_delay_ms: int = prop(
        LONG, 60000, Range(0), HIGH, "Wait before a deleted file is removed"
    )
    log_roll_ms: int = prop(LONG, None, None, HIGH, "Age at which a segment is rolled; before log.roll.hours")
    log_roll_hours: int = prop(INT, 168, Range(1), HIGH, "Age in hours at which a segment is rolled")
    log_roll_jitter_ms: int = prop(
        LONG, None, None, HIGH, "Random part taken off log.roll.ms; before the hours"
    )
    log_roll_jitter_hours: int = prop(INT, 0, Range(0), HIGH, "Random hours taken off the age of rolling")
    log_retention_ms: int = prop(
        LONG, None, None, HIGH, "How long records are kept, -1 for ever; before minutes"
    )
    log_retention_minutes: int | None = prop(INT, None, None, HIGH, "Minutes records are kept; before hours")
    log_retention_hours: int = prop(INT, 168, None, HIGH, "Hours records are kept")
    log_retention_bytes: int = prop(LONG, -1, None, HIGH, "Size a partition may keep, -1 for no limit")
    log_retention_check_interval_ms: int = prop(
        LONG, 300000, Range(1), MEDIUM, "How often retention is applied"
    )
    log_initial_task_delay_ms: int = prop(
        LONG, 30000, Range(0), LOW, "Wait before background work", internal=True
    )
    log_index_interval_bytes: int = prop(INT, 4096, Range(0), MEDIUM, "Bytes between two index entries")
    log_index_size_max_bytes: int = prop(INT, 10485760, Range(4), MEDIUM, "Largest size of an index file")
    log_flush_interval_messages: int = prop(
        LONG, _FOREVER, Range(1), HIGH, "Records after which a log is synced"
    )
    log_flush_interval_ms: int = prop(LONG, None, None, HIGH, "Time after which a log is synced")
    log_flush_scheduler_interval_ms: int = prop(
        LONG, _FOREVER, None, HIGH, "How often logs are looked at for syncing"
    )
    log_flush_offset_checkpoint_interval_ms: int = prop(
        INT, 60000, Range(0), HIGH, "How often recovery points are kept"
    )
    log_flush_start_offset_checkpoint_interval_ms: int = prop(
        INT, 60000, Range(0), HIGH, "How often log start offsets are kept"
    )
    replica_high_watermark_checkpoint_interval_ms: int = prop(
        LONG, 5000, None, HIGH, "How often high watermarks are kept"
    )
    log_preallocate: bool = prop(BOOLEAN, "false", None, MEDIUM, "Reserve a segment's size when it is made")
    log_message_downconversion_enable: bool = prop(
        BOOLEAN, "true", None, LOW, "Serve clients that know no batches", retired=True
    )
    log_message_timestamp_type: str = prop(
        STRING, "CreateTime", TIMESTAMP_TYPES, MEDIUM, "Whose time a record bears"
    )
    log_message_timestamp_before_max_ms: int = prop(
        LONG, _FOREVER, Range(0), MEDIUM, "How far a record may lie back"
    )
    log_message_timestamp_after_max_ms: int = prop(
        LONG, 3600000, Range(0), MEDIUM, "How far a record may lie ahead"
    )
    log_message_timestamp_difference_max_ms: int = prop(
        LONG, _FOREVER, Range(0), MEDIUM, "Kafka 3's one bound for both directions", retired=True
    )

    # compaction
    log_cleanup_policy: tuple[str, ...] = prop(
        LIST, "delete", CLEANUP_POLICIES, MEDIUM, "delete, compact, or both"
    )
    log_cleaner_enable: bool = prop(BOOLEAN, "true", None, MEDIUM, "Run compaction")
    log_cleaner_threads: int = prop(INT, 1, Range(0), MEDIUM, "Logs compacted side by side")
    log_cleaner_backoff_ms: int = prop(LONG, 15000, Range(0), MEDIUM, "Rest when nothing is to be compacted")
    log_cleaner_dedupe_buffer_size: int = prop(
        LONG, 134217728, None, MEDIUM, "Memory for keys while compacting"
    )
    log_cleaner_io_buffer_size: int = prop(
        INT, 524288, Range(0), MEDIUM, "Memory for reading while compacting"
    )
    log_cleaner_io_buffer_load_factor: float = prop(
        DOUBLE, "0.9", None, MEDIUM, "How full the key memory may get"
    )
    log_cleaner_io_max_bytes_per_second: float = prop(
        DOUBLE, "1.7976931348623157E308", None, MEDIUM, "Most bytes compaction reads and writes in a second"
    )
    log_cleaner_min_cleanable_ratio: float = prop(
        DOUBLE, "0.5", Range(0, 1), MEDIUM, "Dirty share that starts work"
    )
    log_cleaner_delete_retention_ms: int = prop(
        LONG, 86400000, Range(0), MEDIUM, "How long a deletion stays readable"
    )
    log_cleaner_min_compaction_lag_ms: int = prop(
        LONG, 0, Range(0), MEDIUM, "Age below which nothing is compacted"
    )
    log_cleaner_max_compaction_lag_ms: int = prop(
        LONG, _FOREVER, Range(1), MEDIUM, "Age at which compaction is due"
    )

    # network
    socket_request_max_bytes: int = prop(INT, 104857600, Range(1), HIGH, "Largest request accepted")
    socket_send_buffer_bytes: int = prop(INT, 102400, None, HIGH, "SO_SNDBUF, -1 for the system's own")
    socket_receive_buffer_bytes: int = prop(INT, 102400, None, HIGH, "SO_RCVBUF, -1 for the system's own")
    socket_listen_backlog_size: int = prop(INT, 50, Range(1), MEDIUM, "Connections waiting to be accepted")
    connections_max_idle_ms: int = prop(
        LONG, 600000, None, MEDIUM, "Idle time after which a connection is closed"
    )
    max_connections: int = prop(INT, 2147483647, Range(0), MEDIUM, "Connections of the whole broker")
    max_connections_per_ip: int = prop(INT, 2147483647, Range(0), MEDIUM, "Connections from one address")
    max_connections_per_ip_overrides: Mapping[str, int] = prop(
        STRING, "", None, MEDIUM, "address:count pairs that stand before max.connections.per.ip"
    )
    fetch_max_bytes: int = prop(INT, 57671680, Range(1024), MEDIUM, "Most bytes one fetch returns")
    max_incremental_fetch_session_cache_slots: int = prop(
        INT, 1000, Range(0), MEDIUM, "Fetch sessions remembered"
    )
    max_request_partition_size_limit: int = prop(
        INT, 2000, Range(1), MEDIUM, "Partitions described in one response"
    )

    # producers, groups, offsets
    producer_id_expiration_ms: int = prop(
        INT, 86400000, Range(1), LOW, "Silence after which a producer is forgotten"
    )
    producer_id_expiration_check_interval_ms: int = prop(
        INT, 600000, Range(1), LOW, "How often forgotten producers are looked for", internal=True
    )
    group_min_session_timeout_ms: int = prop(INT, 6000, None, MEDIUM, "Shortest session a member may ask for")
    group_max_session_timeout_ms: int = prop(
        INT, 1800000, None, MEDIUM, "Longest session a member may ask for"
    )
    group_initial_rebalance_delay_ms: int = prop(INT, 3000, None, MEDIUM, "Wait for members of a new group")
    group_max_size: int = prop(INT, 2147483647, Range(1), MEDIUM, "Most members of a group")
    group_coordinator_rebalance_protocols: tuple[str, ...] = prop(
        LIST, "classic,consumer,streams", _REBALANCE_PROTOCOLS, MEDIUM, "Group protocols that may be spoken"
    )
    group_consumer_assignors: tuple[str, ...] = prop(
        LIST, "uniform,range", None, MEDIUM, "Assignors of the broker, the default first"
    )
    group_consumer_migration_policy: str = prop(
        STRING, "bidirectional", _MIGRATIONS, MEDIUM, "Whether live groups may change their protocol"
    )
    group_consumer_max_size: int = prop(
        INT, 2147483647, Range(1), MEDIUM, "Most members of a group of the new protocol"
    )
    group_consumer_session_timeout_ms: int = prop(
        INT, 45000, Range(1), MEDIUM, "Silence after which a member of the new protocol is gone"
    )
    group_consumer_min_session_timeout_ms: int = prop(
        INT, 45000, Range(1), MEDIUM, "Shortest session a group may set"
    )
    group_consumer_max_session_timeout_ms: int = prop(
        INT, 60000, Range(1), MEDIUM, "Longest session a group may set"
    )
    group_consumer_heartbeat_interval_ms: int = prop(
        INT, 5000, Range(1), MEDIUM, "How often members of the new protocol shall report"
    )
    group_consumer_min_heartbeat_interval_ms: int = prop(
        INT, 5000, Range(1), MEDIUM, "Shortest interval a group may set"
    )
    group_consumer_max_heartbeat_interval_ms: int = prop(
        INT, 15000, Range(1), MEDIUM, "Longest interval a group may set"
    )
    group_consumer_assignment_interval_ms: int = prop(
        INT, 1000, Range(0), MEDIUM, "Shortest time from one assignment of a group to its next"
    )
    group_consumer_min_assignment_interval_ms: int = prop(
        INT, 0, Range(0), MEDIUM, "Shortest assignment interval a group may set"
    )
    group_consumer_max_assignment_interval_ms: int = prop(
        INT, 15000, Range(0), MEDIUM, "Longest assignment interval a group may set"
    )
    group_consumer_regex_refresh_interval_ms: int = prop(
        INT, 600000, Range(10000), MEDIUM, "How often expressions are matched anew", internal=True
    )
    offset_metadata_max_bytes: int = prop(INT, 4096, None, HIGH, "Longest text kept with a committed offset")
    offsets_commit_timeout_ms: int = prop(
        INT, 5000, Range(1), HIGH, "How long a commit may wait for replicas"
    )
    offsets_load_buffer_size: int = prop(
        INT, 5242880, Range(1), HIGH, "Bytes read at a time when offsets are loaded"
    )
    offsets_retention_minutes: int = prop(
        INT, 10080, Range(1), HIGH, "How long offsets of an empty group are kept"
    )
    offsets_retention_check_interval_ms: int = prop(
        LONG, 600000, Range(1), HIGH, "How often old offsets are dropped"
    )
    offsets_topic_num_partitions: int = prop(INT, 50, Range(1), HIGH, "Partitions of __consumer_offsets")
    offsets_topic_replication_factor: int = prop(SHORT, 3, Range(1), HIGH, "Replicas of __consumer_offsets")
    offsets_topic_segment_bytes: int = prop(
        INT, 104857600, Range(1), HIGH, "Segment size of __consumer_offsets"
    )
    offsets_topic_compression_codec: int = prop(
        INT, 0, Range(0, 4), HIGH, "Codec number in __consumer_offsets"
    )

    @property
    def serves_consumer_protocol(self) -> bool:
        """Whether groups of the new protocol (KIP-848) are served."""
        return "consumer" in self.group_coordinator_rebalance_protocols

    @classmethod
    def load(
        cls, properties: Mapping[str, str], *, hostname: Callable[[], str] = socket.getfqdn
    ) -> BrokerConfig:
        """Check `properties` and fill in the rest; ConfigError names the first that cannot be served."""
        given, warnings = resolve.accept(properties, KNOWN_KEYS)
        values = resolve.parse(given, KNOWN_KEYS)
        in_force, notes = resolve.in_force(values, given, hostname)
        attributes: dict[str, Any] = {
            name: in_force.get(name, values[key.name]) for name, key in _KEY_OF_ATTRIBUTE.items()
        }
        return cls(given=given, values=values, warnings=(*warnings, *notes), **attributes)


_KEY_OF_ATTRIBUTE: Mapping[str, ConfigKey] = {
    item.name: dataclasses.replace(item.metadata["key"], name=item.name.replace("_", "."))
    for item in dataclasses.fields(BrokerConfig)
    if "key" in item.metadata
}
KNOWN_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in (*_KEY_OF_ATTRIBUTE.values(), *INERT_KEYS)}
