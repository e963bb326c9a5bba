"""Flink's Kafka source and sink, in a job that is a small cluster of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests import provision
from compat_tests.frameworks.program import LOGGER, Program, java
from compat_tests.versions import HARNESS

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.servers import Server

FLINK, CONNECTOR = "2.0.0", "4.0.1-2.0"
HEAP = "400m"
SETTINGS = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "taskmanager.memory.network.min": "16mb",
    "taskmanager.memory.network.max": "16mb",
    "taskmanager.memory.managed.size": "16mb",
    "execution.checkpointing.interval": "300ms",
    "execution.checkpointing.mode": "AT_LEAST_ONCE",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
}
OPENED = ("java.lang", "java.util", "java.util.concurrent", "java.net", "java.io", "java.nio")


def classpath() -> str:
    wanted = [
        ("org.apache.flink", "flink-connector-kafka", CONNECTOR),
        *(
            ("org.apache.flink", f"flink-{part}", FLINK)
            for part in ("connector-base", "streaming-java", "clients")
        ),
        LOGGER,
    ]
    jars = provision.java_libraries(f"flink-kafka-{CONNECTOR}", *wanted)
    return provision.java_compiled(HARNESS / "flink", jars, CONNECTOR)


class Jobs:
    """Lives of one job, one after the other; owns the processes."""

    def __init__(self, broker: Server, group: str, source: str, sink: str, home: Path) -> None:
        with provision.or_skip():
            self._classpath = classpath()
        self.group = group
        self._orders = [broker.bootstrap, group, source, sink]
        self._home = home
        self._lives: list[Program] = []

    def start(self, checkpoint: Path | None = None) -> Program:
        """The job, from a checkpoint or from what its group committed."""
        number = len(self._lives)
        kept = self._home / f"checkpoints-{number}"
        settings = {**SETTINGS, "execution.checkpointing.dir": kept.as_uri()}
        if checkpoint is not None:
            settings["execution.state-recovery.path"] = checkpoint.as_uri()
        pairs = [f"{name}={value}" for name, value in settings.items()]
        opened = [word for name in OPENED for word in ("--add-opens", f"java.base/{name}=ALL-UNNAMED")]
        command = java(self._classpath, HEAP, *opened, "FlinkApp", *self._orders, *pairs)
        self._lives.append(Program(command, self._home / f"life-{number}.log"))
        return self._lives[-1]

    def last_checkpoint(self) -> Path:
        """The newest complete one."""
        found = self._home.glob("checkpoints-*/*/chk-*/_metadata")
        return max(found, key=lambda path: path.stat().st_mtime_ns).parent

    def close(self) -> None:
        for life in self._lives:
            life.close()
