"""Apache Kafka's own command line tools, run from the jars of 4.3.1."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from compat_tests import provision

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.servers import Server

CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
DUMP_LOG_SEGMENTS = "org.apache.kafka.tools.DumpLogSegments"


def run(tool: str, *arguments: str) -> str:
    """What the tool prints; it is expected to end well (it does even where it reports an error)."""
    with provision.or_skip():
        java = [str(provision.java()), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        java += ["-cp", provision.kafka_classpath("4.3.1")]
    done = subprocess.run([*java, tool, *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def consumer_groups(broker: Server, *arguments: str) -> list[list[str]]:
    """kafka-consumer-groups.sh: its table as words, without the heading."""
    told = run(CONSUMER_GROUPS, "--bootstrap-server", broker.bootstrap, *arguments)
    lines = [line.split() for line in told.splitlines() if line.strip()]
    return lines[1:] if lines and lines[0][0] in ("GROUP", "TOPIC") else lines


def dump_offsets(*files: Path) -> str:
    """kafka-dump-log.sh with the decoder of __consumer_offsets."""
    return run(DUMP_LOG_SEGMENTS, "--offsets-decoder", "--files", ",".join(map(str, files)))
