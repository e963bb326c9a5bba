"""The client libraries under test, each as a program that runs group members."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests import provision, toolchains, versions

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
    wakes: bool = True
    """Whether a member that was silent for longer than its session joins again; if not, it does so on no broker."""
    environment: Callable[[], Mapping[str, str]] = field(default=dict)
    long: bool = False
    """Whether only `make compat` meets it."""
    ancient: bool = False
    """Whether Apache Kafka 4 no longer speaks to it."""

    def __str__(self) -> str:
        return self.name


def python(program: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, str(HARNESS / "python" / f"{program}_member.py")]


def go(program: str) -> Callable[[], list[str]]:
    return lambda: [str(toolchains.go_programs(HARNESS / "go") / program)]


def node(program: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        runtime, directory = toolchains.node_program(HARNESS / "node")
        return [str(runtime), str(directory / f"{program}_member.js")]

    return command


def c() -> list[str]:
    return [str(toolchains.c_programs(HARNESS / "c") / "member")]


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
KAFKAJS = Client("kafkajs", node("kafkajs"), versions.KAFKAJS)
PLATFORMATIC = Client("platformatic", node("platformatic"), versions.PLATFORMATIC, keeps_metadata=False)
PLATFORMATIC_848 = Client(
    "platformatic-848",
    node("platformatic"),
    versions.PLATFORMATIC,
    CONSUMER,
    ("uniform", "range"),
    keeps_metadata=False,
    wakes=False,
)
LIBRDKAFKA = Client(
    "librdkafka", c, versions.LIBRDKAFKA, assignors=("range", "roundrobin", "cooperative-sticky")
)
FRANZ_GO = Client(
    "franz-go",
    go("franz"),
    versions.FRANZ_GO,
    assignors=("range", "roundrobin", "sticky", "cooperative-sticky"),
)
FRANZ_GO_848 = Client("franz-go-848", go("franz"), versions.FRANZ_GO, CONSUMER, ("uniform", "range"))
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
    PLATFORMATIC,
    LIBRDKAFKA,
    PLATFORMATIC_848,
    FRANZ_GO_848,
)


def release(client: Client, version: str, **instead: object) -> Client:
    """The same members by another release of the library."""
    name, _ = client.library.args
    library = pytest.mark.client(name, version)
    return replace(client, name=f"{client}-{version}", library=library, long=True, **instead)


def java_release(client: Client, version: str) -> Client:
    return release(client, version, command=lambda: java(provision.java_client(version, HARNESS / "java")))


def python_release(client: Client, version: str, *pins: str, **instead: object) -> Client:
    """The same members by another release, installed apart with what it needs pinned beside it."""
    name, _ = client.library.args

    def packages() -> dict[str, str]:
        return {"PYTHONPATH": str(provision.python_packages(f"{name}=={version}", *pins))}

    return release(client, version, environment=packages, **instead)


KAFKA_PYTHON_2_3 = python_release(KAFKA_PYTHON, "2.3.3", assignors=("range", "roundrobin", "sticky"))
CONFLUENT_2_0 = python_release(CONFLUENT, "2.0.2")
JAVA_2_8, JAVA_3_9, JAVA_4_4 = (java_release(JAVA, version) for version in ("2.8.2", "3.9.1", "4.4.0"))
JAVA_848_3_9, JAVA_848_4_4 = (java_release(JAVA_848, version) for version in ("3.9.1", "4.4.0"))

RELEASES = (
    KAFKA_PYTHON_2_3,
    python_release(KAFKA_PYTHON, "2.0.6"),
    python_release(
        KAFKA_PYTHON,
        "1.4.7",
        "python-snappy",
        "lz4",
        "xxhash",
        assignors=("range", "roundrobin"),
        ancient=True,
    ),
    CONFLUENT_2_0,
    python_release(AIOKAFKA, "0.8.1", "kafka-python==2.0.2"),
    java_release(JAVA, "2.1.1"),
    JAVA_2_8,
    JAVA_3_9,
    JAVA_4_4,
    JAVA_848_3_9,
    JAVA_848_4_4,
)
"""Other releases than those of ALL."""

STATIC = (
    CONFLUENT,
    JAVA,
    KAFKA_PYTHON,
    AIOKAFKA,
    KCAT,
    FRANZ_GO,
    SARAMA,
    PLATFORMATIC,
    LIBRDKAFKA,
    KAFKA_PYTHON_2_3,
    CONFLUENT_2_0,
    JAVA_2_8,
    JAVA_3_9,
    JAVA_4_4,
)
"""Clients with static members in the classic protocol: all but kafkajs and kafka-go, and releases before 2.3."""

STATIC_848 = (CONFLUENT_848, JAVA_848, JAVA_848_3_9, JAVA_848_4_4)
"""With KIP-848; franz-go and @platformatic/kafka do not get their share back, whichever the broker."""


def environment_of(client: Client) -> dict[str, str]:
    return {**os.environ, **client.environment()}


def proofs(client: Client) -> list[pytest.MarkDecorator]:
    """Whom a test with this client speaks for; with KIP-848 it proves the new protocol too."""
    new = [pytest.mark.feature("groups: new protocol")] if client.protocol == CONSUMER else []
    return [client.library, *new, *[pytest.mark.long] * client.long]


def each(*clients: Client) -> pytest.MarkDecorator:
    """Run a test with each of these clients, its parameter `client`."""
    return pytest.mark.parametrize("client", [pytest.param(c, id=str(c), marks=proofs(c)) for c in clients])
