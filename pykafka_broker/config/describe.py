"""What DescribeConfigs tells: each property's value, where it comes from, and what it stands before."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykafka_broker.config.broker import KNOWN_KEYS
from pykafka_broker.config.topic import topic_value
from pykafka_broker.config.topic_keys import TOPIC_KEYS
from pykafka_broker.config.values import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pykafka_broker.config.broker import BrokerConfig
    from pykafka_broker.config.values import ConfigKey, ConfigType

_FAMILIES = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
# Read one way only: the scheduler's interval stands in for log.flush.interval.ms, not the reverse.
_FLUSH = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")


class ConfigSource(enum.IntEnum):
    """Where a value comes from, by its number in the response."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One described property. `synonyms` runs from what is in force to what would be without it."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    is_default: bool
    is_sensitive: bool
    type: ConfigType
    documentation: str
    synonyms: tuple[Synonym, ...]


def describe_topic(
    broker: BrokerConfig,
    overrides: Mapping[str, str],
    in_force: BrokerConfig | None = None,
    changed: Sequence[tuple[ConfigSource, Mapping[str, str]]] = (),
) -> list[ConfigEntry]:
    """Every setting of a topic that has these overrides, on a broker of which some were `changed` while it ran."""
    entries = []
    for name, topic_key in sorted(TOPIC_KEYS.items()):
        if topic_key.key.retired and name not in overrides:
            continue
        value = show(topic_value(in_force or broker, overrides, name))
        synonym = topic_key.synonym
        synonyms = () if synonym is None else tuple(_broker_synonyms(broker, synonym))
        if synonym is not None:
            dynamic = [(source, config[synonym]) for source, config in changed if synonym in config]
            key = KNOWN_KEYS[synonym]
            synonyms = (
                *(Synonym(synonym, _printed(key, text), source) for source, text in dynamic),
                *synonyms,
            )
        if name in overrides:
            synonyms = (Synonym(name, value, ConfigSource.DYNAMIC_TOPIC), *synonyms)
        entries.append(_entry(topic_key.key, value, synonyms, read_only=False))
    return entries


def describe_broker(broker: BrokerConfig) -> list[ConfigEntry]:
    """Every property of the broker: those of the newest Kafka, and any older one that was given.

    All are read-only: this broker takes its properties at start.
    """
    entries = []
    for name, key in sorted(KNOWN_KEYS.items()):
        if key.internal or (key.retired and name not in broker.given):
            continue
        value = None if key.is_sensitive else show(broker.values[name])
        entries.append(_entry(key, value, tuple(_broker_synonyms(broker, name)), read_only=True))
    return entries


def _entry(
    key: ConfigKey, value: str | None, synonyms: tuple[Synonym, ...], *, read_only: bool
) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigEntry(
        name=key.name,
        value=value,
        source=source,
        read_only=read_only,
        is_default=source is ConfigSource.DEFAULT,
        is_sensitive=key.is_sensitive,
        type=key.type,
        documentation=key.doc,
        synonyms=synonyms,
    )


def _broker_synonyms(broker: BrokerConfig, name: str) -> Iterator[Synonym]:
    """Given values first, then defaults; nothing that comes before the property's own name, as in Kafka."""
    reached = False
    for synonym in _every_synonym(broker, name):
        reached = reached or synonym.name == name
        if reached:
            yield synonym


def _every_synonym(broker: BrokerConfig, name: str) -> Iterator[Synonym]:
    family = _FLUSH if name == _FLUSH[0] else next((names for names in _FAMILIES if name in names), (name,))
    for member in family:
        if member in broker.given:
            yield Synonym(
                member, _printed(KNOWN_KEYS[member], broker.given[member]), ConfigSource.STATIC_BROKER
            )
    for member in family:
        key = KNOWN_KEYS[member]
        if key.default is not None:
            yield Synonym(member, _printed(key, key.default), ConfigSource.DEFAULT)


def _printed(key: ConfigKey, text: str) -> str | None:
    return None if key.is_sensitive else show(key.parse(text))
