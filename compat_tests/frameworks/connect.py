"""Kafka Connect with its file source and sink: workers, standalone or of a cluster, and their REST interface."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from compat_tests import provision
from compat_tests.frameworks.program import LOGGER, START_SECONDS, Program, java
from compat_tests.servers import HOST, free_port, wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from compat_tests.servers import Server

HEAP = "200m"
CLI = "org.apache.kafka.connect.cli"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
COMMON = {
    "key.converter": TEXT,
    "value.converter": TEXT,
    "offset.flush.interval.ms": "200",
    # A machine that is slow shall not make a clean stop an unclean one.
    "offset.flush.timeout.ms": "60000",
    "task.shutdown.graceful.timeout.ms": "60000",
    "plugin.discovery": "service_load",
    "consumer.session.timeout.ms": "6000",
    "consumer.heartbeat.interval.ms": "500",
}
OF_A_CLUSTER = {
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "3",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "2",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    # The work of a worker that is gone is given away at once.
    "scheduled.rebalance.max.delay.ms": "0",
}


def classpath(version: str) -> str:
    group = "org.apache.kafka"
    wanted = (group, "connect-runtime", version), (group, "connect-file", version), LOGGER
    return provision.java_libraries(f"kafka-connect-{version}", *wanted)


def source(file: Path, topic: str, **more: str) -> dict[str, str]:
    """A connector that writes the lines of a file to a topic."""
    plugin = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    # After a batch that is full it sits on the lines it has read until more are written, whichever the broker.
    unlimited = {"batch.size": "1000000"}
    return {
        "connector.class": plugin,
        "tasks.max": "1",
        "file": str(file),
        "topic": topic,
        **unlimited,
        **more,
    }


def sink(file: Path, topic: str) -> dict[str, str]:
    """A connector that writes a topic to the end of a file."""
    plugin = "org.apache.kafka.connect.file.FileStreamSinkConnector"
    return {"connector.class": plugin, "tasks.max": "1", "file": str(file), "topics": topic}


def properties(path: Path, settings: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


class Worker(Program):
    """One worker; `address` is how its cluster calls it."""

    def __init__(self, command: list[str], log: Path, port: int) -> None:
        super().__init__(command, log)
        self.address = f"{HOST}:{port}"

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The answer of its REST interface; fails with the answer if that is an error."""
        data = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"http://{self.address}{path}", data, kind, method=method)
        with urllib.request.urlopen(asked, timeout=90) as answer:
            said = answer.read()
        return json.loads(said) if said else None

    def wait_until_up(self) -> Worker:
        def up() -> bool:
            assert self.alive, f"it ended:\n{self.tail()}"
            return isinstance(self.seen("/connectors"), list)

        wait_until(up, f"worker {self.address} answers\n{self.tail()}", START_SECONDS)
        return self

    def change(self, method: str, path: str, body: object = None) -> None:
        """Ask until it is accepted: while the cluster rebalances or a connector is on its way, it is refused."""

        def accepted() -> bool:
            try:
                self.call(method, path, body)
            except urllib.error.HTTPError as refusal:
                self._refusal = f"{refusal.code} {refusal.read().decode()}"
                return False
            return True

        self._refusal = ""
        try:
            wait_until(accepted, f"{method} {path} is accepted", 60)
        except AssertionError as late:
            raise AssertionError(f"{late}: {self._refusal}\n{self.tail()}") from None

    def seen(self, path: str) -> Any:
        """What stands there now, or None while the worker is busy or does not know it."""
        try:
            return self.call("GET", path)
        except OSError:
            return None

    def task(self, connector: str) -> tuple[str, str]:
        """State and worker of the one task of a connector, as far as this worker knows."""
        told = self.seen(f"/connectors/{connector}/status")
        tasks = told["tasks"] if told else []
        return (tasks[0]["state"], tasks[0]["worker_id"]) if tasks else ("UNKNOWN", "")


class Connect:
    """The workers of one test and their files; owns the processes."""

    def __init__(self, version: str, broker: Server, name: str, home: Path) -> None:
        with provision.or_skip():
            self._classpath = classpath(version)
        self.broker, self.name, self.home = broker, name, home
        self._workers: list[Worker] = []
        home.mkdir()

    def standalone(self, **connectors: Mapping[str, str]) -> Worker:
        """A worker with these connectors, which keeps its offsets in a file."""
        settings = {"offset.storage.file.filename": str(self.home / "offsets")}
        files = [
            properties(self.home / f"{name}.properties", {"name": f"{self.name}-{name}", **config})
            for name, config in connectors.items()
        ]
        return self._start("ConnectStandalone", settings, files)

    def distributed(self) -> Worker:
        """One more worker of the cluster."""
        topics = {f"{kind}.storage.topic": self.internal(kind) for kind in ("config", "offset", "status")}
        return self._start("ConnectDistributed", {"group.id": self.name, **topics, **OF_A_CLUSTER}, [])

    def internal(self, kind: str) -> str:
        """The topic in which a cluster keeps this."""
        return f"{self.name}-{kind}"

    def close(self) -> None:
        for worker in self._workers:
            worker.close()

    def _start(self, program: str, settings: Mapping[str, str], files: list[Path]) -> Worker:
        number, port = len(self._workers), free_port()
        listening = {"listeners": f"http://{HOST}:{port}", "bootstrap.servers": self.broker.bootstrap}
        path = properties(self.home / f"worker-{number}.properties", {**COMMON, **listening, **settings})
        command = java(self._classpath, HEAP, f"{CLI}.{program}", str(path), *map(str, files))
        self._workers.append(Worker(command, self.home / f"worker-{number}.log", port))
        return self._workers[-1]
