"""Brokers as child processes with one interface: ours, and Apache Kafka as the reference.

A server keeps its data, port and identity over stop, kill and restart. Tests run unchanged against either.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests import provision

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HOST = "127.0.0.1"
START_SECONDS = 90
STOP_SECONDS = 60


class NotServing(AssertionError):
    """A server ended, or did not answer in time; carries the tail of what it printed."""


def free_port() -> int:
    """A free port below the ephemeral range: no client is given it while its server is down."""
    while True:
        port = random.randint(15000, 31999)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port


def wait_until(condition: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Return once the condition holds; fail naming it when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain: {what}"
        time.sleep(0.02)


class Server(ABC):
    """One broker process and its directory; owned by the test or fixture that made it."""

    def __init__(self, directory: Path, properties: Mapping[str, str] | None = None, port: int = 0) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.log_dir = directory / "logs"
        self.output = directory / "server.out"
        self.properties = dict(properties or {})
        self.port = port
        self.host = HOST
        self.launcher: list[str] = []
        """What the command is started by, such as `ip netns exec`; it must become the command itself."""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Server:
        """Start and return once requests are answered."""
        assert not self.alive, "already running"
        self._prepare()
        self._process = self._spawn([*self.launcher, *self._command()], self.output)
        self._wait_until_serving()
        return self

    def stop(self) -> int:
        """A clean stop (SIGTERM); the exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9: nothing is flushed, nothing is said to anybody."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Leave no process behind, whatever state it is in."""
        if self.alive:
            self.kill()

    def tail(self, lines: int = 40) -> str:
        """The last of what the server printed."""
        if not self.output.exists():
            return ""
        return "\n".join(self.output.read_text(errors="replace").splitlines()[-lines:])

    @abstractmethod
    def _prepare(self) -> None: ...

    @abstractmethod
    def _command(self) -> list[str]: ...

    def _spawn(self, command: list[str], output: Path) -> subprocess.Popen[bytes]:
        with output.open("ab") as sink:
            return subprocess.Popen(
                command, stdout=sink, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=self.directory
            )

    def _end(self, how: signal.Signals) -> int:
        assert self._process is not None, "not started"
        self._process.send_signal(how)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise NotServing(f"did not stop in {STOP_SECONDS} s:\n{self.tail()}") from None

    def _wait_until_serving(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._serving():
            if not self.alive:
                raise NotServing(f"ended with {self._process and self._process.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                self.close()
                raise NotServing(f"not serving after {START_SECONDS} s:\n{self.tail()}")
            time.sleep(0.02)

    def _serving(self) -> bool:
        return answers_with_brokers(self.port, self.host)


class OurBroker(Server):
    """The console script in its own process; a port the broker chose at first start is kept."""

    def _prepare(self) -> None:
        self._printed = self.output.stat().st_size if self.output.exists() else 0

    def _command(self) -> list[str]:
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": str(self.log_dir),
            **self.properties,
        }
        overrides = [part for key, value in settings.items() for part in ("--override", f"{key}={value}")]
        return [str(Path(sys.executable).parent / "pykafka-broker"), *overrides]

    def _serving(self) -> bool:
        with self.output.open("rb") as printed:
            printed.seek(self._printed)
            found = re.search(rb"listening on \S*?:(\d+)\b", printed.read())
        if not found:
            return False
        self.port = int(found.group(1))
        return answers_with_brokers(self.port, self.host)


def java_command(version: str, heap: str, *arguments: str) -> list[str]:
    """A main class from the jars of Apache Kafka, and its arguments."""
    options = [f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [str(provision.java()), *options, "-cp", provision.kafka_classpath(version), *arguments]


class Zookeeper(Server):
    """Apache ZooKeeper 3.8.4, as Apache Kafka 3.9.1 brings it; `connect` is its address."""

    def __init__(self, directory: Path, properties: Mapping[str, str] | None = None, port: int = 0) -> None:
        super().__init__(directory, properties, port or free_port())

    @property
    def connect(self) -> str:
        return f"{HOST}:{self.port}"

    def ask(self, word: str, seconds: float = 5) -> str:
        """The answer to one of ZooKeeper's four-letter words, empty while it is down."""
        try:
            with socket.create_connection((HOST, self.port), seconds) as link:
                link.sendall(word.encode())
                return b"".join(iter(lambda: link.recv(65536), b"")).decode()
        except OSError:
            return ""

    def _prepare(self) -> None:
        settings = {
            "dataDir": str(self.directory / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": HOST,
            "maxClientCnxns": "0",
            # Sessions of two to twenty ticks; a broker killed in a test is not waited for long.
            "tickTime": "500",
            "maxSessionTimeout": "60000",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            **self.properties,
        }
        lines = [f"{key}={value}\n" for key, value in settings.items()]
        (self.directory / "zookeeper.properties").write_text("".join(lines))

    def _command(self) -> list[str]:
        program = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return java_command("3.9.1", "128m", program, str(self.directory / "zookeeper.properties"))

    def _serving(self) -> bool:
        # While it starts it may take a connection and forget about it.
        return self.ask("srvr", 0.5).startswith("Zookeeper version")


class ApacheKafka(Server):
    """Apache Kafka: 4.3.1 as one KRaft node, 3.9.1 on a ZooKeeper given to it or of its own."""

    def __init__(
        self,
        version: str,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        port: int = 0,
        heap: str = "512m",
        zookeeper: Zookeeper | None = None,
    ) -> None:
        super().__init__(directory, properties, port or free_port())
        self.version = version
        self._heap = heap
        self._side_port = free_port() if self.kraft else 0
        self._owns_zookeeper = zookeeper is None and not self.kraft
        self.zookeeper = Zookeeper(directory / "zookeeper") if self._owns_zookeeper else zookeeper

    @property
    def kraft(self) -> bool:
        return int(self.version.split(".")[0]) >= 4

    def close(self) -> None:
        super().close()
        if self._owns_zookeeper and self.zookeeper is not None:
            self.zookeeper.close()

    def _command(self) -> list[str]:
        return self._java("kafka.Kafka", str(self.directory / "server.properties"))

    def _java(self, *arguments: str, heap: str | None = None) -> list[str]:
        return java_command(self.version, heap or self._heap, *arguments)

    def _prepare(self) -> None:
        first = not (self.directory / "server.properties").exists()
        self._write("server.properties", self._settings())
        if self.kraft and first:
            self._format()
        if self.zookeeper is not None:
            if not self.zookeeper.alive:
                self.zookeeper.start()
            wait_until(lambda: not self._registered(), "the killed broker's ZooKeeper session ends")

    def _write(self, name: str, settings: Mapping[str, str]) -> None:
        (self.directory / name).write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def _settings(self) -> dict[str, str]:
        ours = {
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": str(self.log_dir),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        if self.kraft:
            ours |= {
                "process.roles": "broker,controller",
                "node.id": "1",
                "controller.quorum.voters": f"1@{HOST}:{self._side_port}",
                "controller.listener.names": "CONTROLLER",
                "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self._side_port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "metadata.log.dir": str(self.directory / "kraft"),
                "broker.session.timeout.ms": "3000",
            }
        elif self.zookeeper is not None:
            ours |= {
                "broker.id": "1",
                "zookeeper.connect": self.zookeeper.connect,
                # A killed broker's session must be gone before the same id registers again.
                "zookeeper.session.timeout.ms": "2000",
            }
        return ours | self.properties

    def _format(self) -> None:
        properties = str(self.directory / "server.properties")
        command = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", properties]
        done = subprocess.run(self._java(*command, heap="128m"), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _registered(self) -> bool:
        """Whether ZooKeeper still holds the ephemeral node of this broker."""
        assert self.zookeeper is not None
        settings = self._settings()
        chroot = settings["zookeeper.connect"].partition("/")[2]
        prefix = f"/{chroot}" if chroot else ""
        return f"\t{prefix}/brokers/ids/{settings['broker.id']}\n" in self.zookeeper.ask("dump")


def answers_with_brokers(port: int, host: str = HOST) -> bool:
    """Whether a Metadata request is answered and names a broker: the moment a client can begin."""
    request = struct.pack(">hhih2si", 3, 0, 1, 2, b"up", 0)
    try:
        with socket.create_connection((host, port), 5) as link, link.makefile("rb") as answers:
            link.sendall(struct.pack(">i", len(request)) + request)
            head = answers.read(12)
    except OSError:
        return False
    return len(head) == 12 and struct.unpack(">iii", head)[2] > 0


def make(kind: str, directory: Path, properties: Mapping[str, str] | None = None, port: int = 0) -> Server:
    """A server not yet started: "ours" or "kafka-<version>"."""
    if kind == "ours":
        return OurBroker(directory, properties, port)
    return ApacheKafka(kind.removeprefix("kafka-"), directory, properties, port)


def resident_kib(pid: int) -> int:
    """Resident memory of a process, to show that bad input leaves nothing behind."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024
