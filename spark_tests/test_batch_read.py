"""Batch reads: which topics, which offsets, and every column of a record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from pyspark.sql.functions import spark_partition_id

from compat_tests.samples import BEGIN_MS, CODECS
from spark_tests.broker_side import delete_records, fill
from spark_tests.connector import Connector, fails, values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server

EARLIEST, LATEST = -2, -1  # as Spark's offset JSON writes them


def offsets(topic: str, **partitions: int) -> str:
    """Spark's JSON for offsets or timestamps by partition: `offsets("t", p0=3)`."""
    return json.dumps({topic: {name.removeprefix("p"): offset for name, offset in partitions.items()}})


@pytest.mark.feature("Spark: batch read")
def test_every_column_of_a_record_is_read(kafka: Connector, broker: Server, topic: MakeTopic) -> None:
    name = topic(partitions=2)
    fill(broker, name, ["first"], key=b"k", timestamp=BEGIN_MS)
    fill(broker, name, ["second"], partition=1, timestamp=BEGIN_MS + 1)
    fill(broker, name, ["third"], partition=1, key=b"", timestamp=BEGIN_MS - 1)
    rows = kafka.read(subscribe=name).selectExpr("*", "unix_millis(timestamp) AS at").collect()
    assert sorted(
        (row.partition, row.offset, row.key, row.value, row.topic, row.timestampType, row["at"])
        for row in rows
    ) == [
        (0, 0, b"k", b"first", name, 0, BEGIN_MS),
        (1, 0, None, b"second", name, 0, BEGIN_MS + 1),
        (1, 1, b"", b"third", name, 0, BEGIN_MS - 1),
    ]


@pytest.mark.feature("Spark: batch read")
def test_log_append_time_shows_in_the_timestamp_type(
    kafka: Connector, broker: Server, topic: MakeTopic
) -> None:
    name = topic(message_timestamp_type="LogAppendTime")
    fill(broker, name, ["stamped by the broker"], timestamp=BEGIN_MS)
    [row] = kafka.read(subscribe=name).selectExpr("timestampType", "unix_millis(timestamp) AS at").collect()
    assert row.timestampType == 1
    assert row["at"] > BEGIN_MS + 1_000_000


@pytest.mark.feature("Spark: headers")
def test_headers_are_read_in_order_with_repeats_and_nulls(
    kafka: Connector, broker: Server, topic: MakeTopic
) -> None:
    name = topic()
    headers = [("trace", b"1"), ("trace", b"2"), ("žluť", "kůň".encode()), ("empty", b""), ("null", None)]
    fill(broker, name, ["with"], headers=headers)
    fill(broker, name, ["without"])
    rows = sorted(kafka.read(subscribe=name, includeHeaders=True).collect(), key=lambda row: row.offset)
    assert [(header.key, header.value) for header in rows[0].headers] == headers
    assert rows[1].headers is None
    assert "headers" not in kafka.read(subscribe=name).columns


@pytest.mark.feature("Spark: codecs")
@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_every_codec_are_read(
    kafka: Connector, broker: Server, topic: MakeTopic, codec: str
) -> None:
    name = topic()
    sent = [f"compress me, {codec}, {number % 3}" for number in range(200)]
    fill(broker, name, sent, codec=codec)
    assert values(kafka.read(subscribe=name)) == sent


@pytest.mark.feature("Spark: subscribe, assign, subscribePattern")
def test_topics_are_chosen_by_list_assignment_or_pattern(
    kafka: Connector, broker: Server, topic: MakeTopic
) -> None:
    one, two, other = topic(partitions=2), topic(partitions=2), topic()
    for name, words in ((one, "ab"), (two, "cd"), (other, "x")):
        for partition, word in enumerate(words):
            fill(broker, name, [word], partition=partition)
    assert sorted(values(kafka.read(subscribe=f"{one},{two}"))) == ["a", "b", "c", "d"]
    assert sorted(values(kafka.read(assign=json.dumps({one: [1], two: [0]})))) == ["b", "c"]
    stem, _, numbers = one.rpartition("-")
    either = f"{stem}-({numbers}|{two.rpartition('-')[2]})"
    assert sorted(values(kafka.read(subscribePattern=either))) == ["a", "b", "c", "d"]
    assert values(kafka.read(subscribePattern=f"{stem}-no-such-.*")) == []


@pytest.mark.feature("Spark: offsets by JSON")
def test_offsets_bound_a_read_by_partition(kafka: Connector, broker: Server, topic: MakeTopic) -> None:
    name = topic(partitions=2)
    for partition in (0, 1):
        fill(broker, name, [f"{partition}-{number}" for number in range(5)], partition=partition)

    def between(start: str, end: str) -> list[str]:
        return values(kafka.read(subscribe=name, startingOffsets=start, endingOffsets=end))

    assert between("earliest", "latest") == [f"{p}-{number}" for p in (0, 1) for number in range(5)]
    assert between(offsets(name, p0=1, p1=3), offsets(name, p0=3, p1=4)) == ["0-1", "0-2", "1-3"]
    assert between(offsets(name, p0=EARLIEST, p1=4), offsets(name, p0=1, p1=LATEST)) == ["0-0", "1-4"]
    assert between(offsets(name, p0=2, p1=2), offsets(name, p0=2, p1=2)) == []


