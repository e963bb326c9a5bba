"""Two clusters of three brokers on one ZooKeeper: ours, and Apache Kafka 3.9.1, the last line that knows ZooKeeper."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from benchmarks.contenders import (
    OURS,
    PROPERTIES,
    TOPIC_SECONDS,
    Contender,
    StockKafka,
    TimedBroker,
    allow_many_files,
)
from compat_tests.servers import Zookeeper, free_port, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from confluent_kafka.admin import PartitionMetadata

NUMBERS = (1, 2, 3)
KAFKA_VERSION = "3.9.1"
SESSION_MS = 6000
ANSWER_MS = 10_000
REPLICATED = PROPERTIES | {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    # Leaders move when a row moves them, and at no other time.
    "auto.leader.rebalance.enable": "false",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """Three running brokers with the name their column carries, and their part of ZooKeeper's tree."""

    name: str
    brokers: dict[int, Contender]
    zookeeper: Zookeeper
    tree: KazooClient

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def cpu_seconds(self) -> float:
        """What all brokers have spent since they started."""
        return sum(broker.process.cpu_seconds() for broker in self.brokers.values())

    def start(self) -> None:
        """Start the brokers that do not run; return when all of them know all."""
        down = [broker for broker in self.brokers.values() if not broker.server.alive]
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda broker: broker.server.start(), down))
        for broker in self.brokers.values():
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            wait_until(
                lambda admin=admin: len(admin.list_topics(timeout=10).brokers) == len(NUMBERS),
                f"{self.name}: a broker knows all",
                TOPIC_SECONDS,
            )

    def controller(self) -> int:
        """The broker that leads the others now."""
        return int(json.loads(self.tree.get("/controller")[0])["brokerid"])

    def heard_of(self, number: int) -> None:
        """Return just after ZooKeeper heard of a broker: its session ends a full timeout after this moment."""
        session = self.tree.exists(f"/brokers/ids/{number}").ephemeralOwner
        counted = re.compile(rf"recved=(\d+),[^)]*sid={session:#x},")
        before = counted.findall(self.zookeeper.ask("cons"))
        wait_until(
            lambda: counted.findall(self.zookeeper.ask("cons")) != before,
            f"ZooKeeper hears of broker {number}",
        )

    def create_topic(self, topic: str, partitions: int) -> None:
        """Each broker leads every third partition; return when all replicas are in sync."""
        turns = [[NUMBERS[(at + turn) % 3] for turn in range(3)] for at in range(partitions)]
        new = NewTopic(topic, num_partitions=partitions, replica_assignment=turns)
        admin = self._admin()  # kept until the answer is there: with its client the request would end
        admin.create_topics([new], request_timeout=TOPIC_SECONDS)[topic].result(TOPIC_SECONDS)
        self.until_whole(topic, partitions)

    def until_whole(self, topic: str, partitions: int) -> None:
        """Return when every replica is in sync and the first of each partition leads."""
        admin = self._admin(**{"socket.timeout.ms": ANSWER_MS})
        wait_until(
            lambda: len(found := self._described(admin, topic)) == partitions and all(map(_in_sync, found)),
            f"{self.name}: {topic} is in sync",
            TOPIC_SECONDS,
        )
        deadline = time.monotonic() + TOPIC_SECONDS
        while not all(map(_as_placed, self._described(admin, topic))):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: {topic} is not led as placed")
            with contextlib.suppress(KafkaException):  # asked again: a new controller may not be known yet
                admin.elect_leaders(ElectionType.PREFERRED).result(TOPIC_SECONDS)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic and wait until its files are gone everywhere."""
        admin = self._admin()
        admin.delete_topics([topic], request_timeout=TOPIC_SECONDS)[topic].result(TOPIC_SECONDS)
        logs = [broker.server.log_dir for broker in self.brokers.values()]
        wait_until(
            lambda: not any(any(log.glob(f"{topic}-*")) for log in logs),
            f"{self.name}: the files of {topic} are deleted",
            TOPIC_SECONDS,
        )

    def _admin(self, **config: int) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, **config})

    def _described(self, admin: AdminClient, topic: str) -> Sequence[PartitionMetadata]:
        return list(admin.list_topics(topic, timeout=30).topics[topic].partitions.values())


@contextlib.contextmanager
def running(names: Sequence[str], directory: Path) -> Iterator[list[Cluster]]:
    """The named clusters on empty logs and one ZooKeeper; gone afterwards."""
    allow_many_files()
    home = Path(tempfile.mkdtemp(prefix="clusters-", dir=directory))
    # Sessions end at a tick: with short ones chance has little part in how long a dead broker is waited for.
    zookeeper = Zookeeper(home / "zookeeper", {"tickTime": "50"})
    with contextlib.ExitStack() as ending:
        ending.callback(shutil.rmtree, home, ignore_errors=True)
        ending.callback(zookeeper.close)
        zookeeper.start()
        clusters = []
        for name in names:
            cluster = _made(name, home, zookeeper)
            for broker in cluster.brokers.values():
                ending.callback(broker.server.close)
            with warnings.catch_warnings(action="ignore"):  # the root is made by the next line
                cluster.tree.start()
            ending.callback(cluster.tree.close)
            ending.callback(cluster.tree.stop)
            cluster.tree.ensure_path("/")
            cluster.start()
            clusters.append(cluster)
        yield clusters


def _made(name: str, home: Path, zookeeper: Zookeeper) -> Cluster:
    """A cluster that is not yet started, under a root of its own in the tree."""
    chroot = f"{zookeeper.connect}/{name.lower()}"
    brokers = {}
    for number in NUMBERS:
        properties = REPLICATED | {"broker.id": str(number), "zookeeper.connect": chroot}
        where, port = home / f"{name}-{number}", free_port()
        server = (
            TimedBroker(where, properties, port)
            if name == OURS
            else StockKafka(KAFKA_VERSION, where, properties, port, zookeeper=zookeeper)
        )
        brokers[number] = Contender(name, server)
    return Cluster(name, brokers, zookeeper, KazooClient(chroot, timeout=30))


def _in_sync(partition: PartitionMetadata) -> bool:
    return set(partition.isrs) == set(NUMBERS)


def _as_placed(partition: PartitionMetadata) -> bool:
    return _in_sync(partition) and partition.leader == partition.replicas[0]
