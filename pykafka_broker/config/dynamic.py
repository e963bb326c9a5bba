"""Properties of brokers that may change while they run: for one broker, or for all that have no value of their own.

Kafka lets more of them change; those that would have no effect here before the next start are refused."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pykafka_broker.config.broker import KNOWN_KEYS, BrokerConfig
from pykafka_broker.config.describe import (
    ConfigEntry,
    ConfigSource,
    Synonym,
    describe_broker,
    describe_topic,
)
from pykafka_broker.config.topic import edit
from pykafka_broker.config.topic_keys import TOPIC_KEYS
from pykafka_broker.config.values import (
    LONG_MAX,
    ConfigError,
    ConfigKey,
    ConfigType,
    InvalidValueError,
    Range,
    show,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

log = logging.getLogger(__name__)

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"

_ONLY_DYNAMIC: Final = {
    name: ConfigKey(name, ConfigType.LONG, str(LONG_MAX), Range(0))
    for name in (LEADER_RATE, FOLLOWER_RATE, "replica.alter.log.dirs.io.max.bytes.per.second")
}
"""They have no place in a file of properties. The last limits nothing: no replica moves between directories here."""

_OF_LOGS: Final = {
    topic_key.synonym: KNOWN_KEYS[topic_key.synonym]
    for topic_key in TOPIC_KEYS.values()
    if topic_key.synonym is not None and not topic_key.key.retired
}
"""What topics go by that have no value of their own, `unclean.leader.election.enable` among them."""

_DYNAMIC: Final = _ONLY_DYNAMIC | _OF_LOGS


def alter_broker(overrides: Mapping[str, str], ops: Sequence[tuple[str, int, str | None]]) -> dict[str, str]:
    """`overrides` after (name, operation, value) changes, checked as a whole; raises KafkaError."""
    changed = edit(overrides, ops, _DYNAMIC)
    validate_broker(changed)
    return changed


def validate_broker(overrides: Mapping[str, str]) -> None:
    """KafkaError, in Kafka's words, unless a running broker can take these. Names nobody knows mean nothing."""
    fixed = [name for name in overrides if name in KNOWN_KEYS and name not in _DYNAMIC]
    if fixed:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
        )
    try:
        for name, value in overrides.items():
            if name in _DYNAMIC:
                _DYNAMIC[name].parse(value)
    except InvalidValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


def dynamic_long(name: str, own: Mapping[str, str], default: Mapping[str, str]) -> int:
    """The number in force: the broker's own, else the one for all, else none at all."""
    value = _ONLY_DYNAMIC[name].parse(own.get(name, default.get(name, str(LONG_MAX))))
    assert isinstance(value, int)
    return value


def in_force_for_logs(
    broker: BrokerConfig, own: Mapping[str, str], default: Mapping[str, str]
) -> BrokerConfig:
    """The broker with what was changed about its logs while it ran; the very same if nothing was."""
    changed = {name: value for name, value in {**default, **own}.items() if name in _OF_LOGS}
    if not changed:
        return broker
    try:
        return BrokerConfig.load({**broker.given, **changed}, hostname=lambda: "localhost")
    except ConfigError as error:  # somebody wrote it into the tree by hand
        log.warning("dynamic settings that cannot be taken are left alone: %s", error)
        return broker


def describe_running_broker(
    broker: BrokerConfig, own: Mapping[str, str], default: Mapping[str, str]
) -> list[ConfigEntry]:
    """Every property of the broker, those that were changed while it ran with what they were changed to."""
    static = {entry.name: entry for entry in describe_broker(broker)}
    may_change = {name: replace(static[name], read_only=False) for name in _DYNAMIC if name in static}
    changed = {name: _entry(name, own, default, static) for name in (*own, *default)}
    described = static | may_change | {name: entry for name, entry in changed.items() if entry is not None}
    return list(described.values())


def describe_topic_here(
    broker: BrokerConfig,
    overrides: Mapping[str, str],
    broker_configs: Mapping[int | None, Mapping[str, str]],
    broker_id: int,
) -> list[ConfigEntry]:
    """Every setting of a topic, those it takes from the broker as they are now."""
    own, default = broker_configs.get(broker_id, {}), broker_configs.get(None, {})
    changed = ((ConfigSource.DYNAMIC_BROKER, own), (ConfigSource.DYNAMIC_DEFAULT_BROKER, default))
    return describe_topic(broker, overrides, in_force_for_logs(broker, own, default), changed)


def describe_default(default: Mapping[str, str]) -> list[ConfigEntry]:
    """What was set for all brokers."""
    entries = (_entry(name, {}, default, {}) for name in default)
    return [entry for entry in entries if entry is not None]


def _entry(
    name: str, own: Mapping[str, str], default: Mapping[str, str], static: Mapping[str, ConfigEntry]
) -> ConfigEntry | None:
    """None for a property that nobody set and that has no value without being set."""
    key, known = _DYNAMIC.get(name), static.get(name)
    synonyms = (*_synonyms(name, key, own, default), *(known.synonyms if known else ()))
    if not synonyms:
        return None
    source = synonyms[0].source
    return ConfigEntry(
        name=name,
        value=synonyms[0].value,
        source=source,
        read_only=key is None,
        is_default=source is ConfigSource.DEFAULT,
        is_sensitive=key is None,  # what nobody knows may be a secret
        type=key.type if key else ConfigType.UNKNOWN,
        documentation=key.doc if key else "",
        synonyms=synonyms,
    )


def _synonyms(
    name: str, key: ConfigKey | None, own: Mapping[str, str], default: Mapping[str, str]
) -> Iterator[Synonym]:
    for config, source in (
        (own, ConfigSource.DYNAMIC_BROKER),
        (default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
    ):
        if name in config:
            yield Synonym(name, show(key.parse(config[name])) if key else None, source)
