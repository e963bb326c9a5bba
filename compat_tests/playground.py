"""A cluster to play with: ZooKeeper and some brokers on this machine, until Ctrl-C. `make cluster` starts it.

Data stay under ./data/cluster from one run to the next. While it runs it takes commands, one a line: `kill 2`
(with -9), `stop 2`, `start 2`, and the same for `zookeeper`, so that failovers can be watched.
"""

from __future__ import annotations

import argparse
import select
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.provision import Unavailable
from compat_tests.servers import HOST, ApacheKafka, NotServing, OurBroker, Server, Zookeeper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROPERTIES = {
    "num.partitions": "3",
    # Short, so that nobody waits long to see the others take over.
    "zookeeper.session.timeout.ms": "6000",
    # The last of those that stop has nobody to hand over to, and tries again three times.
    "controlled.shutdown.retry.backoff.ms": "200",
}
APART = [sys.executable, "-c", "import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])"]
"""A process of its own session does not get the terminal's Ctrl-C: brokers are to stop before ZooKeeper does."""
LOOK_SECONDS = 0.2
VERBS = ("kill", "stop", "start")


class Playground:
    """Owner of the processes."""

    def __init__(self, directory: Path, zookeeper_port: int, ports: Sequence[int], *, apache: bool) -> None:
        self.zookeeper = Zookeeper(directory / "zookeeper", port=zookeeper_port)
        copies = min(3, len(ports))
        replicated = {
            "default.replication.factor": str(copies),
            "offsets.topic.replication.factor": str(copies),
            "transaction.state.log.replication.factor": str(copies),
            "min.insync.replicas": str(max(copies - 1, 1)),
            "transaction.state.log.min.isr": str(max(copies - 1, 1)),
            "zookeeper.connect": self.zookeeper.connect,
        }
        self.brokers: dict[str, Server] = {}
        for number, port in enumerate(ports, start=1):
            properties = PROPERTIES | replicated | {"broker.id": str(number)}
            home = directory / f"broker-{number}"
            self.brokers[str(number)] = (
                ApacheKafka("3.9.1", home, properties, port, "256m", self.zookeeper)
                if apache
                else OurBroker(home, properties, port)
            )
        self.servers = {"zookeeper": self.zookeeper, **self.brokers}
        self._ended: set[str] = set()
        for server in self.servers.values():
            server.launcher = APART

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @contextmanager
    def running(self) -> Iterator[None]:
        """Everything up inside; everything stopped cleanly, or killed where that fails, afterwards."""
        for server in self.servers.values():
            _require_free(server.port)
        try:
            self.zookeeper.start()
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda broker: broker.start(), self.brokers.values()))
            yield
        finally:
            self._stop_all()

    def _stop_all(self) -> None:
        try:
            alive = [broker for broker in self.brokers.values() if broker.alive]
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda broker: broker.stop(), alive))
            if self.zookeeper.alive:
                self.zookeeper.stop()
        finally:
            for server in self.servers.values():
                server.close()

    def command(self, line: str) -> str:
        """Carry out one line a person typed: what came of it."""
        verb, _, name = line.strip().partition(" ")
        server = self.servers.get(name.strip())
        if verb not in VERBS or server is None:
            return f"commands: {', '.join(VERBS)}, each with one of {', '.join(self.servers)}"
        if (verb == "start") == server.alive:
            return f"{called(name)} is {'up' if server.alive else 'down'} already"
        if verb == "start":
            self._ended.discard(name)
            server.start()
            return f"{called(name)} is up, process {server.pid}"
        self._ended.add(name)
        server.kill() if verb == "kill" else server.stop()
        return f"{called(name)} is down; `start {name}` brings it back"

    def news(self) -> list[str]:
        """What ended by itself, or by somebody's hand, since this was asked last."""
        gone = [name for name, server in self.servers.items() if not server.alive and name not in self._ended]
        self._ended.update(gone)
        return [f"{called(name)} ended; `start {name}` brings it back" for name in gone]


def called(name: str) -> str:
    return "ZooKeeper" if name == "zookeeper" else f"broker {name}"


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise Unavailable(f"port {port} is taken: stop what listens there, or choose another") from None


def welcome(playground: Playground, directory: Path) -> None:
    for name, server in playground.servers.items():
        print(f"{called(name):<10} {server.bootstrap}, process {server.pid}")
    print(f"data in {directory}")
    print(f"who leads:      kcat -L -b {playground.bootstrap}")
    print(f"first message:  echo hello | kcat -P -b {playground.bootstrap} -t greetings")
    print(
        "Then take a broker away and bring it back: `kill 2`, `start 2` + Enter. Ctrl-C stops all.",
        flush=True,
    )


def play(playground: Playground) -> None:
    """Tell what happens and do as told, until interrupted."""
    listening = True
    while True:
        readable, _, _ = select.select([sys.stdin] if listening else [], [], [], LOOK_SECONDS)
        if readable:
            line = sys.stdin.readline()
            listening = bool(line)
            if line.strip():
                print(_carried_out(playground, line), flush=True)
        for said in playground.news():
            print(said, flush=True)


def _carried_out(playground: Playground, line: str) -> str:
    try:
        return playground.command(line)
    except NotServing as reason:
        return str(reason)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m compat_tests.playground", description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path("data/cluster"))
    parser.add_argument("--brokers", type=int, default=3, help="how many (3)")
    parser.add_argument(
        "--port", type=int, default=9092, help="of the first broker; the others follow (9092)"
    )
    parser.add_argument("--zookeeper-port", type=int, default=2181)
    parser.add_argument("--apache", action="store_true", help="Apache Kafka 3.9.1 instead, to compare")
    options = parser.parse_args()
    directory = options.directory / "apache" if options.apache else options.directory
    ports = range(options.port, options.port + options.brokers)
    # SIGINT too: who was started in the background by a script has inherited that it is ignored.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    try:
        playground = Playground(directory.resolve(), options.zookeeper_port, ports, apache=options.apache)
        with playground.running():
            welcome(playground, directory)
            try:
                play(playground)
            finally:
                print("stopping", flush=True)
    except KeyboardInterrupt:
        print("stopped")
    except (Unavailable, NotServing) as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
