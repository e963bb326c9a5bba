"""What each subcommand does: arguments into a job, its progress and its summary printed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pykafka_broker.pipeline.aggregate import AggregateJob, aggregate, view_name
from pykafka_broker.pipeline.archive import ArchiveJob, archive
from pykafka_broker.pipeline.audit import audit
from pykafka_broker.pipeline.compaction import compact
from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.pipeline.progress import counted
from pykafka_broker.pipeline.replay import ReplayJob, replay
from pykafka_broker.pipeline.retry import RetryJob, redrive, retry
from pykafka_broker.pipeline.topics import Kafka

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from pyspark.sql import SparkSession

FOUND_WRONG = 1
SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises when a job fails in a way no stage foresaw."""
_FOLLOW_SECONDS = 1.0


def run(spark: SparkSession, arguments: Namespace) -> int:
    """Run the stage that was named; returns the exit code."""
    stage: Callable[[SparkSession, Namespace], int] = _STAGES[arguments.stage]
    return stage(spark, arguments)


def _run_archive(spark: SparkSession, given: Namespace) -> int:
    job = ArchiveJob(
        kafka=_kafka(given),
        topics=tuple(given.topic),
        path=given.path,
        starting=given.starting,
        json_schema=given.json_schema,
        on_bad_value=given.on_bad_value,
        allow_gaps=given.allow_gaps,
        max_records=given.max_records,
    )
    done = archive(spark, job, report=_tell, follow=_patiently if given.follow else None)
    print(f"archived {counted(done.records, 'record')} in {counted(done.files, 'file')} to {given.path}")
    if done.undecoded:
        print(f"{counted(done.undecoded, 'value')} did not decode: kept as bytes, their column json is null")
    return 0


def _run_compact(spark: SparkSession, given: Namespace) -> int:
    size = given.target_mb << 20
    done = compact(spark, given.path, target_bytes=size, keep_seconds=given.keep_seconds, report=_tell)
    print(
        f"{counted(done.replaced, 'file')} became {done.written}; {done.deleted} of those replaced before deleted"
    )
    return 0


def _run_replay(spark: SparkSession, given: Namespace) -> int:
    if given.speed is not None and given.speed <= 0:
        raise PipelineError(f"speed {given.speed:g}: expected a number above 0")
    job = ReplayJob(
        kafka=_kafka(given),
        path=given.path,
        topics=tuple(given.topic),
        renamed=given.into,
        since=given.since,
        until=given.until,
        first_offset=given.first_offset,
        end_offset=given.end_offset,
        speed=given.speed,
        create_topics=given.create_topics,
    )
    print(f"replayed {counted(replay(spark, job, report=_tell), 'record')} from {given.path}")
    return 0


def _run_audit(spark: SparkSession, given: Namespace) -> int:
    found = audit(spark, given.path, given.log_dirs, given.topic or None, report=_tell)
    print(*found.lines(), sep="\n")
    return 0 if found.sound else FOUND_WRONG


def _run_aggregate(spark: SparkSession, given: Namespace) -> int:
    views = {}
    for text in given.topic:
        view, equals, topic = text.partition("=")
        views[view if equals else view_name(text)] = topic if equals else text
    if unknown := sorted(set(given.schema) - set(views)):
        raise PipelineError(f"a schema for {', '.join(unknown)}: the views are {', '.join(views)}")
    job = AggregateJob(
        kafka=_kafka(given),
        sql=_statement(given.sql),
        topics=views,
        checkpoint=given.checkpoint,
        to_topic=given.to_topic,
        to_parquet=given.to_parquet,
        schemas=given.schema,
        event_time=given.event_time,
        watermark=given.watermark,
        mode=given.mode,
        key=given.key,
        starting=given.starting,
        on_bad_value=given.on_bad_value,
    )
    done = aggregate(spark, job, report=_tell, follow=_patiently if given.follow else None)
    print(f"aggregated {counted(done.records, 'record')} into {given.to_topic or given.to_parquet}")
    if done.undecoded:
        print(
            f"{counted(done.undecoded, 'value')} did not decode and were left out; their topics still have them"
        )
    return 0


def _run_retry(spark: SparkSession, given: Namespace) -> int:
    job = RetryJob(
        kafka=_kafka(given),
        topic=given.topic,
        handler=given.handler,
        tiers=given.tiers,
        first_delay=given.first_delay,
        factor=given.factor,
        group=given.group,
    )
    done = retry(spark, job, report=_tell, follow=_patiently if given.follow else None)
    print(f"handled {counted(done.succeeded, 'record')}, sent {done.retried:,} to wait for another attempt")
    print(f"{counted(done.dead, 'dead letter')} new in {job.tier(job.tiers + 1)}")
    return 0


def _run_redrive(spark: SparkSession, given: Namespace) -> int:
    sent = redrive(spark, _kafka(given), given.topic, group=given.group, report=_tell)
    print(f"put {counted(sent, 'dead letter')} back into {given.topic}")
    return 0


_STAGES = {
    "archive": _run_archive,
    "compact": _run_compact,
    "replay": _run_replay,
    "audit": _run_audit,
    "aggregate": _run_aggregate,
    "retry": _run_retry,
    "redrive": _run_redrive,
}


def _kafka(given: Namespace) -> Kafka:
    return Kafka(given.bootstrap, given.kafka, given.client)


def _statement(given: str) -> str:
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text()
    except OSError as error:
        raise PipelineError(f"{given[1:]}: {error.strerror}") from error


def _tell(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def _patiently() -> bool:
    time.sleep(_FOLLOW_SECONDS)
    return True
