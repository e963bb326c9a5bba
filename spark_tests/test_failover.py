"""A streaming query on a cluster of three to which everything happens that can."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.brokers import NUMBERS, SESSION_MS
from compat_tests.cluster.clients import Writer, ends
from compat_tests.cluster.conftest import clustered, cuttable_with_zookeeper, own_zookeeper
from compat_tests.cluster.faults import Fault
from compat_tests.cluster.history import History
from compat_tests.cluster.ordeal import IDEMPOTENT, PARTITIONS, RATE
from compat_tests.servers import wait_until
from spark_tests.connector import Arrived, Connector

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from compat_tests.cluster.brokers import Cluster

__all__ = ["clustered", "cuttable_with_zookeeper", "own_zookeeper"]

TOPIC = "read-on"
NOTICED_SECONDS = 1.5 * SESSION_MS / 1000
FAULTS = ("kill", "kill two", "stop", "pause", "cut", "expire", "zookeeper")


def struck_by(kind: str, cluster: Cluster) -> Fault:
    """The controller, which leads a partition too, and another where it takes two."""
    controller = cluster.controller()
    assert controller is not None
    others = [number for number in NUMBERS if number != controller]
    victims = {"kill two": (controller, others[0]), "zookeeper": ()}.get(kind, (controller,))
    return Fault(kind, victims, NOTICED_SECONDS)


@pytest.mark.feature("Spark: a broker that dies")
def test_a_query_reads_on_whatever_happens(
    cuttable_with_zookeeper: Cluster, spark: SparkSession, checkpoint: Path
) -> None:
    """One fault after another strikes under a load of acks=all, longer than a session. By the end the query has had
    every record once, at its offset."""
    cluster = cuttable_with_zookeeper
    cluster.create_topic(TOPIC, PARTITIONS)
    history, arrived = History(), Arrived()
    kafka = Connector(spark, cluster.bootstrap)
    load = {"bootstrap.servers": cluster.bootstrap, **IDEMPOTENT}
    try:
        with Writer(history, TOPIC, PARTITIONS, RATE // 3, load) as writer:
            stream = kafka.stream(subscribe=TOPIC, maxOffsetsPerTrigger=2000)
            query = kafka.start(stream, arrived, checkpoint)
            for kind in FAULTS:
                reads_on(arrived)
                fault = struck_by(kind, cluster)
                with fault.strikes(cluster):
                    time.sleep(fault.seconds)
                reads_on(arrived)
                wait_until(cluster.in_sync, f"all replicas are in sync after {fault}", 60)
                wait_until(lambda: cluster.controller() is not None, "somebody controls")
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
