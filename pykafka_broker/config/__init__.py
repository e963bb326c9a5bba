"""Kafka's own property names: typed, validated, documented."""

from __future__ import annotations

from pykafka_broker.config.broker import KNOWN_KEYS, BrokerConfig
from pykafka_broker.config.describe import ConfigEntry, ConfigSource, Synonym, describe_broker, describe_topic
from pykafka_broker.config.dynamic import (
    FOLLOWER_RATE,
    LEADER_RATE,
    alter_broker,
    describe_default,
    describe_running_broker,
    describe_topic_here,
    dynamic_long,
    in_force_for_logs,
    validate_broker,
)
from pykafka_broker.config.listeners import Endpoint
from pykafka_broker.config.properties import parse_properties, read_properties
from pykafka_broker.config.topic import (
    AlterOp,
    alter,
    check_form,
    log_config,
    topic_value,
    validate,
    validate_all,
)
from pykafka_broker.config.topic_keys import TOPIC_KEYS
from pykafka_broker.config.values import ConfigError, ConfigKey, ConfigType

__all__ = [
    "FOLLOWER_RATE",
    "KNOWN_KEYS",
    "LEADER_RATE",
    "TOPIC_KEYS",
    "AlterOp",
    "BrokerConfig",
    "ConfigEntry",
    "ConfigError",
    "ConfigKey",
    "ConfigSource",
    "ConfigType",
    "Endpoint",
    "Synonym",
    "alter",
    "alter_broker",
    "check_form",
    "describe_broker",
    "describe_default",
    "describe_running_broker",
    "describe_topic",
    "describe_topic_here",
    "dynamic_long",
    "in_force_for_logs",
    "log_config",
    "parse_properties",
    "read_properties",
    "topic_value",
    "validate",
    "validate_all",
    "validate_broker",
]
