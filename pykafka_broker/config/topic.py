"""A topic's settings: checked, changed, looked up behind the broker's own, and made into a LogConfig."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from pykafka_broker.config.topic_keys import SINGLE_TIMESTAMP_BOUND, TOPIC_KEYS
from pykafka_broker.config.values import ConfigType, InvalidValueError
from pykafka_broker.log.log_config import LogConfig, TimestampType
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.compression import Codec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pykafka_broker.config.broker import BrokerConfig
    from pykafka_broker.config.values import ConfigKey, Value


MAX_VALUE_BYTES = 0x7FFF
"""What a string of any request or response can hold; a list may be made longer in several steps."""


class AlterOp(enum.IntEnum):
    """Operations of IncrementalAlterConfigs, by their number in the request."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def validate(name: str, value: str | None) -> Value:
    """The typed value of a topic setting; INVALID_CONFIG in Kafka's words if it has none."""
    topic_key = TOPIC_KEYS.get(name)
    if topic_key is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    if value is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
    try:
        return topic_key.key.parse(value)
    except InvalidValueError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


def validate_all(overrides: Mapping[str, str | None]) -> None:
    """Check a topic's settings one by one, then those that bind each other."""
    values = {name: validate(name, value) for name, value in overrides.items()}
    least, most = values.get("min.compaction.lag.ms"), values.get("max.compaction.lag.ms")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})",
        )
    if values.get("remote.storage.enable"):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )


def alter(overrides: Mapping[str, str], ops: Sequence[tuple[str, int, str | None]]) -> dict[str, str]:
    """`overrides` after (name, operation, value) changes, which is for `validate_all` to look at; raises KafkaError."""
    return edit(overrides, ops, {name: topic_key.key for name, topic_key in TOPIC_KEYS.items()})


def edit(
    overrides: Mapping[str, str], ops: Sequence[tuple[str, int, str | None]], keys: Mapping[str, ConfigKey]
) -> dict[str, str]:
    """`overrides` after (name, operation, value) changes of properties among `keys`, their values not yet checked."""
    check_form(ops)
    changed = dict(overrides)
    for name, number, value in ops:
        if number not in set(AlterOp):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation type {number}")
        op = AlterOp(number)
        if op is AlterOp.DELETE:
            changed.pop(name, None)
            continue
        assert value is not None, "check_form refused it"
        if op is AlterOp.SET:
            changed[name] = value
        else:
            changed[name] = _edit_list(changed.get(name), name, keys.get(name), op, value)
            if len(changed[name].encode()) > MAX_VALUE_BYTES:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG,
                    "The configuration value cannot be added because it exceeds the maximum value size of"
                    f" {MAX_VALUE_BYTES} bytes.",
                )
    return changed


def check_form(ops: Sequence[tuple[str, int, str | None]]) -> None:
    """What is wrong with the changes whatever they are made to; raises KafkaError."""
    if len({name for name, _, _ in ops}) != len(ops):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    absent = [name for name, number, value in ops if value is None and number != AlterOp.DELETE]
    if absent:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(absent)}")


def _edit_list(current: str | None, name: str, key: ConfigKey | None, op: AlterOp, value: str) -> str:
    """A list with items added or taken away. An unset list starts from Kafka's default, not the broker's."""
    if key is None or key.type is not ConfigType.LIST:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Can't {op.name} to key {name} because its type is not LIST."
        )
    text = key.default if current is None else current
    items = [item.strip() for item in (text or "").split(",") if item.strip()]
    wanted = [item.strip() for item in value.split(",")]  # an empty one is wrong, and not passed over
    if op is AlterOp.APPEND:
        items += [item for item in dict.fromkeys(wanted) if item not in items]
    else:
        items = [item for item in items if item not in wanted]
    return ",".join(items)


def topic_value(broker: BrokerConfig, overrides: Mapping[str, str], name: str) -> Any:
    """What is in force for one topic setting: its own value, else the broker's, else Kafka's default."""
    if name in overrides:
        return validate(name, overrides[name])
    if (
        name in ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
        and SINGLE_TIMESTAMP_BOUND in overrides
    ):
        return validate(SINGLE_TIMESTAMP_BOUND, overrides[SINGLE_TIMESTAMP_BOUND])
    topic_key = TOPIC_KEYS[name]
    if topic_key.synonym is None:
        return topic_key.key.parse(topic_key.key.default)
    attribute = topic_key.synonym.replace(".", "_")
    return getattr(broker, attribute) if hasattr(broker, attribute) else broker.values[topic_key.synonym]


def log_config(broker: BrokerConfig, overrides: Mapping[str, str]) -> LogConfig:
    """What a log of a topic with these overrides goes by."""

    def of(name: str) -> Any:
        return topic_value(broker, overrides, name)

    codec, level = _compression(of("compression.type"), of)
    policy = of("cleanup.policy")
    log_append_time = of("message.timestamp.type") == "LogAppendTime"
    return LogConfig(
        segment_bytes=of("segment.bytes"),
        segment_ms=of("segment.ms"),
        segment_jitter_ms=of("segment.jitter.ms"),
        segment_index_bytes=of("segment.index.bytes"),
        index_interval_bytes=of("index.interval.bytes"),
        retention_ms=of("retention.ms"),
        retention_bytes=of("retention.bytes"),
        file_delete_delay_ms=of("file.delete.delay.ms"),
        flush_messages=of("flush.messages"),
        flush_ms=of("flush.ms"),
        max_message_bytes=of("max.message.bytes"),
        timestamp_type=TimestampType.LOG_APPEND_TIME if log_append_time else TimestampType.CREATE_TIME,
        timestamp_before_max_ms=of("message.timestamp.before.max.ms"),
        timestamp_after_max_ms=of("message.timestamp.after.max.ms"),
        compression=codec,
        compression_level=level,
        down_conversion=of("message.downconversion.enable"),
        delete="delete" in policy,
        compact="compact" in policy,
        delete_retention_ms=of("delete.retention.ms"),
        min_compaction_lag_ms=of("min.compaction.lag.ms"),
        max_compaction_lag_ms=of("max.compaction.lag.ms"),
        min_cleanable_dirty_ratio=of("min.cleanable.dirty.ratio"),
        min_insync_replicas=of("min.insync.replicas"),
        preallocate=of("preallocate"),
    )


def _compression(name: str, of: Callable[[str], Any]) -> tuple[Codec | None, int | None]:
    """Codec and level; no codec means batches stay as the producer sent them."""
    if name == "producer":
        return None, None
    if name in ("uncompressed", "snappy"):
        return (Codec.SNAPPY if name == "snappy" else Codec.NONE), None
    level = of(f"compression.{name}.level")
    return Codec[name.upper()], None if name == "gzip" and level == -1 else level
