"""`kafka-segments` shows what Spark's own Kafka source shows, from the files alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from compat_tests.samples import CODECS
from spark_tests.broker_side import fill
from spark_tests.connector import fails, values

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server
    from spark_tests.connector import Connector

PLACE = ["topic", "partition", "offset"]


def load(spark: SparkSession, broker: Server, topic: str, **options: object) -> DataFrame:
    reader = spark.read.format("kafka-segments").options(subscribe=topic, **options)
    return reader.load(str(broker.log_dir))


def test_every_codec_reads_as_through_the_broker(
    segments: SparkSession, kafka: Connector, broker: Server, topic: MakeTopic
) -> None:
    name = topic(partitions=2, segment_bytes=65536, index_interval_bytes=1024)
    for number, codec in enumerate(CODECS):
        text = [f"{codec} {item} " + "x" * (item % 150) for item in range(300)]
        headers = [("codec", codec.encode()), ("none", None)] if number % 2 else None
        for part in (text[:20], text[20:]):
            fill(broker, name, part, number % 2, key=f"key {number}".encode(), headers=headers, codec=codec)
    fill(broker, name, ["no key"], timestamp=1700000000123)
    read = load(segments, broker, name, includeHeaders=True, splitBytes=2000)
    expected = kafka.read(subscribe=name, includeHeaders=True)
    assert read.schema == expected.schema
    assert read.rdd.getNumPartitions() > 2, "large segments are read by several tasks"
    assert read.orderBy(PLACE).collect() == expected.orderBy(PLACE).collect()


def test_offsets_choose_what_is_read(segments: SparkSession, broker: Server, topic: MakeTopic) -> None:
    name = topic(partitions=2)
    fill(broker, name, range(10))
    fill(broker, name, range(10, 20), 1)
    chosen = load(
        segments,
        broker,
        name,
        startingOffsets=json.dumps({name: {"0": 4, "1": -1}}),
        endingOffsets=json.dumps({name: {"0": 7, "1": -1}}),
    )
    assert values(chosen) == ["4", "5", "6"]
    only = load(segments, broker, name).schema
    narrow = segments.read.format("kafka-segments").schema("offset long, value binary")
    found = narrow.option("subscribe", name).load(str(broker.log_dir))
    assert (len(only), found.columns, found.count()) == (7, ["offset", "value"], 20)


def test_a_stream_follows_the_log_and_continues_from_its_checkpoint(
    segments: SparkSession, kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name = topic()
    options = {"subscribe": name, "startingOffsets": "earliest", "path": str(broker.log_dir)}
    stream = segments.readStream.format("kafka-segments").options(**options).load()
    fill(broker, name, range(5))
    assert kafka.drain(stream, checkpoint).values == ["0", "1", "2", "3", "4"]
    fill(broker, name, range(5, 8), codec="zstd")
    assert kafka.drain(stream, checkpoint).values == ["5", "6", "7"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "nowhere"}, "no topic nowhere in"),
        ({"subscribe": "nowhere", "path": "missing"}, "missing: no such log directory"),
        ({}, "needs one of subscribe and subscribePattern"),
        ({"subscribePattern": ".*", "startingOffsets": "first"}, "expected earliest, latest or"),
    ],
)
def test_bad_input_is_named(
    segments: SparkSession, broker: Server, options: dict[str, str], message: str
) -> None:
    options = {"path": str(broker.log_dir)} | options
    with fails(naming=message):
        segments.read.format("kafka-segments").options(**options).load().collect()
