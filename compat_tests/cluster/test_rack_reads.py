"""Consumers read from the replica in their own rack (KIP-392), and from the leader when that is gone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.cluster.brokers import Cluster, opened
from compat_tests.cluster.places import Loopback
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.cluster.places import Place
    from compat_tests.servers import Server, Zookeeper

pytestmark = pytest.mark.long
TOPIC, LEADER, NEAR = "near", 1, 3


class RackedCluster(Cluster):
    """Each broker in a rack of its own."""

    def _make(self, number: int, place: Place) -> Server:
        server = super()._make(number, place)
        server.properties |= {
            "broker.rack": f"rack-{number}",
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        }
        return server


@pytest.fixture
def racked(clustered: str, zookeeper: Zookeeper, tmp_path: Path) -> Iterator[Cluster]:
    with opened(RackedCluster(clustered, zookeeper, Loopback(zookeeper), tmp_path)) as made:
        yield made


def test_a_consumer_reads_from_its_rack_and_from_the_leader_when_that_is_gone(racked: Cluster) -> None:
    racked.create_topic(TOPIC, 1, [LEADER])
    producer = Producer({"bootstrap.servers": racked.bootstrap, "acks": "all", "log_level": 0})
    sources: list[int] = []
    """The brokers that the consumer was seen to read from."""

    def note(told: str) -> None:
        partitions = json.loads(told)["topics"].get(TOPIC, {}).get("partitions", {})
        sources.extend([partitions["0"]["broker"]] if "0" in partitions else [])

    settings = {
        "bootstrap.servers": racked.bootstrap,
        "group.id": "nobody",
        "client.rack": f"rack-{NEAR}",
        "statistics.interval.ms": 100,
        "stats_cb": note,
        "topic.metadata.refresh.interval.ms": 1000,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    seen: list[int] = []

    def reads_from(broker: int) -> bool:
        producer.produce(TOPIC, b"", partition=0)
        producer.flush(30)
        seen.extend(m.offset() for m in consumer.consume(100, 0.2) if m.error() is None)
        return sources[-1:] == [broker]

    try:
        wait_until(lambda: reads_from(NEAR), "the consumer reads from the replica in its rack", 60)
        racked.kill(NEAR)
        wait_until(lambda: reads_from(LEADER), "the consumer reads from the leader", 60)
        racked.start(NEAR)
        wait_until(lambda: reads_from(NEAR), "the consumer is back at the replica in its rack", 60)
        assert racked.leader(TOPIC) == LEADER
        end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), 30)[1]
        while len(seen) < end:
            more = [m.offset() for m in consumer.consume(100, 10) if m.error() is None]
            assert more, f"only {len(seen)} of {end} records came"
            seen.extend(more)
    finally:
        consumer.close()
    assert seen == list(range(end))
