"""Spark on both brokers: its own Kafka connector reading and writing, and `kafka-segments` beside it.

One session with two tasks at a time serves all. A reading sums over the whole topic, so every row reaches Spark and a
row lost or doubled fails the round; a writing is counted by the offsets at the end of its topic.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import psutil
import pyspark
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import functions as sf

from benchmarks.contenders import KAFKA, OURS, TOPIC_SECONDS, Contender, create_topic, delete_topic
from benchmarks.java_client import write_payloads
from benchmarks.measures import GB, MB
from benchmarks.rounds import Goal, Lab, Metric, Row, Sample, Section
from pykafka_broker.pipeline.session import prepared
from spark_tests.session import open_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

Kept = TypeVar("Kept")

SIZE = 100
PARTITIONS = 4
TOPIC = "spark-read"
SEGMENTS, NARROW = "segments", "segments, values only"
SETTINGS = {
    "spark.driver.memory": "2g",
    # The tests' session starts quickly instead of computing quickly.
    "spark.driver.extraJavaOptions": "",
    "spark.sql.codegen.wholeStage": "true",
}

AS_FAST = Metric("rate", "MB/s", Goal(1.0, at_least=True))
TWICE = Metric("rate", "MB/s", Goal(2.0, at_least=True))
RATE = Metric("rate", "MB/s")
SERVER_CPU = Metric("server_cpu", "broker CPU s/GB")
SPARK_CPU = Metric("spark_cpu", "Spark CPU s/GB")


@dataclass(frozen=True, slots=True)
class Source:
    """One way for Spark to read the topic: what its numbers are kept under, and the rows."""

    name: str
    frame: Callable[[], DataFrame]
    contender: Contender | None = None
    """The broker it asks, if any."""


def spark(lab: Lab) -> list[Section]:
    """Both brokers' topics read in alternation with the segment files of ours, then both written."""
    home = lab.directory / "spark"
    home.mkdir()
    session = prepared(open_session(home, SETTINGS))
    try:
        with lab.running() as contenders:
            read = _read(lab, session, contenders)
            wrote = _write(lab, session, contenders)
    finally:
        session.stop()
    return [_connector(read, wrote), *_segments(read)]


def _connector(read: Row, wrote: Row) -> Section:
    note = (
        f"PySpark {pyspark.__version__} with its own connector, two tasks at a time, {PARTITIONS} partitions. Reading"
        " is a sum over the topic, writing the whole save. Spark CPU is its JVM with all Python workers."
    )
    row = Row(read.title, (AS_FAST, SERVER_CPU, SPARK_CPU), missing=_only(read.missing, OURS, KAFKA))
    row.samples = _only(read.samples, OURS, KAFKA)
    return Section("Spark: `kafka` source and sink", [row, wrote], note)


def _segments(read: Row) -> list[Section]:
    """What `kafka-segments` read, beside each of the others, as rows whose second column is named in the title."""
    if OURS not in read.samples and OURS not in read.missing:
        return []
    note = (
        'In this table "ours" is `kafka-segments` on the files of ours and "Kafka" the `kafka` source on the broker the'
        ' row names, all from the alternating rounds above. Values only: `.schema("value binary")`; the `kafka` source'
        " has no such choice and always reads every column."
    )
    rows = []
    for mine, what, metric in ((SEGMENTS, "every column", TWICE), (NARROW, "values only", RATE)):
        for other, beside in ((OURS, "`kafka` source on ours"), (KAFKA, "`kafka` source on Apache Kafka")):
            row = Row(f"`kafka-segments`, {what}, beside the {beside}", (metric, SPARK_CPU))
            for column, name in ((OURS, mine), (KAFKA, other)):
                if name in read.missing:
                    row.missing[column] = read.missing[name]
                elif name in read.samples:
                    row.samples[column] = read.samples[name]
            rows.append(row)
    return [Section("Spark: segments from disk", rows, note)]


