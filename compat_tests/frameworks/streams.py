"""Applications of Kafka Streams: instances of harness/streams, and the topics they make for themselves."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from compat_tests import provision
from compat_tests.frameworks.program import LOGGER, Program, java
from compat_tests.versions import HARNESS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from compat_tests.servers import Server

HEAP = "160m"
HURRY = {
    "commit.interval.ms": "100",
    "repartition.purge.interval.ms": "200",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    # Every change is written on, so that what comes out does not depend on when a cache is flushed.
    "statestore.cache.max.bytes": "0",
}


def classpath(version: str) -> str:
    jars = provision.java_libraries(
        f"kafka-streams-{version}", ("org.apache.kafka", "kafka-streams", version), LOGGER
    )
    return provision.java_compiled(HARNESS / "streams", jars, version)


class Application:
    """One application at work on a broker; owns its instances."""

    def __init__(
        self,
        version: str,
        broker: Server,
        name: str,
        topology: str,
        inputs: list[str],
        output: str,
        home: Path,
    ) -> None:
        with provision.or_skip():
            self._classpath = classpath(version)
        self.name, self.broker = name, broker
        self.inputs, self.output = inputs, output
        self._topology = topology
        self._home = home
        self._numbers = itertools.count(1)
        self._instances: list[Program] = []
        home.mkdir()

    def start(self, disk: str | None = None, member: str | None = None, **settings: str) -> Program:
        """A new instance, at work. It has a disk of its own unless told which; `member` makes it a static one."""
        number = next(self._numbers)
        command = self._command({**self._settings(disk or f"disk-{number}", member), **settings})
        instance = Program(command, self._home / f"instance-{number}.log")
        self._instances.append(instance)
        return instance

    def internal(self, name: str) -> str:
        """A topic that Streams makes for the application."""
        return f"{self.name}-{name}"

    def close(self) -> None:
        for instance in self._instances:
            instance.close()

    def _settings(self, disk: str, member: str | None) -> Mapping[str, str]:
        static = {"main.consumer.group.instance.id": member} if member else {}
        return {
            "application.id": self.name,
            "bootstrap.servers": self.broker.bootstrap,
            "state.dir": str(self._home / disk),
            **HURRY,
            **static,
        }

    def _command(self, settings: Mapping[str, str]) -> list[str]:
        pairs = [f"{name}={value}" for name, value in settings.items()]
        return java(
            self._classpath, HEAP, "StreamsApp", self._topology, self.output, *self.inputs, "--", *pairs
        )
