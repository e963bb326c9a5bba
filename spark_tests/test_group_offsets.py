"""`useDeprecatedOffsetFetching`: Spark plans its reads as a member of a consumer group."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from compat_tests.samples import BEGIN_MS
from spark_tests.broker_side import fill, grow_topic
from spark_tests.connector import Arrived, Connector, values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server

pytestmark = [pytest.mark.feature("Spark: useDeprecatedOffsetFetching"), pytest.mark.usefixtures("as_member")]


@pytest.fixture
def as_member(spark: SparkSession) -> Iterator[None]:
    switch = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    spark.conf.set(switch, "true")
    yield
    spark.conf.unset(switch)


def test_batch_reads_are_planned_by_a_group_member(
    kafka: Connector, broker: Server, topic: MakeTopic
) -> None:
    name = topic(partitions=2)
    for partition in (0, 1):
        for number in range(3):
            at = BEGIN_MS + 1000 * number
            fill(broker, name, [f"{partition}-{number}"], partition=partition, timestamp=at)
    everything = ["0-0", "0-1", "0-2", "1-0", "1-1", "1-2"]
    assert values(kafka.read(subscribe=name)) == everything
    assert values(kafka.read(subscribePattern=f"{name}.*")) == everything
    assert values(kafka.read(assign=json.dumps({name: [1]}))) == everything[3:]
    assert values(kafka.read(subscribe=name, startingTimestamp=BEGIN_MS + 1500)) == ["0-2", "1-2"]
    ends = json.dumps({name: {"0": 1, "1": 2}})
    assert values(kafka.read(subscribe=name, endingOffsets=ends)) == ["0-0", "1-0", "1-1"]


def test_a_running_query_is_a_member_of_the_group_it_names(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path, fresh_name: str
) -> None:
    name = topic()
    fill(broker, name, range(3))
    arrived = Arrived()
    query = kafka.start(kafka.stream(subscribe=name, groupIdPrefix=fresh_name), arrived, checkpoint)
    query.processAllAvailable()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    groups = [group.group_id for group in admin.list_consumer_groups().result(30).valid]
    [group] = [found for found in groups if found.startswith(fresh_name)]
    [member] = admin.describe_consumer_groups([group])[group].result(30).members
    assert [(place.topic, place.partition) for place in member.assignment.topic_partitions] == [(name, 0)]
    fill(broker, name, range(3, 5))
    query.processAllAvailable()
    assert arrived.values == ["0", "1", "2", "3", "4"]


def test_partitions_added_under_a_group_member_are_read(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name = topic()
    fill(broker, name, ["0"])
    stream = kafka.stream(subscribe=name)
    assert kafka.drain(stream, checkpoint).places == [(0, 0)]
    grow_topic(broker, name, 2)
    fill(broker, name, ["1"], partition=1)
    assert kafka.drain(stream, checkpoint).places == [(1, 0)]
