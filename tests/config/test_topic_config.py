"""Topic settings: Kafka's verdict on a value, the LogConfig they make, and changes to them."""

from __future__ import annotations

import pytest

from pykafka_broker.config import (
    TOPIC_KEYS,
    AlterOp,
    BrokerConfig,
    alter,
    log_config,
    topic_value,
    validate,
    validate_all,
)
from pykafka_broker.log.log_config import LogConfig, TimestampType
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.compression import Codec

BROKER = BrokerConfig.load({})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [  # what Apache Kafka 4.3.1 answered to the same values
        ("nope", "1", "Unknown topic config name: nope"),
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ("retention.ms", "-5", "Invalid value -5 for configuration retention.ms: Value must be at least -1"),
        (
            "cleanup.policy",
            "foo",
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            "compression.type",
            "brotli",
            (
                "Invalid value brotli for configuration compression.type: "
                "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"
            ),
        ),
        (
            "compression.gzip.level",
            "0",
            (
                "Invalid value 0 for configuration compression.gzip.level: "
                "Value must be between 1 and 9 or equal to -1"
            ),
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "preallocate",
            "maybe",
            "Invalid value maybe for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "segment.bytes",
            "99999999999",
            "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "leader.replication.throttled.replicas",
            "x",
            (
                "Invalid value [x] for configuration leader.replication.throttled.replicas: "
                "leader.replication.throttled.replicas must be the literal '*' or a list of replicas "
                "in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
            ),
        ),
        (
            "min.insync.replicas",
            "",
            "Invalid value  for configuration min.insync.replicas: Not a number of type INT",
        ),
    ],
)
def test_a_bad_value_gets_kafkas_own_words(name: str, value: str, message: str) -> None:
    with pytest.raises(KafkaError) as caught:
        validate(name, value)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_CONFIG, message)


@pytest.mark.parametrize(
    ("name", "value", "typed"),
    [
        ("retention.ms", "-1", -1),
        ("segment.bytes", " 2000000 ", 2000000),
        ("preallocate", "TRUE", True),
        ("min.cleanable.dirty.ratio", "0.50", 0.5),
        ("cleanup.policy", " compact , delete ", ("compact", "delete")),
        ("cleanup.policy", "", ()),
        ("compression.gzip.level", "-1", -1),
        ("leader.replication.throttled.replicas", "*", ("*",)),
        ("leader.replication.throttled.replicas", "0:1,1:2", ("0:1", "1:2")),
    ],
)
def test_a_good_value_is_typed(name: str, value: str, typed: object) -> None:
    assert validate(name, value) == typed


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(KafkaError, match=r"min.compaction.lag.ms \(10\) > max.compaction.lag.ms \(5\)"):
        validate_all({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})
    with pytest.raises(KafkaError, match="Tiered Storage"):
        validate_all({"remote.storage.enable": "true"})


def test_a_topic_without_overrides_on_a_default_broker_is_the_default_log() -> None:
    assert log_config(BROKER, {}) == LogConfig()


def test_each_setting_reaches_its_place_in_the_log() -> None:
    overrides = {
        "segment.bytes": "101",
        "segment.ms": "102",
        "segment.jitter.ms": "103",
        "segment.index.bytes": "104",
        "index.interval.bytes": "105",
        "retention.ms": "106",
        "retention.bytes": "107",
        "file.delete.delay.ms": "108",
        "flush.messages": "109",
        "flush.ms": "110",
        "max.message.bytes": "111",
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.before.max.ms": "112",
        "message.timestamp.after.max.ms": "113",
        "compression.type": "zstd",
        "compression.zstd.level": "7",
        "cleanup.policy": "compact",
        "delete.retention.ms": "114",
        "min.compaction.lag.ms": "115",
        "max.compaction.lag.ms": "116",
        "min.cleanable.dirty.ratio": "0.25",
        "preallocate": "true",
    }
    assert log_config(BROKER, overrides) == LogConfig(
        segment_bytes=101,
        segment_ms=102,
        segment_jitter_ms=103,
        segment_index_bytes=104,
        index_interval_bytes=105,
        retention_ms=106,
        retention_bytes=107,
        file_delete_delay_ms=108,
        flush_messages=109,
        flush_ms=110,
        max_message_bytes=111,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        timestamp_before_max_ms=112,
        timestamp_after_max_ms=113,
        compression=Codec.ZSTD,
        compression_level=7,
        delete=False,
        compact=True,
        delete_retention_ms=114,
        min_compaction_lag_ms=115,
        max_compaction_lag_ms=116,
        min_cleanable_dirty_ratio=0.25,
        preallocate=True,
    )


