"""A SQL statement over topics, kept up to date: windows by event time, a watermark, state in RocksDB.

Each topic is a view: the columns of its JSON values where a schema is given, then Kafka's own columns (`key`,
`value`, `topic`, `partition`, `offset`, `timestamp`, `headers`) where the JSON has none of that name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pyspark.errors import AnalysisException, ParseException, PySparkException, StreamingQueryException
from pyspark.sql import functions as sf

from pykafka_broker.pipeline.decoding import JSON, UNDECODED, parse_schema, with_json
from pykafka_broker.pipeline.errors import PipelineError, one_line
from pykafka_broker.pipeline.progress import counted, silent
from pykafka_broker.pipeline.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pykafka_broker.pipeline.progress import Report
    from pykafka_broker.pipeline.topics import Kafka

_LOOK_SECONDS = 1


@dataclass(frozen=True, slots=True)
class AggregateJob:
    """What to compute, from which topics, and where its rows go: to a topic or to Parquet."""

    kafka: Kafka
    sql: str
    topics: Mapping[str, str]
    """Names of views, and the topics behind them."""
    checkpoint: str
    to_topic: str | None = None
    to_parquet: str | None = None
    schemas: Mapping[str, str] = field(default_factory=dict)
    """By view: what its JSON values hold."""
    event_time: str = "timestamp"
    watermark: str = "1 minute"
    """How late a record may be; windows older than this are final."""
    mode: Literal["append", "update", "complete"] = "append"
    key: str | None = None
    """The column that becomes the key of records sent to a topic."""
    starting: Literal["earliest", "latest"] = "earliest"
    on_bad_value: Literal["skip", "fail"] = "skip"


@dataclass(frozen=True, slots=True)
class Aggregated:
    """What a run read."""

    records: int = 0
    batches: int = 0
    undecoded: int = 0
    """Values left out because they did not decode; their topic still has them."""


def aggregate(
    spark: SparkSession,
    job: AggregateJob,
    *,
    report: Report = silent,
    follow: Callable[[], bool] | None = None,
) -> Aggregated:
    """Run over what is there now. With `follow`, go on until it returns False; it is asked about once a second."""
    if (job.to_topic is None) == (job.to_parquet is None):
        raise PipelineError("results go to a topic or to Parquet: name one of them")
    sources = [*job.topics.values()]
    Topics(job.kafka).partitions([*sources, job.to_topic] if job.to_topic else sources)
    for view, topic in job.topics.items():
        _view(spark, job, view, topic)
    try:
        query = _start(job, spark.sql(job.sql), available_now=follow is None)
    except (AnalysisException, ParseException) as error:
        raise PipelineError(f"SQL: {one_line(error)}") from error
    return _watch(query, job, report, follow)


def view_name(topic: str) -> str:
    """A topic's name as SQL takes it."""
    return re.sub(r"\W", "_", topic)


def _view(spark: SparkSession, job: AggregateJob, view: str, topic: str) -> None:
    options = job.kafka.spark_options() | {
        "subscribe": topic,
        "startingOffsets": job.starting,
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
    }
    frame = spark.readStream.format("kafka").options(**options).load()
    if schema := job.schemas.get(view):
        columns = parse_schema(schema).fieldNames()
        own = [name for name in frame.columns if name not in columns]
        bad = sf.sum(sf.col(UNDECODED).cast("long"))
        decoded = with_json(frame, schema).observe(view, bad.alias(UNDECODED))
        if job.on_bad_value == "fail":
            stop = sf.raise_error(
                sf.concat(sf.lit(f"a value of {topic} does not decode: offset "), sf.col("offset"))
            )
            decoded = decoded.where(sf.when(sf.col(UNDECODED), stop.cast("boolean")).otherwise(sf.lit(True)))
        frame = decoded.where(f"NOT {UNDECODED}").select(f"{JSON}.*", *own)
    if job.event_time not in frame.columns:
        raise PipelineError(
            f"{topic} has no column {job.event_time} to tell the time by; it has {frame.columns}"
        )
    frame.withWatermark(job.event_time, job.watermark).createOrReplaceTempView(view)


def _start(job: AggregateJob, result: DataFrame, *, available_now: bool) -> StreamingQuery:
    if not result.isStreaming:
        raise PipelineError("SQL: the statement reads none of the topics")
    if job.to_topic is not None:
        key = sf.col(job.key).cast("string") if job.key else sf.lit(None).cast("string")
        sent = result.select(key.alias("key"), sf.to_json(sf.struct("*")).alias("value"))
        writer = sent.writeStream.format("kafka").options(**job.kafka.spark_options(), topic=job.to_topic)
    else:
        writer = result.writeStream.format("parquet").option("path", job.to_parquet)
    writer = writer.outputMode(job.mode).option("checkpointLocation", job.checkpoint)
    return (
        writer.trigger(availableNow=True) if available_now else writer.trigger(processingTime="1 second")
    ).start()


def _watch(
    query: StreamingQuery, job: AggregateJob, report: Report, follow: Callable[[], bool] | None
) -> Aggregated:
    done, seen = Aggregated(), -1
    try:
        while True:
            ended = query.awaitTermination(_LOOK_SECONDS)
            for progress in query.recentProgress:
                if progress.batchId <= seen or progress.numInputRows == 0:
                    continue
                seen = progress.batchId
                bad = sum(row[UNDECODED] or 0 for row in progress.observedMetrics.values())
                done = Aggregated(
                    done.records + progress.numInputRows, done.batches + 1, done.undecoded + bad
                )
                report(_told(done))
            if ended or (follow is not None and not follow()):
                return done
    except StreamingQueryException as error:
        raise PipelineError(_cause(error, job)) from error
    finally:
        query.stop()


def _told(done: Aggregated) -> str:
    bad = f", {counted(done.undecoded, 'value')} did not decode" if done.undecoded else ""
    return f"{counted(done.records, 'record')} read{bad}"


def _cause(error: PySparkException, job: AggregateJob) -> str:
    """The innermost reason in one line, and the checkpoint it concerns."""
    text = one_line(error)
    java = getattr(error, "_cause", None)
    while java is not None:
        text, java = one_line(java), getattr(java, "_cause", None)
    return f"the query over {', '.join(job.topics.values())} ended (checkpoint {job.checkpoint}): {text}"
