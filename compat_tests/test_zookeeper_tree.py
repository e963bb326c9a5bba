"""The tree that our broker keeps in ZooKeeper, held znode by znode against the one Apache Kafka 3.9.1 writes."""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kazoo.client import KazooClient

from compat_tests.provision import or_skip
from compat_tests.servers import HOST, ApacheKafka, wait_until
from compat_tests.wire import Wire, string
from pykafka_broker.clock import SystemClock
from pykafka_broker.cluster import topics
from pykafka_broker.cluster.metadata import Metadata
from pykafka_broker.cluster.producer_ids import ProducerIds
from pykafka_broker.cluster.topics import MorePartitions, TopicRules
from pykafka_broker.cluster.znodes import BrokerRegistration, Endpoint
from pykafka_broker.cluster.zookeeper_store import ZookeeperSettings, ZookeeperStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.servers import Zookeeper

Tree = dict[str, tuple[bytes | None, int, bool, list[object]]]
"""By path: data, version, whether it is ephemeral, and the access list."""

TOPIC, BROKER = 2, 4
INCREMENTAL_ALTER_CONFIGS = 44

# What no two clusters have in common.
CHANCE = re.compile(rb'"(topic_id|timestamp|id)":"[^"]*"')


@contextlib.contextmanager
def client_of(zookeeper: Zookeeper) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper.connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def children(zookeeper: Zookeeper, path: str) -> list[str]:
    with client_of(zookeeper) as client:
        return client.get_children(path)


def tree_of(zookeeper: Zookeeper, root: str) -> Tree:
    found: Tree = {}

    def walk(client: KazooClient, path: str) -> None:
        data, stat = client.get(path)
        acl, _ = client.get_acls(path)
        if data is not None:
            data = CHANCE.sub(rb'"\1":"..."', data)
        # Kafka writes its registration twice as it starts, with the same bytes; nobody asks for that version.
        version = 0 if "/brokers/ids/" in path else stat.version
        found[path.removeprefix(root) or "/"] = (data, version, stat.ephemeralOwner != 0, acl)
        for child in client.get_children(path):
            walk(client, f"{path}/{child}")

    with client_of(zookeeper) as client:
        walk(client, root)
    return found


@pytest.fixture(scope="module")
def kafka(zookeeper: Zookeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    settings = {"zookeeper.connect": f"{zookeeper.connect}/theirs", "broker.rack": "r1"}
    server = ApacheKafka("3.9.1", tmp_path_factory.mktemp("tree"), settings, zookeeper=zookeeper)
    try:
        with or_skip():
            server.start()
        yield server
    finally:
        server.close()


def live_with_kafka(kafka: ApacheKafka, zookeeper: Zookeeper) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})

    def done(futures: dict[object, object]) -> None:
        for future in futures.values():
            future.result(30)

    def change(kind: int, name: str, key: str, value: str) -> None:
        """By hand: confluent-kafka cannot name the default of all brokers, which has no name."""
        config = string(key) + b"\0" + string(value)
        resource = bytes([kind]) + string(name) + struct.pack(">i", 1) + config
        with Wire(kafka.port) as wire:
            answer = wire.request(INCREMENTAL_ALTER_CONFIGS, 0, struct.pack(">i", 1) + resource + b"\0")
        assert answer[8:10] == b"\0\0", answer

    done(admin.create_topics([NewTopic("plain", 2, 1), NewTopic("doomed", 1, 1)]))
    done(admin.create_topics([NewTopic("set-up", 1, 1, config={"retention.ms": "1000"})]))
    done(admin.create_partitions([NewPartitions("plain", 3)]))
    change(TOPIC, "plain", "max.message.bytes", "1234")
    change(TOPIC, "set-up", "retention.ms", "2000")
    change(BROKER, "", "log.cleaner.threads", "2")
    change(BROKER, "1", "log.cleaner.io.buffer.load.factor", "0.8")
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
    producer.produce("plain", b"an idempotent producer takes a block of ids", partition=0)
    producer.flush(30)
    done(admin.delete_topics(["doomed"]))
    # The node that asked for it goes last.
    wait_until(lambda: not children(zookeeper, "/theirs/admin/delete_topics"), "the topic is deleted")


async def live_with_us(zookeeper: Zookeeper, registration: BrokerRegistration) -> tuple[Tree, Tree]:
    """The tree at first, and after the same life."""
    store = await ZookeeperStore.open(ZookeeperSettings(f"{zookeeper.connect}/ours"))
    rules = TopicRules(1, 1, lambda config: None)
    metadata = await Metadata.open(store, SystemClock(), rules, registration)
    fresh = await asyncio.to_thread(tree_of, zookeeper, "/ours")
    await metadata.create_topics([topics.NewTopic("plain", 2, 1), topics.NewTopic("doomed", 1, 1)])
    await metadata.create_topics([topics.NewTopic("set-up", 1, 1, config={"retention.ms": "1000"})])
    await metadata.create_partitions([MorePartitions("plain", 3)])
    await metadata.alter_topic_configs({"plain": lambda now: {"max.message.bytes": "1234"}})
    await metadata.alter_topic_configs({"set-up": lambda now: {"retention.ms": "2000"}})
    await metadata.alter_broker_configs({None: lambda now: {"log.cleaner.threads": "2"}})
    await metadata.alter_broker_configs({1: lambda now: {"log.cleaner.io.buffer.load.factor": "0.8"}})
    await ProducerIds(store, 1).next()
    await metadata.delete_topics(["doomed"])
    lived = await asyncio.to_thread(tree_of, zookeeper, "/ours")
    await store.close()
    return fresh, lived


def test_the_same_life_leaves_the_same_tree(kafka: ApacheKafka, zookeeper: Zookeeper) -> None:
    their_fresh = tree_of(zookeeper, "/theirs")
    live_with_kafka(kafka, zookeeper)
    their_lived = tree_of(zookeeper, "/theirs")
    registration = BrokerRegistration(1, (Endpoint("PLAINTEXT", HOST, kafka.port),), rack="r1")
    our_fresh, our_lived = asyncio.run(live_with_us(zookeeper, registration))
    for ours, theirs in ((our_fresh, their_fresh), (our_lived, their_lived)):
        assert sorted(ours) == sorted(theirs)
        assert {path: ours[path] for path in sorted(ours)} == {path: theirs[path] for path in sorted(theirs)}
