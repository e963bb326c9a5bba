"""Streaming queries: where they start, how much they take at once, how they go on after a restart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import spark_partition_id

from compat_tests.conftest import create_topic
from compat_tests.samples import BEGIN_MS
from spark_tests.broker_side import fill, grow_topic, stored, stored_values
from spark_tests.connector import Arrived, Connector

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server


def words(begin: int, end: int) -> list[str]:
    return [str(number) for number in range(begin, end)]


@pytest.mark.feature("Spark: streaming read")
def test_a_running_query_reads_what_arrives(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name = topic()
    fill(broker, name, ["0"], headers=[("trace", b"1")])
    arrived = Arrived()
    query = kafka.start(kafka.stream(subscribe=name, includeHeaders=True), arrived, checkpoint)
    for number in range(1, 4):
        query.processAllAvailable()
        fill(broker, name, [number])
    query.processAllAvailable()
    assert arrived.values == words(0, 4)
    assert [(h.key, bytes(h.value)) for h in arrived.rows[0].headers] == [("trace", b"1")]
    assert query.lastProgress.sources[0].endOffset == json.dumps({name: {"0": 4}}, separators=(",", ":"))


@pytest.mark.feature("Spark: streaming read")
def test_a_query_that_starts_at_the_latest_reads_only_what_comes_after(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name = topic()
    fill(broker, name, ["before"])
    arrived = Arrived()
    query = kafka.start(kafka.stream(subscribe=name, startingOffsets="latest"), arrived, checkpoint)
    query.processAllAvailable()
    fill(broker, name, ["after"])
    query.processAllAvailable()
    assert arrived.values == ["after"]


@pytest.mark.feature("Spark: offsets by JSON")
def test_queries_start_at_offsets_and_timestamps(
    kafka: Connector, broker: Server, topic: MakeTopic, tmp_path: Path
) -> None:
    name = topic()
    for number in range(5):
        fill(broker, name, [number], timestamp=BEGIN_MS + 1000 * number)

    def read(label: str, **start: object) -> list[str]:
        return kafka.drain(kafka.stream(subscribe=name, **start), tmp_path / label).values

    assert read("offset", startingOffsets=json.dumps({name: {"0": 3}})) == ["3", "4"]
    assert read("timestamp", startingTimestamp=BEGIN_MS + 1500) == ["2", "3", "4"]
    by_partition = json.dumps({name: {"0": BEGIN_MS + 4000}})
    assert read("timestamps", startingOffsetsByTimestamp=by_partition) == ["4"]


@pytest.mark.feature("Spark: subscribe, assign, subscribePattern")
def test_a_pattern_finds_topics_made_while_the_query_runs(
    kafka: Connector, broker: Server, checkpoint: Path, fresh_name: str
) -> None:
    fill(broker, create_topic(broker.bootstrap, f"{fresh_name}.one"), ["1"])
    arrived = Arrived()
    query = kafka.start(kafka.stream(subscribePattern=f"{fresh_name}\\..*"), arrived, checkpoint)
    query.processAllAvailable()
    fill(broker, create_topic(broker.bootstrap, f"{fresh_name}.two"), ["2"])
    query.processAllAvailable()
    assert [(row.topic.rpartition(".")[2], bytes(row.value)) for row in arrived.rows] == [
        ("one", b"1"),
        ("two", b"2"),
    ]


@pytest.mark.feature("Spark: subscribe, assign, subscribePattern")
def test_an_assigned_query_reads_its_partitions_alone(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name = topic(partitions=3)
    for partition in range(3):
        fill(broker, name, [partition], partition=partition)
    arrived = kafka.drain(kafka.stream(assign=json.dumps({name: [0, 2]})), checkpoint)
    assert arrived.places == [(0, 0), (2, 0)]


@pytest.mark.feature("Spark: added partitions")
def test_partitions_added_under_a_query_are_read_from_their_beginning(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name = topic()
    fill(broker, name, range(2))
    arrived = Arrived()
    query = kafka.start(kafka.stream(subscribe=name), arrived, checkpoint)
    query.processAllAvailable()
    grow_topic(broker, name, 3)
    for partition in range(3):
        fill(broker, name, ["new"], partition=partition)
    query.processAllAvailable()
    assert arrived.places == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)]


@pytest.mark.feature("Spark: maxOffsetsPerTrigger")
def test_no_batch_takes_more_than_it_is_allowed(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name = topic(partitions=2)
    fill(broker, name, range(6))
    fill(broker, name, range(6), partition=1)
    stream = kafka.stream(subscribe=name, maxOffsetsPerTrigger=4)
    arrived = kafka.drain(stream, checkpoint)
    assert arrived.sizes == [4, 4, 4]
    assert arrived.places == [(partition, offset) for partition in (0, 1) for offset in range(6)]


@pytest.mark.feature("Spark: back-pressure")
def test_a_backlog_is_worked_off_in_bounded_batches(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    """Records come faster than the query takes them, through a socket and fetches far smaller than a batch."""
    name = topic()
    fill(broker, name, ("x" * 50_000 + str(number) for number in range(10)))
    small = {"kafka_max_partition_fetch_bytes": 1000, "kafka_receive_buffer_bytes": 4096}
    arrived = Arrived()
    stream = kafka.stream(subscribe=name, maxOffsetsPerTrigger=7, **small)
    query = kafka.start(stream, arrived, checkpoint)
    fill(broker, name, ("x" * 50_000 + str(number) for number in range(10, 20)))
    query.processAllAvailable()
    assert [value.lstrip("x") for value in arrived.values] == words(0, 20)
    assert max(arrived.sizes) <= 7
    assert query.lastProgress.sources[0].metrics["maxOffsetsBehindLatest"] == "0"


@pytest.mark.feature("Spark: minPartitions")
def test_a_streaming_batch_is_split_among_more_tasks(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name = topic()
    fill(broker, name, range(9))
    stream = kafka.stream(subscribe=name, minPartitions=3).withColumn("task", spark_partition_id())
    arrived = kafka.drain(stream, checkpoint)
    assert arrived.values == words(0, 9)
    assert [row.task for row in arrived.rows] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.feature("Spark: availableNow and checkpoints")
def test_a_query_goes_on_where_its_checkpoint_ends(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name = topic()
    stream = kafka.stream(subscribe=name)
    fill(broker, name, range(3))
    assert kafka.drain(stream, checkpoint).values == words(0, 3)
    assert kafka.drain(stream, checkpoint).values == []
    fill(broker, name, range(3, 5))
    assert kafka.drain(stream, checkpoint).values == words(3, 5)


@pytest.mark.feature("Spark: topic to topic")
def test_a_topic_is_copied_into_another_through_a_restart(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    source, target = topic(partitions=2), topic(partitions=2)
    stream = kafka.stream(subscribe=source, includeHeaders=True)
    copied = stream.selectExpr("key", "upper(string(value)) AS value", "headers", "partition")
    for first in ("a", "b"):
        for partition in (0, 1):
            sent = [f"{first}{partition}-{number}" for number in range(3)]
            fill(broker, source, sent, partition=partition, key=b"k", headers=[("h", b"1")])
        query = kafka.start_into(copied, checkpoint, available_now=True, topic=target)
        assert query.awaitTermination(60)
    assert stored_values(broker, target) == [
        f"{first}{partition}-{number}" for partition in (0, 1) for first in "AB" for number in range(3)
    ]
    assert {(m.key(), tuple(m.headers())) for m in stored(broker, target)} == {(b"k", (("h", b"1"),))}


@pytest.mark.feature("Spark: topic to topic")
def test_a_running_query_feeds_another(
    kafka: Connector, broker: Server, topic: MakeTopic, tmp_path: Path
) -> None:
    source, target = topic(), topic()
    copy = kafka.stream(subscribe=source).selectExpr(f"'{target}' AS topic", "value")
    first = kafka.start_into(copy, tmp_path / "first")
    arrived = Arrived()
    second = kafka.start(kafka.stream(subscribe=target), arrived, tmp_path / "second")
    for begin in (0, 5):
        fill(broker, source, range(begin, begin + 5))
        first.processAllAvailable()
        second.processAllAvailable()
    assert arrived.values == words(0, 10)
