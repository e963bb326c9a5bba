"""DescribeConfigs: values, sources and synonyms as an Apache Kafka 4.3.1 with such properties tells them.

`listeners` and `log.dirs` were set in the Kafka that was asked; their rows here follow from its rule.
"""

from __future__ import annotations

import pytest

from pykafka_broker.config import (
    BrokerConfig,
    ConfigEntry,
    ConfigSource,
    ConfigType,
    describe_broker,
    describe_topic,
)

BROKER = BrokerConfig.load(
    {
        "broker.id": "1",
        "log.retention.hours": "100",
        "log.retention.minutes": "9000",
        "log.segment.bytes": "100000000",
        "ssl.key.password": "secret",
    }
)
OVERRIDES = {"retention.ms": "1000", "cleanup.policy": "compact,delete"}


def told(entries: list[ConfigEntry], name: str) -> tuple[str | None, list[str]]:
    entry = next(entry for entry in entries if entry.name == name)
    return entry.value, [f"{s.source.name}:{s.name}={s.value}" for s in entry.synonyms]


@pytest.mark.parametrize(
    ("name", "value", "synonyms"),
    [
        (
            "cleanup.policy",
            "compact,delete",
            ["DYNAMIC_TOPIC:cleanup.policy=compact,delete", "DEFAULT:log.cleanup.policy=delete"],
        ),
        ("retention.ms", "1000", ["DYNAMIC_TOPIC:retention.ms=1000"]),
        (
            "segment.bytes",
            "100000000",
            ["STATIC_BROKER:log.segment.bytes=100000000", "DEFAULT:log.segment.bytes=1073741824"],
        ),
        ("segment.ms", "604800000", []),
        ("flush.ms", "9223372036854775807", []),
        ("min.cleanable.dirty.ratio", "0.5", ["DEFAULT:log.cleaner.min.cleanable.ratio=0.5"]),
        ("max.message.bytes", "1048588", ["DEFAULT:message.max.bytes=1048588"]),
        ("preallocate", "false", ["DEFAULT:log.preallocate=false"]),
        ("leader.replication.throttled.replicas", "", []),
        ("remote.storage.enable", "false", []),
    ],
)
def test_a_topic_setting_is_told_with_what_it_stands_before(
    name: str, value: str, synonyms: list[str]
) -> None:
    assert told(describe_topic(BROKER, OVERRIDES), name) == (value, synonyms)


@pytest.mark.parametrize(
    ("name", "value", "synonyms"),
    [
        ("broker.id", "1", ["STATIC_BROKER:broker.id=1", "DEFAULT:broker.id=-1"]),
        ("log.retention.ms", None, []),
        (
            "log.retention.minutes",
            "9000",
            [
                "STATIC_BROKER:log.retention.minutes=9000",
                "STATIC_BROKER:log.retention.hours=100",
                "DEFAULT:log.retention.hours=168",
            ],
        ),
        (
            "log.retention.hours",
            "100",
            ["STATIC_BROKER:log.retention.hours=100", "DEFAULT:log.retention.hours=168"],
        ),
        ("log.dir", "/tmp/kafka-logs", ["DEFAULT:log.dir=/tmp/kafka-logs"]),
        ("log.dirs", None, []),
        ("listeners", "PLAINTEXT://:9092", ["DEFAULT:listeners=PLAINTEXT://:9092"]),
        (
            "log.cleaner.io.max.bytes.per.second",
            "1.7976931348623157E308",
            ["DEFAULT:log.cleaner.io.max.bytes.per.second=1.7976931348623157E308"],
        ),
    ],
)
def test_a_broker_property_is_told_with_what_it_stands_before(
    name: str, value: str | None, synonyms: list[str]
) -> None:
    assert told(describe_broker(BROKER), name) == (value, synonyms)


def test_the_source_is_that_of_the_value_in_force() -> None:
    sources = {entry.name: entry for entry in describe_topic(BROKER, OVERRIDES)}
    assert sources["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC
    assert sources["segment.bytes"].source is ConfigSource.STATIC_BROKER
    assert sources["preallocate"].source is ConfigSource.DEFAULT
    assert (sources["preallocate"].is_default, sources["segment.bytes"].is_default) == (True, False)
    assert sources["cleanup.policy"].type is ConfigType.LIST


def test_a_password_is_never_told() -> None:
    entry = next(entry for entry in describe_broker(BROKER) if entry.name == "ssl.key.password")
    assert entry.is_sensitive
    assert entry.value is None
    assert [synonym.value for synonym in entry.synonyms] == [None]


def test_a_setting_kafka_4_dropped_is_told_only_where_it_is_set() -> None:
    name = "message.format.version"
    assert name not in {entry.name for entry in describe_topic(BROKER, {})}
    assert name in {entry.name for entry in describe_topic(BROKER, {name: "3.0-IV1"})}
