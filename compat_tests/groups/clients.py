"""The client libraries under test, each as a program that runs group members."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests import provision, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HARNESS = Path(__file__).resolve().parent.parent / "harness"
CLASSIC, CONSUMER = "classic", "consumer"
JAVA_ASSIGNORS = "org.apache.kafka.clients.consumer."


@dataclass(frozen=True, slots=True)
class Client:
    """One library with one group protocol; `command` may raise provision.Unavailable."""

    name: str
    command: Callable[[], list[str]]
    library: pytest.MarkDecorator = field(hash=False)
    """The library and its version, for the report."""
    protocol: str = CLASSIC
    assignors: tuple[str, ...] = ()
    keeps_metadata: bool = True
    watched: bool = False
    """Whether the members are processes of their own, watched by the program: their words are stamped a little late,
    a kill is the program's to do, and an interrupted member drops a record it has taken (kcat does)."""
    environment: Callable[[], Mapping[str, str]] = field(default=dict)
    long: bool = False
    """Whether only `make compat` meets it."""

    def __str__(self) -> str:
        return self.name


def python(program: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, str(HARNESS / "python" / f"{program}_member.py")]


def go(program: str) -> Callable[[], list[str]]:
    return lambda: [str(provision.go_programs(HARNESS / "go") / program)]


def kafkajs() -> list[str]:
    node, directory = provision.node_program(HARNESS / "node")
    return [str(node), str(directory / "kafkajs_member.js")]


def java(classpath: str = "") -> list[str]:
    """Members by the newest release, or by the one on a classpath."""
    quick = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    # log4j prints to stdout where it has no settings, and only lines of events belong there.
    quiet = ["-Dlog4j2.level=OFF", "-Dlog4j2.statusLoggerLevel=OFF"]
    classpath = classpath or provision.java_program(HARNESS / "java")
    return [str(provision.java()), *quick, *quiet, "-cp", classpath, "JavaMember"]


KAFKA_PYTHON = Client(
    "kafka-python",
    python("kafka_python"),
    versions.KAFKA_PYTHON,
    assignors=("range", "roundrobin", "sticky", "cooperative-sticky"),
)
CONFLUENT = Client(
    "confluent",
    python("confluent"),
    versions.CONFLUENT,
    assignors=("range", "roundrobin", "cooperative-sticky"),
)
CONFLUENT_848 = Client(
    "confluent-848", python("confluent"), versions.CONFLUENT, CONSUMER, ("uniform", "range")
)
AIOKAFKA = Client(
    "aiokafka", python("aiokafka"), versions.AIOKAFKA, assignors=("range", "roundrobin", "sticky")
)
KCAT = Client(
    "kcat",
    python("kcat"),
    versions.KCAT,
    assignors=("range", "roundrobin", "cooperative-sticky"),
    keeps_metadata=False,
    watched=True,
    environment=lambda: {"KCAT": str(provision.kcat())},
)
JAVA = Client(
    "java",
    java,
    versions.JAVA_CLIENT,
    assignors=tuple(
        f"{JAVA_ASSIGNORS}{name}Assignor" for name in ("Range", "RoundRobin", "Sticky", "CooperativeSticky")
    ),
)
JAVA_848 = Client("java-848", java, versions.JAVA_CLIENT, CONSUMER, ("uniform", "range"))
KAFKAJS = Client("kafkajs", kafkajs, versions.KAFKAJS)
FRANZ_GO = Client(
    "franz-go",
    go("franz"),
    versions.FRANZ_GO,
    assignors=("range", "roundrobin", "sticky", "cooperative-sticky"),
)
SARAMA = Client("sarama", go("sarama"), versions.SARAMA, assignors=("range", "roundrobin", "sticky"))
KAFKA_GO = Client(
    "kafka-go", go("kafkago"), versions.KAFKA_GO, assignors=("range", "roundrobin"), keeps_metadata=False
)

ALL = (
    KAFKA_PYTHON,
    CONFLUENT,
    CONFLUENT_848,
    AIOKAFKA,
    KCAT,
    JAVA,
    JAVA_848,
    KAFKAJS,
    FRANZ_GO,
    SARAMA,
    KAFKA_GO,
)


def release(client: Client, version: str, **instead: object) -> Client:
    """The same members by another release of the library."""
    name, _ = client.library.args
    library = pytest.mark.client(name, version)
    return replace(client, name=f"{client}-{version}", library=library, long=True, **instead)


def java_release(client: Client, version: str) -> Client:
    return release(client, version, command=lambda: java(provision.java_client(version, HARNESS / "java")))


RELEASES = (
    java_release(JAVA, "3.9.1"),
    java_release(JAVA, "4.4.0"),
    java_release(JAVA_848, "4.4.0"),
)
"""Other releases than those of ALL."""


def environment_of(client: Client) -> dict[str, str]:
    return {**os.environ, **client.environment()}


def proofs(client: Client) -> list[pytest.MarkDecorator]:
    """Whom a test with this client speaks for; with KIP-848 it proves the new protocol too."""
    new = [pytest.mark.feature("groups: new protocol")] if client.protocol == CONSUMER else []
    return [client.library, *new, *[pytest.mark.long] * client.long]


def each(*clients: Client) -> pytest.MarkDecorator:
    """Run a test with each of these clients, its parameter `client`."""
    return pytest.mark.parametrize("client", [pytest.param(c, id=str(c), marks=proofs(c)) for c in clients])
