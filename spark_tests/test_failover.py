"""A streaming query on a cluster of three whose leaders and controller die by kill -9 under it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.brokers import Cluster, opened
from compat_tests.cluster.clients import Writer, ends
from compat_tests.cluster.history import History
from compat_tests.cluster.ordeal import IDEMPOTENT, PARTITIONS, RATE
from compat_tests.cluster.places import Loopback
from compat_tests.servers import wait_until
from spark_tests.connector import Arrived, Connector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from compat_tests.servers import Zookeeper

pytestmark = pytest.mark.long
TOPIC = "read-on"


@pytest.fixture
def cluster(against: str, zookeeper: Zookeeper, tmp_path: Path) -> Iterator[Cluster]:
    if against == "kafka-4.3.1":
        pytest.skip("Apache Kafka 4 knows no ZooKeeper")
    with opened(Cluster(against, zookeeper, Loopback(zookeeper), tmp_path)) as made:
        yield made


@pytest.mark.feature("Spark: a broker that dies")
def test_a_query_reads_on_while_brokers_die(cluster: Cluster, spark: SparkSession, checkpoint: Path) -> None:
    """First the controller, which leads a partition too, then the broker that has taken over: each dies under a load
    of acks=all. By the end the query has had every record once, at its offset."""
    cluster.create_topic(TOPIC, PARTITIONS)
    history, arrived = History(), Arrived()
    kafka = Connector(spark, cluster.bootstrap)
    load = {"bootstrap.servers": cluster.bootstrap, **IDEMPOTENT}
    try:
        with Writer(history, TOPIC, PARTITIONS, RATE // 3, load) as writer:
            stream = kafka.stream(subscribe=TOPIC, maxOffsetsPerTrigger=2000)
            query = kafka.start(stream, arrived, checkpoint)
            for _ in range(2):
                victim = cluster.controller()
                reads_on(arrived)
                cluster.kill(victim)
                wait_until(
                    lambda gone=victim: (
                        cluster.controller() not in (None, gone)
                        and all(cluster.leader(TOPIC, p) not in (-1, None, gone) for p in range(PARTITIONS))
                    ),
                    "others take over",
                )
                reads_on(arrived)
                cluster.start(victim)
                wait_until(cluster.in_sync, "all replicas are in sync again", 60)
        assert writer.errors == []
        query.processAllAvailable()
        assert query.exception() is None
    finally:
        kafka.close()
    end = ends(cluster.bootstrap, TOPIC, PARTITIONS)
    assert arrived.places == [(p, offset) for p in range(PARTITIONS) for offset in range(end[p])]
    seen = {(row.partition, row.offset): bytes(row.value) for row in arrived.rows}
    lost = [told for told in history.acknowledged if told.offset >= 0 and seen[told[:2]] != told.value]
    assert lost == []


def reads_on(arrived: Arrived) -> None:
    """Return when the query has got a batch more than it had, records in it."""
    before = len(arrived.sizes)
    wait_until(lambda: len(arrived.sizes) > before, "the query reads on", 90)
