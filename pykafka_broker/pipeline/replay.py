"""An archive back into topics: key, value, headers, partition and timestamp of every record as they were."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as sf

from pykafka_broker.pipeline.archive import read_archive
from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.pipeline.manifest import Manifest
from pykafka_broker.pipeline.progress import counted, silent
from pykafka_broker.pipeline.sending import Sender, as_bytes, header_pairs
from pykafka_broker.pipeline.storage import Storage
from pykafka_broker.pipeline.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, Row, SparkSession

    from pykafka_broker.pipeline.progress import Report
    from pykafka_broker.pipeline.topics import Kafka

_MOMENT = 0.2  # a sleeping task looks this often whether something failed to arrive


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """What to send, where to, and how fast."""

    kafka: Kafka
    path: str
    topics: tuple[str, ...] = ()
    """All of the archive's where none is named."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """From the name in the archive to the topic to fill; others go where they came from."""
    since: str | None = None
    until: str | None = None
    """Times, as in 2024-05-01T12:00:00Z; the second is not counted in."""
    first_offset: int | None = None
    end_offset: int | None = None
    """Offsets of every partition; the second is not counted in."""
    speed: float | None = None
    """None: as fast as possible. 1: as it happened. 60: an hour in a minute."""
    create_topics: bool = False


def replay(spark: SparkSession, job: ReplayJob, *, report: Report = silent) -> int:
    """Send what the job chooses; returns how many records. Nothing is sent if the archive has a hole."""
    state = Manifest(Storage(spark, job.path)).load(must_exist=True)
    topics = job.topics or tuple(state.topics)
    frame = _chosen(read_archive(spark, job.path, topics, state=state), job)
    partitions = {name: 1 + max(n for t, n in state.covered if t == name) for name in topics}
    _prepare(job, partitions)
    report(f"{', '.join(topics)} from {job.path}, {_pace(job.speed)}")
    sent = spark.sparkContext.accumulator(0)
    options, renamed, speed = job.kafka.client_options(), dict(job.renamed), job.speed

    def task(rows: Iterable[Row]) -> None:
        sender = Sender(options)
        for row in rows if speed is None else _paced(rows, sender, speed):
            sender.send(
                renamed.get(row.topic, row.topic),
                as_bytes(row.key),
                as_bytes(row.value),
                header_pairs(row.headers),
                partition=row.partition,
                timestamp=row.ms,
            )
        sent.add(sender.finish())

    _ordered(frame, job.speed).foreachPartition(task)
    report(f"{counted(sent.value, 'record')} sent")
    return int(sent.value)


def _chosen(frame: DataFrame, job: ReplayJob) -> DataFrame:
    for given, column, compare in (
        (job.since, "timestamp", "__ge__"),
        (job.until, "timestamp", "__lt__"),
        (job.first_offset, "offset", "__ge__"),
        (job.end_offset, "offset", "__lt__"),
    ):
        if given is not None:
            bound = _time(given) if column == "timestamp" else sf.lit(given)
            frame = frame.where(getattr(sf.col(column), compare)(bound))
    ms = sf.unix_millis("timestamp").alias("ms")
    return frame.select("topic", "partition", "offset", "key", "value", "headers", ms)


def _time(text: Any) -> Any:
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise PipelineError(f"time {text!r}: expected something like 2024-05-01T12:00:00Z") from error
    return sf.lit(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _ordered(frame: DataFrame, speed: float | None) -> DataFrame:
    """Each partition in the order of its offsets; with a speed, all in one task by the time they are due.

    A record is due no earlier than those before it in its partition, whatever its own timestamp says.
    """
    if speed is None:
        placed = frame.repartition("topic", "partition")
        return placed.sortWithinPartitions("topic", "partition", "offset")
    before = Window.partitionBy("topic", "partition").orderBy("offset")
    due = frame.withColumn("due", sf.max("ms").over(before.rowsBetween(Window.unboundedPreceding, 0)))
    return due.repartition(1).sortWithinPartitions("due", "topic", "partition", "offset")


def _paced(rows: Iterable[Row], sender: Sender, speed: float) -> Iterator[Row]:
    begin = time.monotonic()
    first: int | None = None
    for row in rows:
        first = row.due if first is None else first
        while (left := (row.due - first) / 1000 / speed - (time.monotonic() - begin)) > 0:
            sender.wait(min(left, _MOMENT))
        yield row


def _prepare(job: ReplayJob, partitions: Mapping[str, int]) -> None:
    """Every topic to fill is there and has the partitions it needs."""
    topics = Topics(job.kafka)
    wanted = {job.renamed.get(name, name): count for name, count in partitions.items()}
    if job.create_topics:
        topics.create(wanted)
    there = topics.partitions(wanted)
    for name, count in wanted.items():
        if (found := sum(1 for topic, _ in there if topic == name)) < count:
            raise PipelineError(
                f"topic {name} has {counted(found, 'partition')}, the archive's records need {count}"
            )


def _pace(speed: float | None) -> str:
    return "as fast as possible" if speed is None else f"{speed:g} times as fast as it happened"
