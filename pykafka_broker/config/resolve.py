"""From property texts to the values in force: names checked, types parsed, Kafka's precedence applied."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykafka_broker.config.listeners import advertise, check_bindable, parse_endpoints, parse_protocol_map
from pykafka_broker.config.values import ConfigError, InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pykafka_broker.config.values import ConfigKey, Value

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_PLUGIN_PREFIXES = ("config.providers.", "rlmm.config.", "rsm.config.")
_OF_ONE_LISTENER = re.compile(r"listener\.name\.[^.]+\.(?:[^.]+\.)?(?P<base>.+)")


def accept(properties: Mapping[str, str], known: Mapping[str, ConfigKey]) -> tuple[dict[str, str], list[str]]:
    """The properties that count, and a warning for each that Kafka knows and that does nothing here."""
    given: dict[str, str] = {}
    warnings: list[str] = []
    for name, text in properties.items():
        key = known.get(name)
        if key is not None:
            given[name] = text if key.is_sensitive else text.strip()
        elif not name.startswith(_PLUGIN_PREFIXES) and not _is_of_one_listener(name, known):
            near = difflib.get_close_matches(name, known, n=1)
            raise ConfigError(f"{name}: unknown property" + (f", did you mean {near[0]}?" if near else ""))
        if key is None or not key.effect:
            warnings.append(f"{name}: known to Apache Kafka, without effect here")
    _pair_ids(given)
    return given, warnings


def _is_of_one_listener(name: str, known: Mapping[str, ConfigKey]) -> bool:
    match = _OF_ONE_LISTENER.fullmatch(name)
    return match is not None and (match["base"] in known or name.split(".", 3)[3] in known)


def _pair_ids(given: dict[str, str]) -> None:
    """broker.id and node.id are one thing: whichever is given fills the other."""
    broker, node = given.get("broker.id"), given.get("node.id")
    if broker is not None and node is not None and broker != node:
        raise ConfigError(
            f"node.id: {node} differs from broker.id {broker}, give one of them or the same for both"
        )
    if (number := broker if node is None else node) is not None:
        given["broker.id"] = given["node.id"] = number


def parse(given: Mapping[str, str], known: Mapping[str, ConfigKey]) -> dict[str, Value]:
    """Every known property's typed value, given or default."""
    try:
        return {name: key.parse(given.get(name, key.default)) for name, key in known.items()}
    except InvalidValueError as error:
        raise ConfigError(str(error)) from None


def in_force(
    values: Mapping[str, Value], given: Mapping[str, str], hostname: Callable[[], str]
) -> tuple[dict[str, Any], list[str]]:
    """Attributes whose value is decided by more than one property, and notes on what was left out."""
    endpoints, notes = _endpoints(values, hostname)
    decided: dict[str, Any] = {
        **endpoints,
        **_durations(values),
        **_timestamp_bounds(values, given),
        "log_dirs": _log_dirs(values),
        "max_connections_per_ip_overrides": _overrides(str(values["max.connections.per.ip.overrides"])),
        "controller_listener_names": values["controller.listener.names"] or (),
    }
    _check_together(values, decided)
    return decided, notes


def _first(values: Mapping[str, Value], *choices: tuple[str, int]) -> int:
    """The first of (property, unit) that has a value, in milliseconds."""
    for name, unit in choices:
        value = values[name]
        if isinstance(value, int):
            return value * unit
    raise AssertionError("the last choice always has a default")


