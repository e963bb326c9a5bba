"""Three brokers on one ZooKeeper, ours or Apache Kafka's, with all that can happen to them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.retry import KazooRetry

from compat_tests.cluster.sessions import end_session
from compat_tests.cluster.told import leaders_told_by
from compat_tests.provision import or_skip
from compat_tests.servers import ApacheKafka, OurBroker, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from compat_tests.cluster.places import Land, Place
    from compat_tests.servers import Server, Zookeeper

NUMBERS = (1, 2, 3)
SESSION_MS = 3000
PROPERTIES = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    # A busy machine: to connect for the first time may take longer than a session lasts.
    "zookeeper.connection.timeout.ms": "30000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "replica.lag.time.max.ms": "5000",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}


class Cluster:
    """Owner of its brokers; ZooKeeper and the land belong to the fixture that lent them."""

    def __init__(self, kind: str, zookeeper: Zookeeper, land: Land, directory: Path) -> None:
        self.kind, self.zookeeper, self.land = kind, zookeeper, land
        self._directory = directory
        self.chroot = f"/{uuid.uuid4().hex}"
        self.places = {number: land.place(number) for number in NUMBERS}
        self.brokers = {n: self._make(n, place) for n, place in self.places.items()}
        self._stopped: set[int] = set()
        self._tree = KazooClient(zookeeper.connect, timeout=30)
        # A test may stop ZooKeeper: what is read meanwhile is asked for again, in a new session if need be.
        self._asked = KazooRetry(max_tries=-1, delay=0.05, max_delay=1, deadline=90)

    def _make(self, number: int, place: Place) -> Server:
        properties = PROPERTIES | {
            "broker.id": str(number),
            "zookeeper.connect": place.zookeeper + self.chroot,
            "listeners": f"PLAINTEXT://{place.host}:{place.port}",
            "advertised.listeners": f"PLAINTEXT://{place.host}:{place.advertised}",
        }
        where = self._directory / f"broker-{number}"
        server: Server
        if self.kind == "ours":
            server = OurBroker(where, properties, place.port)
        else:
            version = self.kind.removeprefix("kafka-")
            server = ApacheKafka(version, where, properties, place.port, "256m", self.zookeeper)
        server.host, server.launcher = place.host, list(place.launcher)
        return server

    # --- life and death ---

    def open(self) -> Cluster:
        """Start all brokers; return when each knows all."""
        self._tree.start()
        self._tree.ensure_path(self.chroot)
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.start, NUMBERS))
        wait_until(lambda: self.registered() == set(NUMBERS), "three brokers are registered")
        admin = self.admin()
        wait_until(lambda: len(admin.list_topics(timeout=10).brokers) == 3, "all are known")
        return self

    def close(self) -> None:
        for number, server in self.brokers.items():
            if server.alive and number in self._stopped:
                os.kill(server.pid, signal.SIGCONT)
            server.close()
        self._tree.stop()
        self._tree.close()

    def start(self, number: int) -> None:
        # As with Apache Kafka: an id that a dead broker's session still holds cannot register.
        wait_until(lambda: number not in self.registered(), f"the session of broker {number} is over")
        self.brokers[number].start()
        self.land.knows(number, self.brokers[number].pid)

    def add(self, number: int) -> None:
        """One more broker."""
        self.places[number] = self.land.place(number)
        self.brokers[number] = self._make(number, self.places[number])
        self.start(number)

    def remove(self, number: int) -> None:
        """It is not to come back."""
        self.stop(number)
        self.brokers.pop(number).close()
        del self.places[number]

    def kill(self, *numbers: int) -> None:
        """kill -9, all at once."""
        for number in numbers:
            os.kill(self.brokers[number].pid, signal.SIGKILL)
        for number in numbers:
            self.brokers[number].kill()

    def stop(self, number: int) -> None:
        """A clean stop, leaders handed over first."""
        status = self.brokers[number].stop()
        assert status in (0, 143), f"ended with {status}:\n{self.brokers[number].tail()}"

    def pause(self, number: int) -> None:
        os.kill(self.brokers[number].pid, signal.SIGSTOP)
        self._stopped.add(number)

    def wake(self, number: int) -> None:
        os.kill(self.brokers[number].pid, signal.SIGCONT)
        self._stopped.discard(number)

    def expire(self, number: int) -> None:
        """End the broker's ZooKeeper session behind its back."""
        session = self._tree.exists(f"{self.chroot}/brokers/ids/{number}").ephemeralOwner
        end_session(self.zookeeper.connect, session)

    # --- what the tree says ---

    def registered(self) -> set[int]:
        return {int(name) for name in self._children("/brokers/ids")}

    def controller(self) -> int | None:
        return (self._json("/controller") or {}).get("brokerid")

    def epoch(self, number: int) -> int:
        """The transaction that registered the broker: another after each registration."""
        found = self._asked(self._tree.exists, f"{self.chroot}/brokers/ids/{number}")
        return found.czxid if found else -1

    def state(self, topic: str, partition: int) -> dict:
        return self._json(f"/brokers/topics/{topic}/partitions/{partition}/state") or {}

    def leader(self, topic: str, partition: int = 0) -> int | None:
        return self.state(topic, partition).get("leader")

    def replicas(self) -> dict[tuple[str, int], list[int]]:
        """The replicas of every partition of every topic."""
        return {
            (topic, int(partition)): replicas
            for topic in self._children("/brokers/topics")
            for partition, replicas in self._partitions(topic).items()
        }

    def _partitions(self, topic: str) -> dict[str, list[int]]:
        """Of a topic that may just have been deleted."""
        told = self._json(f"/brokers/topics/{topic}")
        return told["partitions"] if told else {}

    def in_sync(self) -> bool:
        """Whether every replica of every partition is in sync."""
        return all(
            set(self.state(*partition).get("isr", ())) == set(replicas)
            for partition, replicas in self.replicas().items()
        )

    def _children(self, path: str) -> list[str]:
        try:
            return self._asked(self._tree.get_children, self.chroot + path)
        except NoNodeError:
            return []

    def _json(self, path: str) -> dict | None:
        try:
            return json.loads(self._asked(self._tree.get, self.chroot + path)[0])
        except NoNodeError:
            return None

    # --- what clients see ---

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{place.host}:{place.advertised}" for place in self.places.values())

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def tells_alike(self, topic: str) -> bool:
        """Whether each broker tells clients the leaders that the tree holds."""
        partitions = [p for name, p in self.replicas() if name == topic]
        leaders = {partition: self.leader(topic, partition) for partition in partitions}
        return all(leaders_told_by(server, topic) == leaders for server in self.brokers.values())

    def create_topic(self, name: str, partitions: int = 3, leaders: Sequence[int] = NUMBERS) -> None:
        """These brokers lead in turn, and all have a copy; return when all replicas are in sync."""
        firsts = [NUMBERS.index(leaders[p % len(leaders)]) for p in range(partitions)]
        turns = [[*NUMBERS[first:], *NUMBERS[:first]] for first in firsts]
        config = {"segment.bytes": str(1 << 18)}
        new = NewTopic(name, num_partitions=partitions, replica_assignment=turns, config=config)
        admin = self.admin()
        admin.create_topics([new])[name].result(30)
        wait_until(self.in_sync, f"{name} is in sync")

    def tails(self, lines: int = 30) -> str:
        return "\n".join(
            f"--- broker {number}\n{server.tail(lines)}" for number, server in self.brokers.items()
        )


@contextlib.contextmanager
def opened(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, for as long as a fixture lends it."""
    try:
        with or_skip():
            cluster.open()
        yield cluster
    finally:
        cluster.close()