def _read(lab: Lab, session: SparkSession, contenders: list[Contender]) -> Row:
    """One row that holds every source's readings under its own name."""
    records = lab.scaled(5_000_000)
    payloads = lab.directory / f"payloads-spark-{SIZE}"
    write_payloads(payloads, SIZE)
    sources = []
    for contender in contenders:
        create_topic(contender, TOPIC, PARTITIONS)
        # Batches that leave when they are full: both logs are laid out alike.
        lab.java().produce(contender.bootstrap, TOPIC, records, payloads, **{"linger.ms": "100"})
        sources.append(Source(contender.name, _through_broker(session, contender), contender))
        if contender.name == OURS:
            log_dir = contender.server.log_dir
            sources.append(Source(SEGMENTS, _from_disk(session, log_dir)))
            sources.append(Source(NARROW, _from_disk(session, log_dir, "value binary")))
    row = Row(f"read {records:,} records of {SIZE} B", (RATE, SERVER_CPU, SPARK_CPU))

    def run(source: Source, _: int) -> Sample:
        return _sample(session, source.contender, records, lambda: _sum(source.frame(), records))

    lab.alternate(row, sources, run)
    for source in sources:
        lab.say(f"   {source.name}: {_median(row, source.name)}")
    return row


def _median(row: Row, name: str) -> str:
    if name in row.missing:
        return row.missing[name]
    found = [(metric, row.spread(name, metric)) for metric in row.metrics]
    return ", ".join(f"{metric.heading} {seen.median:.4g}" for metric, seen in found if seen)


def _write(lab: Lab, session: SparkSession, contenders: list[Contender]) -> Row:
    records = lab.scaled(1_000_000)
    row = Row(f"write {records:,} records of {SIZE} B", (AS_FAST, SERVER_CPU, SPARK_CPU))

    def run(contender: Contender, number: int) -> Sample:
        topic = f"spark-write-{number}"
        create_topic(contender, topic, PARTITIONS)
        rows = session.range(records).select(sf.lpad(sf.col("id").cast("string"), SIZE, "x").alias("value"))
        writer = rows.write.format("kafka").option("kafka.bootstrap.servers", contender.bootstrap)
        sample = _sample(session, contender, records, lambda: writer.option("topic", topic).save())
        if (held := _held(contender, topic)) != records:
            raise RuntimeError(f"{topic} holds {held} records, {records} were written")
        delete_topic(contender, topic)
        return sample

    return lab.alternate(row, contenders, run)


def _through_broker(session: SparkSession, contender: Contender) -> Callable[[], DataFrame]:
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", contender.bootstrap)
    return reader.option("subscribe", TOPIC).load


def _from_disk(session: SparkSession, log_dir: Path, schema: str = "") -> Callable[[], DataFrame]:
    reader = session.read.format("kafka-segments").option("subscribe", TOPIC)
    if schema:
        reader = reader.schema(schema)
    return lambda: reader.load(str(log_dir))


def _sum(frame: DataFrame, records: int) -> None:
    """Every row of the frame, looked at and counted."""
    wanted = [sf.count("*"), sf.sum(sf.length("value"))]
    if "offset" in frame.columns:
        wanted += [sf.max("offset"), sf.max("timestamp")]
    [found] = frame.agg(*wanted).collect()
    if (found[0], found[1]) != (records, records * SIZE):
        raise RuntimeError(f"Spark read {found[0]} records of {found[1]} bytes, {records} were written")


def _sample(
    session: SparkSession, contender: Contender | None, records: int, work: Callable[[], None]
) -> Sample:
    spark_before = _spark_cpu(session)
    server_before = contender.process.cpu_seconds() if contender else 0.0
    started = time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    size = records * SIZE
    sample = {"rate": size / MB / seconds, "spark_cpu": (_spark_cpu(session) - spark_before) / (size / GB)}
    if contender:
        sample["server_cpu"] = (contender.process.cpu_seconds() - server_before) / (size / GB)
    return sample


def _spark_cpu(session: SparkSession) -> float:
    """CPU time of Spark's JVM and of the Python workers under it, those that have ended counted in."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    top = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())
    total = 0.0
    for process in (top, *top.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # its parent has its time by now
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def _held(contender: Contender, topic: str) -> int:
    """How many offsets the topic's partitions span."""
    consumer = Consumer({"bootstrap.servers": contender.bootstrap, "group.id": "spark-benchmark"})
    try:
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return sum(consumer.get_watermark_offsets(place, TOPIC_SECONDS)[1] for place in places)
    finally:
        consumer.close()


def _only(table: dict[str, Kept], *names: str) -> dict[str, Kept]:
    return {name: table[name] for name in names if name in table}
