"""The entry point of the container image: the environment variables of Kafka's own image become properties.

`KAFKA_LOG_RETENTION_HOURS` is `log.retention.hours`; `__` stands for an underscore and `___` for a dash. A
server.properties mounted where Kafka's image looks for it is read first, and variables stand before it. Compose
files written for other images carry variables that name no property: those are warned about and left out.
"""

from __future__ import annotations

import difflib
import os
import re
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pykafka_broker import cli
from pykafka_broker.config import KNOWN_KEYS, BrokerConfig, ConfigError, read_properties
from pykafka_broker.protocol.api import ApiKey, RequestHeader, frame_request, read_response_header
from pykafka_broker.protocol.codec import decode
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOUNTED = Path("/mnt/shared/config/server.properties")
DATA = "/var/lib/kafka/data"
HEALTH_SECONDS = 4.0
HEALTH_VERSION = 1

_VARIABLE = re.compile(r"KAFKA_(?:CFG_)?(?P<name>[A-Za-z0-9].*)")
"""Most images write KAFKA_X; one family writes KAFKA_CFG_X and means the same."""
_ESCAPES = {"_": ".", "__": "_", "___": "-"}
_OF_A_JVM = frozenset(
    f"KAFKA_{name}"
    for name in (
        *("VERSION", "HOME", "DEBUG", "OPTS", "HEAP_OPT", "HEAP_OPTS", "GC_LOG_OPTS", "JVM_PERFORMANCE_OPTS"),
        *("JMX_OPTS", "JMX_HOSTNAME", "JMX_PORT", "LOG4J_OPTS", "LOG4J_LOGGERS", "TOOLS_LOG4J_LOGLEVEL"),
    )
)
"""What Kafka's images say to their Java; nothing to warn about."""
_LOG_LEVEL = "KAFKA_LOG4J_ROOT_LOGLEVEL"
_LOG_LEVELS = {
    "TRACE": "DEBUG",
    "DEBUG": "DEBUG",
    "INFO": "INFO",
    "WARN": "WARNING",
    "ERROR": "ERROR",
    "FATAL": "ERROR",
    "OFF": "ERROR",
}
_BY_LOWER_CASE = {name.lower(): name for name in KNOWN_KEYS}
_HOST = re.compile(r"://(?:\[[^\]]*\]|[^:,]*):")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment asks for: properties, a log level, and what it says in vain."""

    properties: Mapping[str, str]
    log_level: str | None
    warnings: tuple[str, ...]

    def arguments(self) -> list[str]:
        """The same for the command line."""
        overrides = [part for item in self.properties.items() for part in ("--override", "=".join(item))]
        return overrides + (["--log-level", self.log_level] if self.log_level else [])


def settings(environment: Mapping[str, str], mounted: Mapping[str, str] | None = None) -> Settings:
    """The settings that an environment and the properties of a mounted file make together."""
    properties = dict(mounted or {})
    warnings = []
    for variable, value in sorted(environment.items()):
        match = _VARIABLE.fullmatch(variable)
        if match is None or variable in _OF_A_JVM or variable == _LOG_LEVEL:
            continue
        name = property_name(match["name"])
        if name in KNOWN_KEYS or name.startswith("listener.name."):
            properties[name] = value
        else:
            warnings.append(f"{variable}: there is no property {name}{_near(name)}, left out")
    _default(properties)
    voters = [voter for voter in properties.get("controller.quorum.voters", "").split(",") if voter.strip()]
    if len(voters) > 1 and not properties.get("zookeeper.connect"):
        warnings.append(
            f"controller.quorum.voters: names {len(voters)} nodes, but there is no KRaft here: this broker "
            "serves alone. Brokers become a cluster by zookeeper.connect"
        )
    level = environment.get(_LOG_LEVEL, "").strip().upper()
    if level and level not in _LOG_LEVELS:
        warnings.append(f"{_LOG_LEVEL}: {level} is none of {', '.join(_LOG_LEVELS)}, left out")
    return Settings(properties, _LOG_LEVELS.get(level), tuple(warnings))


def property_name(name: str) -> str:
    """The property a variable names, without its prefix."""
    # Longer runs are read as Kafka's image reads them: dashes first, then what is left.
    plain = re.sub("_{1,3}", lambda run: _ESCAPES[run[0]], name.lower())
    return _BY_LOWER_CASE.get(plain, plain)


def _near(name: str) -> str:
    found = difflib.get_close_matches(name, KNOWN_KEYS, n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def _default(properties: dict[str, str]) -> None:
    """Fill in what suits a container, as Kafka's image does: data in the volume, clients on the same machine."""
    if not properties.get("log.dirs") and not properties.get("log.dir"):
        properties["log.dirs"] = DATA
    if not properties.get("listeners"):
        told = properties.get("advertised.listeners") or "PLAINTEXT://localhost:9092"
        properties["advertised.listeners"] = told
        properties["listeners"] = _HOST.sub("://:", told)


def healthy(config: BrokerConfig, seconds: float = HEALTH_SECONDS) -> bool:
    """Whether the broker with this configuration answers and knows of brokers, itself among them."""
    endpoint = config.listeners[0]
    host = {"": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(endpoint.host, endpoint.host)  # noqa: S104
    header = RequestHeader(ApiKey.METADATA, HEALTH_VERSION, 1, "health-check")
    try:
        with socket.create_connection((host, endpoint.port), seconds) as link, link.makefile("rb") as answers:
            link.sendall(b"".join(frame_request(header, MetadataRequest(topics=[]))))
            (size,) = struct.unpack(">i", answers.read(4))
            frame = memoryview(answers.read(size))
    except (OSError, struct.error):
        return False
    _, start = read_response_header(ApiKey.METADATA, HEALTH_VERSION, frame)
    return bool(decode(MetadataResponse, HEALTH_VERSION, frame, start).brokers)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve; `healthy` asks the broker that is running beside; `dump-log` is the command line's own."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] == "dump-log":
        return cli.main(arguments)
    mounted = read_properties(MOUNTED) if MOUNTED.exists() else None
    found = settings(os.environ, mounted)
    if arguments and arguments[0] == "healthy":
        try:
            return 0 if healthy(BrokerConfig.load(found.properties)) else 1
        except ConfigError as error:
            sys.stderr.write(f"{cli.PROGRAM}: {error}\n")
            return 2
    for warning in found.warnings:
        sys.stderr.write(f"{cli.PROGRAM}: warning: {warning}\n")
    return cli.main([*found.arguments(), *arguments])


if __name__ == "__main__":
    sys.exit(main())
