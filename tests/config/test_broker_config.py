"""The broker's properties: Kafka's defaults and precedence, and errors that name what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.config import KNOWN_KEYS, BrokerConfig, ConfigError, Endpoint

HOUR_MS = 3_600_000


def load(**properties: str) -> BrokerConfig:
    return BrokerConfig.load(
        {k.replace("_", "."): v for k, v in properties.items()}, hostname=lambda: "this.host"
    )


def error_of(properties: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(properties, hostname=lambda: "this.host")
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_nothing_given_is_kafka_as_shipped() -> None:
    config = load()
    assert config.broker_id == -1
    assert config.listeners == (Endpoint("PLAINTEXT", "PLAINTEXT", "", 9092),)
    assert config.log_dirs == (Path("/tmp/kafka-logs"),)
    assert (config.num_partitions, config.default_replication_factor) == (1, 1)
    assert config.auto_create_topics_enable is True
    assert config.log_retention_ms == config.log_roll_ms == 168 * HOUR_MS
    assert config.log_flush_interval_ms == config.log_flush_interval_messages == 2**63 - 1
    assert config.log_cleaner_min_cleanable_ratio == 0.5
    assert config.offsets_topic_num_partitions == 50
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("properties", "attribute", "expected"),
    [
        ({"log.retention.hours": "2"}, "log_retention_ms", 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "log_retention_ms", 180_000),
        (
            {"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"},
            "log_retention_ms",
            4,
        ),
        ({"log.retention.hours": "-1"}, "log_retention_ms", -1),
        ({"log.roll.hours": "2"}, "log_roll_ms", 2 * HOUR_MS),
        ({"log.roll.hours": "2", "log.roll.ms": "5"}, "log_roll_ms", 5),
        ({"log.roll.jitter.hours": "1"}, "log_roll_jitter_ms", HOUR_MS),
        ({"log.roll.jitter.hours": "1", "log.roll.jitter.ms": "6"}, "log_roll_jitter_ms", 6),
        ({"log.flush.scheduler.interval.ms": "7"}, "log_flush_interval_ms", 7),
        ({"log.flush.scheduler.interval.ms": "7", "log.flush.interval.ms": "8"}, "log_flush_interval_ms", 8),
        ({"log.dir": "one"}, "log_dirs", (Path("one"),)),
        ({"log.dir": "one", "log.dirs": "two, three"}, "log_dirs", (Path("two"), Path("three"))),
        ({"node.id": "7"}, "broker_id", 7),
        ({"broker.id": "7"}, "node_id", 7),
        ({"log.message.timestamp.difference.max.ms": "9"}, "log_message_timestamp_before_max_ms", 9),
        (
            {
                "log.message.timestamp.difference.max.ms": "9",
                "log.message.timestamp.after.max.ms": "10",
            },
            "log_message_timestamp_after_max_ms",
            10,
        ),
        (
            {"max.connections.per.ip.overrides": "host:3, 127.0.0.1:4"},
            "max_connections_per_ip_overrides",
            {"host": 3, "127.0.0.1": 4},
        ),
    ],
)
def test_the_more_precise_property_wins(properties: dict[str, str], attribute: str, expected: object) -> None:
    assert getattr(BrokerConfig.load(properties), attribute) == expected


def test_an_unknown_property_is_refused_with_the_nearest_name() -> None:
    assert error_of({"num.partition": "3"}) == "num.partition: unknown property, did you mean num.partitions?"
    assert error_of({"zzzzzzzz": "3"}) == "zzzzzzzz: unknown property"


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"num.partitions": "many"}, "num.partitions: Not a number of type INT"),
        ({"num.partitions": "1_0"}, "num.partitions: Not a number of type INT"),
        ({"num.partitions": "0"}, "num.partitions: Value must be at least 1"),
        ({"log.segment.bytes": "99999999999"}, "log.segment.bytes: Not a number of type INT"),
        ({"auto.create.topics.enable": "yes"}, "auto.create.topics.enable: Expected value to be either"),
        ({"log.cleaner.min.cleanable.ratio": "2"}, "log.cleaner.min.cleanable.ratio: Value must be no more"),
        ({"log.cleaner.io.buffer.load.factor": "nan"}, "log.cleaner.io.buffer.load.factor"),
        ({"compression.type": "brotli"}, "compression.type: String must be one of"),
        ({"log.cleanup.policy": "delete,shred"}, "Invalid value shred for configuration log.cleanup.policy"),
        ({"num.io.threads": "x"}, "num.io.threads: Not a number of type INT"),
        ({"log.retention.ms": "0"}, "log.retention.ms"),
        ({"log.roll.ms": "0"}, "log.roll.ms"),
        ({"log.dirs": ""}, "log.dirs"),
        ({"log.dirs": "a,a"}, "log.dirs"),
        ({"broker.id": "1", "node.id": "2"}, "node.id: 2 differs from broker.id 1"),
        ({"zookeeper.login": "somebody"}, "zookeeper.login: expected user:password"),
        ({"zookeeper.set.acl": "true"}, "zookeeper.set.acl: true needs a login"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip"),
        ({"max.connections.per.ip.overrides": "host"}, "max.connections.per.ip.overrides"),
        ({"group.min.session.timeout.ms": "9", "group.max.session.timeout.ms": "8"}, "group.min.session"),
        ({"listeners": "localhost:9092"}, "listeners: 'localhost:9092' is not NAME://host:port"),
        ({"listeners": "PLAINTEXT://:99999"}, "listeners"),
        ({"listeners": ""}, "listeners: at least one"),
        (
            {"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"},
            "listeners: each listener must have a different name",
        ),
        ({"listeners": "INSIDE://:1"}, "listeners: no security protocol defined for listener INSIDE"),
        ({"listeners": "SSL://:9093"}, "listeners: SSL uses SSL, only PLAINTEXT is served"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "advertised.listeners: 0.0.0.0"),
        ({"advertised.listeners": "SSL://here:1"}, "advertised.listeners: SSL is not among"),
        ({"listener.security.protocol.map": "A=B"}, "listener.security.protocol.map"),
        ({"inter.broker.listener.name": "OTHER"}, "inter.broker.listener.name: OTHER is not among"),
        ({"security.inter.broker.protocol": "SSL"}, "security.inter.broker.protocol: SSL is not served"),
    ],
)
def test_an_error_names_the_property(properties: dict[str, str], named: str) -> None:
    assert named in error_of(properties)


def test_two_listeners_may_not_share_a_port_but_may_both_take_any() -> None:
    protocols = "A:PLAINTEXT,B:PLAINTEXT"
    shared = {"listeners": "A://:9092,B://:9092", "listener.security.protocol.map": protocols}
    assert "share port 9092" in error_of(shared)
    config = BrokerConfig.load({**shared, "listeners": "A://127.0.0.1:0,B://[::1]:0"})
    assert [str(endpoint) for endpoint in config.listeners] == ["A://127.0.0.1:0", "B://[::1]:0"]
    assert config.inter_broker_listener_name == "A"


def test_clients_are_told_the_machines_name_unless_an_address_is_given() -> None:
    assert str(load().advertised_listeners[0]) == "PLAINTEXT://this.host:9092"
    assert str(load(listeners="PLAINTEXT://127.0.0.1:0").advertised_listeners[0]) == "PLAINTEXT://127.0.0.1:0"
    told = load(advertised_listeners="plaintext://public.example:19092").advertised_listeners
    assert told == (Endpoint("PLAINTEXT", "PLAINTEXT", "public.example", 19092),)


def test_a_kraft_server_properties_loads_with_its_controller_listener_left_closed() -> None:
    config = BrokerConfig.load(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
    )
    assert [endpoint.name for endpoint in config.listeners] == ["PLAINTEXT"]
    assert [warning.split(":")[0] for warning in config.warnings] == [
        "process.roles",
        "controller.quorum.voters",
        "listeners",
    ]


def test_a_known_property_without_effect_is_accepted_with_a_warning() -> None:
    config = BrokerConfig.load(
        {"num.io.threads": "4", "listener.name.internal.ssl.keystore.type": "PEM", "rsm.config.anything": "x"}
    )
    assert config.warnings[0] == "num.io.threads: known to Apache Kafka, without effect here"
    assert len(config.warnings) == 3


def test_every_declared_default_is_a_valid_value_and_every_property_has_a_doc() -> None:
    for key in KNOWN_KEYS.values():
        key.parse(key.default)
        assert key.doc
        assert "\n" not in key.doc
