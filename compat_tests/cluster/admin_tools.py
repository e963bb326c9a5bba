"""Apache Kafka's command line tools for clusters, run from its jars, and what they print made into values."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

from compat_tests import provision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TOPICS = "org.apache.kafka.tools.TopicCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
CONFIGS = "kafka.admin.ConfigCommand"


class AdminTools:
    """The tools of one release, pointed at one cluster."""

    def __init__(self, version: str, bootstrap: str, scratch: Path) -> None:
        self.version, self.bootstrap, self._scratch = version, bootstrap, scratch
        self._plans = 0

    def run(self, tool: str, *arguments: str) -> str:
        """What the tool prints; it is expected to end well."""
        with provision.or_skip():
            java = [str(provision.java()), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
            java += ["-cp", provision.kafka_classpath(self.version)]
        command = [*java, tool, "--bootstrap-server", self.bootstrap, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def topics(self, *arguments: str) -> str:
        return self.run(TOPICS, *arguments)

    def describe(self, topic: str, *arguments: str) -> dict[int, dict[str, str]]:
        """Leader, Replicas, Isr and so on by partition, as kafka-topics --describe prints them."""
        found = {}
        for line in self.topics("--describe", "--topic", topic, *arguments).splitlines():
            fields = dict(re.findall(r"(\w+): (\S*)", line))
            if "Partition" in fields:
                found[int(fields["Partition"])] = fields
        return found

    def reassign(self, *arguments: str, plan: Mapping[tuple[str, int], Sequence[int]] | None = None) -> str:
        """kafka-reassign-partitions, with the plan as the file it wants."""
        if plan is None:
            return self.run(REASSIGN, *arguments)
        self._plans += 1
        path = self._scratch / f"plan-{self._plans}.json"
        moves = [{"topic": t, "partition": p, "replicas": list(r)} for (t, p), r in plan.items()]
        path.write_text(json.dumps({"version": 1, "partitions": moves}))
        return self.run(REASSIGN, *arguments, "--reassignment-json-file", str(path))

    def elect(self, kind: str, topic: str, partition: int) -> str:
        return self.run(
            ELECT, "--election-type", kind, "--topic", topic, "--partition", str(partition)
        )  # fmt: skip

    def hosted(self, topic: str) -> dict[int, dict[str, int]]:
        """By broker, the size of each replica of the topic, as kafka-log-dirs tells it."""
        told = self.run(LOG_DIRS, "--describe", "--topic-list", topic).splitlines()
        answer = json.loads(next(line for line in told if line.startswith("{")))
        return {
            broker["broker"]: {
                replica["partition"]: replica["size"]
                for directory in broker["logDirs"]
                for replica in directory["partitions"]
            }
            for broker in answer["brokers"]
        }

    def configs(self, *arguments: str) -> str:
        return self.run(CONFIGS, *arguments)