def test_the_broker_decides_what_the_topic_leaves_open() -> None:
    broker = BrokerConfig.load(
        {
            "log.retention.minutes": "2",
            "log.roll.hours": "3",
            "log.segment.bytes": "1000",
            "min.insync.replicas": "2",
        }
    )
    config = log_config(broker, {"segment.bytes": "2000"})
    assert (config.retention_ms, config.segment_ms, config.segment_bytes) == (120_000, 10_800_000, 2000)
    assert topic_value(broker, {}, "min.insync.replicas") == 2
    assert topic_value(broker, {"min.insync.replicas": "1"}, "min.insync.replicas") == 1


@pytest.mark.parametrize(
    ("kind", "codec", "level"),
    [
        ("producer", None, None),
        ("uncompressed", Codec.NONE, None),
        ("gzip", Codec.GZIP, None),
        ("snappy", Codec.SNAPPY, None),
        ("lz4", Codec.LZ4, 9),
        ("zstd", Codec.ZSTD, 3),
    ],
)
def test_compression_type_names_a_codec_and_its_level(
    kind: str, codec: Codec | None, level: int | None
) -> None:
    config = log_config(BROKER, {"compression.type": kind})
    assert (config.compression, config.compression_level) == (codec, level)


def test_kafka_3s_single_timestamp_bound_stands_for_both_directions() -> None:
    config = log_config(
        BROKER, {"message.timestamp.difference.max.ms": "5", "message.timestamp.after.max.ms": "6"}
    )
    assert (config.timestamp_before_max_ms, config.timestamp_after_max_ms) == (5, 6)


def test_every_topic_default_is_valid_and_every_broker_property_behind_one_exists() -> None:
    for name, topic_key in TOPIC_KEYS.items():
        assert topic_value(BROKER, {}, name) == topic_key.key.parse(topic_key.key.default)


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        ({}, ("cleanup.policy", AlterOp.APPEND, "compact"), {"cleanup.policy": "delete,compact"}),
        (
            {"cleanup.policy": "compact"},
            ("cleanup.policy", AlterOp.APPEND, "compact"),
            {"cleanup.policy": "compact"},
        ),
        (
            {"cleanup.policy": "delete,compact"},
            ("cleanup.policy", AlterOp.SUBTRACT, "delete"),
            {"cleanup.policy": "compact"},
        ),
        (
            {"cleanup.policy": "compact"},
            ("cleanup.policy", AlterOp.SUBTRACT, "compact"),
            {"cleanup.policy": ""},
        ),
        ({"retention.ms": "1"}, ("retention.ms", AlterOp.DELETE, None), {}),
        ({"retention.ms": "1"}, ("nope", AlterOp.DELETE, ""), {"retention.ms": "1"}),
        ({"retention.ms": "1"}, ("retention.ms", AlterOp.SET, "2"), {"retention.ms": "2"}),
    ],
)
def test_an_operation_changes_the_overrides(
    before: dict[str, str], op: tuple[str, int, str | None], after: dict[str, str]
) -> None:
    untouched = dict(before)
    assert alter(before, [op]) == after
    assert before == untouched


@pytest.mark.parametrize(
    ("ops", "code", "message"),
    [
        (
            [("retention.ms", AlterOp.APPEND, "5")],
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            [("retention.ms", AlterOp.SET, None)],
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
        (
            [("retention.ms", AlterOp.SET, "1"), ("retention.ms", AlterOp.SET, "2")],
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        ([("nope", AlterOp.SET, "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: nope"),
    ],
)
def test_a_refused_operation_has_kafkas_code_and_words(
    ops: list[tuple[str, int, str | None]], code: ErrorCode, message: str
) -> None:
    with pytest.raises(KafkaError) as caught:
        validate_all(alter({}, ops))
    assert (caught.value.code, caught.value.message) == (code, message)


def test_an_operation_nobody_knows_is_an_invalid_request() -> None:
    with pytest.raises(KafkaError) as caught:
        alter({}, [("retention.ms", 9, "1")])
    assert caught.value.code is ErrorCode.INVALID_REQUEST
