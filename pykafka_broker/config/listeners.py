"""Listener properties: where the broker binds, what it tells clients, and by which security protocol."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pykafka_broker.config.values import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ENDPOINT = re.compile(
    r"(?P<name>[^:/\s]+)://(?:\[(?P<v6>[0-9a-fA-F:%.]+)\]|(?P<host>[0-9a-zA-Z\-%._]*)):(?P<port>[0-9]+)"
)
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One listener. An empty host means every interface; port 0 means any free port."""

    name: str
    security_protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """`NAME:PROTOCOL` pairs of listener.security.protocol.map."""
    found: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip() for part in item.rpartition(":"))
        if not colon or not name or protocol.upper() not in _PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map: {item!r} is not NAME: and one of {', '.join(_PROTOCOLS)}"
            )
        if name.upper() in found:
            raise ConfigError(f"listener.security.protocol.map: {name} is given twice")
        found[name.upper()] = protocol.upper()
    return found


def parse_endpoints(prop: str, items: Iterable[str], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Endpoints of a listener property; ConfigError names `prop` for anything malformed or given twice."""
    endpoints: list[Endpoint] = []
    for item in items:
        match = _ENDPOINT.fullmatch(item)
        if match is None or int(match["port"]) > 65535:
            raise ConfigError(f"{prop}: {item!r} is not NAME://host:port")
        name = match["name"].upper()
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError(
                f"{prop}: no security protocol defined for listener {name} in listener.security.protocol.map"
            )
        if any(other.name == name for other in endpoints):
            raise ConfigError(f"{prop}: each listener must have a different name, {name} is given twice")
        endpoints.append(Endpoint(name, protocol, match["v6"] or match["host"] or "", int(match["port"])))
    return tuple(endpoints)


def check_bindable(endpoints: tuple[Endpoint, ...]) -> None:
    """Refuse what this broker cannot open: no listener, a shared port, a protocol other than PLAINTEXT."""
    if not endpoints:
        raise ConfigError("listeners: at least one listener is needed")
    taken: dict[int, str] = {}
    for endpoint in endpoints:
        if endpoint.security_protocol != "PLAINTEXT":
            raise ConfigError(
                f"listeners: {endpoint.name} uses {endpoint.security_protocol}, only PLAINTEXT is served yet"
            )
        if endpoint.port and (other := taken.setdefault(endpoint.port, endpoint.name)) != endpoint.name:
            raise ConfigError(
                f"listeners: {other} and {endpoint.name} share port {endpoint.port}, each needs its own"
            )


def advertise(
    given: tuple[Endpoint, ...], bound: tuple[Endpoint, ...], hostname: str
) -> tuple[Endpoint, ...]:
    """What clients are told: the given endpoints, else the bound ones; an empty host becomes `hostname`."""
    names = {endpoint.name for endpoint in bound}
    for endpoint in given:
        if endpoint.name not in names:
            raise ConfigError(f"advertised.listeners: {endpoint.name} is not among the names in listeners")
    told = given or bound
    for endpoint in told:
        if endpoint.host == "0.0.0.0":  # noqa: S104  refused, not bound
            raise ConfigError(
                "advertised.listeners: 0.0.0.0 is no address a client can reach, name one that is"
            )
    return tuple(replace(endpoint, host=endpoint.host or hostname) for endpoint in told)
