"""Which version of a client library is under test, read from where it was pinned or installed."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from compat_tests import provision, toolchains

HARNESS = Path(__file__).resolve().parent / "harness"
JAVA = "4.3.1"


def python(package: str) -> str:
    return importlib.metadata.version(package)


def go(module: str) -> str:
    found = re.search(rf"{re.escape(module)} v(\S+)", (HARNESS / "go" / "go.mod").read_text())
    assert found, f"go.mod does not name {module}"
    return found.group(1)


def node(package: str) -> str:
    return json.loads((HARNESS / "node" / "package.json").read_text())["dependencies"][package]


def rust(package: str) -> str:
    cargo = tomllib.loads((HARNESS / "rust" / "Cargo.toml").read_text())
    return cargo["dependencies"][package]["version"].removeprefix("=")


@functools.cache
def librdkafka() -> str:
    program = toolchains.c_programs(HARNESS / "c") / "tasks"
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip()


@functools.cache
def kcat() -> str:
    told = subprocess.run([provision.kcat(), "-V"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"Version (\S+)", told)
    return found.group(1) if found else "?"


KAFKA_PYTHON = pytest.mark.client("kafka-python", python("kafka-python"))
CONFLUENT = pytest.mark.client("confluent-kafka", python("confluent-kafka"))
AIOKAFKA = pytest.mark.client("aiokafka", python("aiokafka"))
KCAT = pytest.mark.client("kcat", kcat)
JAVA_CLIENT = pytest.mark.client("Java kafka-clients", JAVA)
KAFKAJS = pytest.mark.client("kafkajs", node("kafkajs"))
FRANZ_GO = pytest.mark.client("franz-go", go("github.com/twmb/franz-go"))
SARAMA = pytest.mark.client("sarama", go("github.com/IBM/sarama"))
PLATFORMATIC = pytest.mark.client("@platformatic/kafka", node("@platformatic/kafka"))
LIBRDKAFKA = pytest.mark.client("C with librdkafka", librdkafka)
KAFKA_GO = pytest.mark.client("kafka-go", go("github.com/segmentio/kafka-go"))
