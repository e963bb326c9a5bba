"""The client libraries that play the scenarios, each at the versions under test."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from compat_tests import provision, toolchains, versions
from compat_tests.report.cannot import cannot
from compat_tests.samples import CODECS
from compat_tests.versions import HARNESS

ACKS = ("0", "1", "all")
ANSWERED = ("1", "all")
"""All but 0: what kafka-python 2 sends unanswered stays within it, whichever the broker."""

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _pytest.mark import ParameterSet


@dataclass(frozen=True, slots=True)
class Library:
    """One library at one version; what it needs may be unavailable when it is asked for."""

    name: str
    version: str
    command: Callable[[], list[str]]
    environment: Callable[[], Mapping[str, str]] = field(default=lambda: os.environ)
    codecs: tuple[str, ...] = CODECS
    acks: tuple[str, ...] = ACKS
    long: bool = False
    """Whether `make test` leaves it to `make compat`."""
    ancient: bool = False
    """Whether Apache Kafka 4 no longer speaks to it."""
    timeless: bool = False
    """Whether its records have no time."""
    found: Callable[[], str] | None = None
    """Asks for the version, where only the machine knows it."""

    def __str__(self) -> str:
        return re.sub(r"[ /]", "-", f"{self.name}-{self.version}")

    def can(self, feature: str) -> bool:
        return feature not in cannot(self.name, self.version)

    def param(self, *more: object) -> ParameterSet:
        """The library as a test's parameter, marked for the report."""
        marks = [pytest.mark.client(self.name, self.found or self.version)] + [pytest.mark.long] * self.long
        return pytest.param(self, *more, id="-".join(map(str, (self, *more))), marks=marks)


def python(program: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, str(HARNESS / "python" / f"{program}_tasks.py")]


def installed(*requirements: str) -> Callable[[], Mapping[str, str]]:
    """An environment in which these releases come before those of the tests."""
    return lambda: {**os.environ, "PYTHONPATH": str(provision.python_packages(*requirements))}


def python_release(
    name: str, program: str, version: str | None = None, *pins: str, **other: object
) -> Library:
    """The release installed beside the tests, or an older one with what it needs pinned beside it."""
    if version is None:
        return Library(name, versions.python(name), python(program), **other)
    packages = installed(f"{name}=={version}", *pins)
    return Library(name, version, python(program), packages, long=True, **other)


def java(version: str) -> list[str]:
    """The program compiled against this release of kafka-clients, with what differs by release in its own way."""
    release = tuple(map(int, version.split(".")[:2]))
    program, turns = ("OldTasks", ((0, 9), (0, 10))) if release < (1, 0) else ("JavaTasks", ((2, 0), (2, 3)))
    root = HARNESS / ("java_old_tasks" if release < (1, 0) else "java_tasks")
    eras = [f"{'before' if release < since else 'since'}_{since[0]}_{since[1]}" for since in turns]
    sources = root, *(root / era for era in eras)
    quick = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [str(provision.java()), *quick, "-cp", provision.java_client(version, *sources), program]


def java_release(version: str, *, long: bool = True, **other: object) -> Library:
    return Library("Java kafka-clients", version, lambda: java(version), long=long, **other)


def old_java_release(version: str, *codecs: str, **other: object) -> Library:
    """A release that Apache Kafka 4 no longer speaks to."""
    return java_release(version, codecs=("none", "gzip", *codecs), ancient=True, **other)


def go(program: str) -> Callable[[], list[str]]:
    return lambda: [str(toolchains.go_programs(HARNESS / "go") / f"tasks_{program}")]


def node(program: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        runtime, directory = toolchains.node_program(HARNESS / "node")
        return [str(runtime), str(directory / f"{program}_tasks.js")]

    return command


def rust() -> list[str]:
    return [str(toolchains.rust_programs(HARNESS / "rust") / "tasks")]


def c() -> list[str]:
    return [str(toolchains.c_programs(HARNESS / "c") / "tasks")]


LIBRARIES = (
    python_release("kafka-python", "kafka_python"),
    python_release("kafka-python", "kafka_python", "2.3.3", acks=ANSWERED),
    python_release("kafka-python", "kafka_python", "2.0.6", acks=ANSWERED),
    python_release(
        "kafka-python",
        "kafka_python",
        "1.4.7",
        *("python-snappy", "lz4", "xxhash"),
        acks=ANSWERED,
        codecs=("none", "gzip", "snappy", "lz4"),
        ancient=True,
    ),
    python_release("confluent-kafka", "confluent"),
    python_release("confluent-kafka", "confluent", "2.0.2"),
    python_release("aiokafka", "aiokafka"),
    python_release("aiokafka", "aiokafka", "0.8.1", "kafka-python==2.0.2"),
    old_java_release("0.8.2.2", "snappy", timeless=True),
    old_java_release("0.9.0.1", "snappy", timeless=True),
    old_java_release("0.10.2.2", "snappy", "lz4"),
    old_java_release("1.1.1", "snappy", "lz4"),
    *map(java_release, ("2.1.1", "2.8.2", "3.9.1", "4.4.0")),
    java_release(versions.JAVA, long=False),
    Library("franz-go", versions.go("github.com/twmb/franz-go"), go("franz")),
    Library("sarama", versions.go("github.com/IBM/sarama"), go("sarama")),
    Library("kafka-go", versions.go("github.com/segmentio/kafka-go"), go("kafkago")),
    Library("kafkajs", versions.node("kafkajs"), node("kafkajs"), codecs=("none", "gzip")),
    Library(
        "@platformatic/kafka",
        versions.node("@platformatic/kafka"),
        node("platformatic"),
        codecs=("none", "gzip", "snappy", "lz4"),  # zstd needs a newer Node than many machines have
    ),
    Library("rskafka", versions.rust("rskafka"), rust, acks=("all",), long=True),
    Library("C with librdkafka", "of the system", c, found=versions.librdkafka),
)