def _durations(values: Mapping[str, Value]) -> dict[str, int]:
    retention = _first(
        values,
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    )
    if retention == 0:
        raise ConfigError("log.retention.ms: must be unlimited (-1) or, equal or greater than 1")
    roll = _first(values, ("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS))
    if roll < 1:
        raise ConfigError("log.roll.ms: must be equal or greater than 1")
    jitter = _first(values, ("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS))
    if jitter < 0:
        raise ConfigError("log.roll.jitter.ms: must be equal or greater than 0")
    flush = _first(values, ("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1))
    return {
        "log_retention_ms": max(retention, -1),
        "log_roll_ms": roll,
        "log_roll_jitter_ms": jitter,
        "log_flush_interval_ms": flush,
    }


def _timestamp_bounds(values: Mapping[str, Value], given: Mapping[str, str]) -> dict[str, Value]:
    """Kafka 3's single bound stands for a direction that has none of its own."""
    single = "log.message.timestamp.difference.max.ms"
    bounds = {}
    for name in ("log.message.timestamp.before.max.ms", "log.message.timestamp.after.max.ms"):
        source = single if single in given and name not in given else name
        bounds[name.replace(".", "_")] = values[source]
    return bounds


def _log_dirs(values: Mapping[str, Value]) -> tuple[Path, ...]:
    several = values["log.dirs"]
    paths = several if isinstance(several, tuple) else _strings(values["log.dir"])
    if not paths or not all(path.strip() for path in paths):
        raise ConfigError("log.dirs: at least one directory is needed, and none may be empty")
    if len(set(paths)) != len(paths):
        raise ConfigError("log.dirs: a directory is given twice")
    return tuple(Path(path.strip()) for path in paths)


def _overrides(text: str) -> dict[str, int]:
    found = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = item.rpartition(":")
        if not host or not count.strip().isdecimal():
            raise ConfigError(f"max.connections.per.ip.overrides: {item!r} is not address:count")
        found[host.strip()] = int(count)
    return found


def _endpoints(values: Mapping[str, Value], hostname: Callable[[], str]) -> tuple[dict[str, Any], list[str]]:
    controllers = {name.upper() for name in _strings(values["controller.listener.names"])}
    # As in Kafka, a controller listener needs no entry in the map.
    protocols = dict.fromkeys(controllers, "PLAINTEXT") | parse_protocol_map(
        str(values["listener.security.protocol.map"])
    )
    every = parse_endpoints("listeners", _strings(values["listeners"]), protocols)
    bound = tuple(endpoint for endpoint in every if endpoint.name not in controllers)
    check_bindable(bound)
    told = parse_endpoints("advertised.listeners", _strings(values["advertised.listeners"]), protocols)
    advertised = advertise(tuple(e for e in told if e.name not in controllers), bound, hostname())
    notes = [
        f"listeners: {e.name} is a KRaft controller listener, left closed" for e in every if e not in bound
    ]
    return {
        "listeners": bound,
        "advertised_listeners": advertised,
        "listener_security_protocol_map": protocols,
        "inter_broker_listener_name": _inter_broker_listener(values, tuple(e.name for e in advertised)),
    }, notes


def _inter_broker_listener(values: Mapping[str, Value], advertised: tuple[str, ...]) -> str:
    protocol, name = values["security.inter.broker.protocol"], values["inter.broker.listener.name"]
    if protocol != "PLAINTEXT":
        raise ConfigError(
            f"security.inter.broker.protocol: {protocol} is not served, only PLAINTEXT is so far"
        )
    if name is not None and str(name).upper() not in advertised:
        raise ConfigError(f"inter.broker.listener.name: {name} is not among the advertised listeners")
    if name is not None:
        return str(name).upper()
    # Kafka insists on a listener called PLAINTEXT; with one listener there is nothing to choose.
    return "PLAINTEXT" if "PLAINTEXT" in advertised else advertised[0]


def _strings(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _check_together(values: Mapping[str, Value], decided: Mapping[str, Any]) -> None:
    for low, high in (
        ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
        ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    ):
        if _first(values, (low, 1)) > _first(values, (high, 1)):
            raise ConfigError(f"{low}: {values[low]} is above {high} {values[high]}")
    login = values["zookeeper.login"]
    if login is not None and ":" not in str(login):
        raise ConfigError("zookeeper.login: expected user:password")
    if values["zookeeper.set.acl"] and login is None:
        raise ConfigError("zookeeper.set.acl: true needs a login to own the nodes, see zookeeper.login")
    if values["max.connections.per.ip"] == 0 and not decided["max_connections_per_ip_overrides"]:
        raise ConfigError(
            "max.connections.per.ip: 0 lets nobody in unless max.connections.per.ip.overrides is given"
        )