@pytest.mark.feature("Spark: offsets by timestamp")
class TestByTimestamp:
    """Records a second apart, the one of partition 1 half a second later."""

    @pytest.fixture
    def timed(self, broker: Server, topic: MakeTopic) -> str:
        name = topic(partitions=2)
        for second in range(5):
            for partition in (0, 1):
                at = BEGIN_MS + 1000 * second + 500 * partition
                fill(broker, name, [f"{partition}-{second}"], partition=partition, timestamp=at)
        return name

    def test_one_timestamp_bounds_all_partitions(self, kafka: Connector, timed: str) -> None:
        bounds = {"startingTimestamp": BEGIN_MS + 1500, "endingTimestamp": BEGIN_MS + 3500}
        assert values(kafka.read(subscribe=timed, **bounds)) == ["0-2", "0-3", "1-1", "1-2"]
        past = BEGIN_MS + 3000
        assert values(kafka.read(subscribe=timed, startingTimestamp=past)) == ["0-3", "0-4", "1-3", "1-4"]
        assert len(values(kafka.read(subscribe=timed, startingTimestamp=1))) == 10

    def test_each_partition_may_have_its_own(self, kafka: Connector, timed: str) -> None:
        read = kafka.read(
            subscribe=timed,
            startingOffsetsByTimestamp=offsets(timed, p0=BEGIN_MS + 3000, p1=BEGIN_MS + 3501),
            endingOffsetsByTimestamp=offsets(timed, p0=BEGIN_MS + 4000, p1=BEGIN_MS + 99_000),
        )
        assert values(read) == ["0-3", "1-4"]

    def test_a_start_past_the_end_fails_or_is_the_latest(self, kafka: Connector, timed: str) -> None:
        late: dict[str, object] = {"subscribe": timed, "startingTimestamp": BEGIN_MS + 99_000}
        with fails(naming="No offset matched from request"):
            kafka.read(**late).collect()
        assert values(kafka.read(**late, startingOffsetsByTimestampStrategy="latest")) == []


@pytest.mark.feature("Spark: offsets by timestamp")
@pytest.mark.parametrize("codec", CODECS)
def test_a_timestamp_inside_a_batch_starts_at_its_record(
    kafka: Connector, broker: Server, topic: MakeTopic, codec: str
) -> None:
    name = topic()
    with_times = {str(number): BEGIN_MS + number for number in range(10)}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50, "compression.codec": codec})
    for value, at in with_times.items():
        producer.produce(name, value, partition=0, timestamp=at)
    assert producer.flush(30) == 0
    assert values(kafka.read(subscribe=name, startingTimestamp=BEGIN_MS + 7)) == ["7", "8", "9"]


def _pieces(frame: DataFrame) -> list[tuple[int, int]]:
    """How many records each of Spark's tasks read, by the partition they came from."""
    counted = frame.groupBy(spark_partition_id().alias("task"), "partition").count().collect()
    return sorted((row.partition, row["count"]) for row in counted)


@pytest.mark.feature("Spark: minPartitions")
def test_partitions_are_split_among_more_tasks(kafka: Connector, broker: Server, topic: MakeTopic) -> None:
    name = topic(partitions=2)
    fill(broker, name, range(30))
    fill(broker, name, range(10), partition=1)
    assert _pieces(kafka.read(subscribe=name)) == [(0, 30), (1, 10)]
    assert _pieces(kafka.read(subscribe=name, minPartitions=4)) == [(0, 10), (0, 10), (0, 10), (1, 10)]


@pytest.mark.feature("Spark: failOnDataLoss")
def test_a_batch_read_below_the_logs_start_fails_or_reads_the_rest(
    kafka: Connector, broker: Server, topic: MakeTopic
) -> None:
    name = topic()
    fill(broker, name, range(10))
    delete_records(broker, name, before=6)
    assert values(kafka.read(subscribe=name)) == ["6", "7", "8", "9"]
    below: dict[str, object] = {"subscribe": name, "startingOffsets": offsets(name, p0=2)}
    with fails(naming="Some data may have been lost"):
        kafka.read(**below, failOnDataLoss=True).collect()
    assert values(kafka.read(**below, failOnDataLoss=False)) == ["6", "7", "8", "9"]


@pytest.mark.feature("Spark: batch read")
def test_a_topic_that_is_not_there_is_named_and_not_made(
    kafka: Connector, broker: Server, topic: MakeTopic, fresh_name: str
) -> None:
    with fails(naming="UnknownTopicOrPartitionException"):
        kafka.read(subscribe=fresh_name, fetchOffset_retryIntervalMs=1).collect()
    assert values(kafka.read(subscribePattern=fresh_name)) == [], "reading made the topic"
    assert values(kafka.read(subscribe=topic())) == []
