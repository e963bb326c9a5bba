"""What the numbers depend on: the machine, the interpreter and the versions, for the head of the report."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import confluent_kafka

from benchmarks.contenders import KAFKA_VERSION
from benchmarks.measures import GIB
from compat_tests.provision import PROJECT, java

PACKAGES = ("uvloop", "crc32c", "cramjam")


def facts(directory: Path) -> dict[str, str]:
    """Name and value, in the order they are shown."""
    packages = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    return {
        "machine": f"{_cpu()}, {os.cpu_count()} cores, {_memory()}, Linux {platform.release()}, "
        f"{_filesystem(directory)}",
        "this broker": f"{_version('pykafka-broker')}, {_interpreter()}, {packages}",
        "Apache Kafka": f"{KAFKA_VERSION}, KRaft, one node, JVM options of its start script, {_java()}",
        "clients": f"Java tools {KAFKA_VERSION}, librdkafka {confluent_kafka.libversion()[0]}",
    }


def _cpu() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found.group(1).strip() if found else platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / GIB:.0f} GiB"


def _filesystem(directory: Path) -> str:
    """The kind of the file system that holds a directory: the mount with the longest matching path."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    inside = [(len(at), kind) for at, kind in mounts if directory.resolve().is_relative_to(at)]
    return max(inside)[1]


def _interpreter() -> str:
    # Builds of one version differ by a third in speed, so the report says whose build it was.
    whose = "the system's own" if sys.base_prefix == "/usr" else "not the system's own"
    name = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{name} ({platform.python_compiler()}, {whose})"


def _java() -> str:
    told = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True).stderr
    return told.splitlines()[1] if len(told.splitlines()) > 1 else told.strip()


def commit() -> str:
    """What is checked out; `-dirty` if files differ from it."""
    command = ["git", "-C", str(PROJECT), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"
