"""Records a handler failed on travel retry tiers, each slower than the one before, and end with the dead letters.

For a topic `orders` there are `orders-retry-1`, `-2`, ... and `orders-dead`. A record that fails goes one tier on,
with its own headers and these: how often it was tried, why it failed, and where it came from. A tier is read only up
to the records that have waited long enough: its delay is the same for all, so those are always the first ones.

Positions are kept as the offsets of a consumer group, so usual tools show how far behind a tier is. They move on
after a round is handled and its failures are sent: a round cut short is handled again (at least once).
"""

from __future__ import annotations

import importlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.pipeline.group_offsets import GroupOffsets
from pykafka_broker.pipeline.progress import counted, silent
from pykafka_broker.pipeline.sending import Sender, as_bytes, header_pairs
from pykafka_broker.pipeline.topics import Topics, read_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import Row, SparkSession

    from pykafka_broker.pipeline.progress import Report
    from pykafka_broker.pipeline.topics import Kafka, Place, Range

ATTEMPT, REASON, ORIGIN = "retry-attempt", "retry-reason", "retry-origin"
REDRIVEN = "retry-redriven"
OURS = (ATTEMPT, REASON, ORIGIN)
_REASON_LENGTH = 500
_MOMENT = 0.2


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a handler is given. It returns when the record is dealt with, and raises when it is not."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    number: int
    """1 for the first attempt."""


@dataclass(frozen=True, slots=True)
class RetryJob:
    """Whose records are handled, by whom, and how patiently."""

    kafka: Kafka
    topic: str
    handler: str
    """`module:function`, importable where Spark's tasks run."""
    tiers: int = 3
    first_delay: float = 10.0
    """Seconds before the second attempt."""
    factor: float = 3.0
    """Each tier waits this many times as long as the one before."""
    group: str | None = None

    @property
    def group_id(self) -> str:
        return self.group or f"{self.topic}-retry"

    def tier(self, number: int) -> str:
        """The topic of an attempt after `number` failures; 0 is the topic itself."""
        if number == 0:
            return self.topic
        return f"{self.topic}-retry-{number}" if number <= self.tiers else dead_letters(self.topic)

    def delay(self, number: int) -> float:
        return 0.0 if number == 0 else self.first_delay * self.factor ** (number - 1)


@dataclass(frozen=True, slots=True)
class Handled:
    """What a run did."""

    succeeded: int = 0
    retried: int = 0
    dead: int = 0


def dead_letters(topic: str) -> str:
    return f"{topic}-dead"


def load_handler(name: str, path: Sequence[str] = ()) -> Callable[[Attempt], object]:
    """Looked for where Python looks, then along `path`. PipelineError if there is no such function."""
    sys.path.extend(place for place in path if place not in sys.path)
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise PipelineError(f"handler {name!r}: {error}; expected module:function") from error
    if not callable(found):
        raise PipelineError(f"handler {name!r} is not a function")
    return found  # type: ignore[no-any-return]


def retry(
    spark: SparkSession,
    job: RetryJob,
    *,
    report: Report = silent,
    follow: Callable[[], bool] | None = None,
) -> Handled:
    """Handle what is there until nothing waits in any tier. With `follow`, go on until it returns False."""
    path = [str(Path.cwd()), *sys.path]  # a worker finds the handler where it was found here
    load_handler(job.handler, path)
    topics = Topics(job.kafka)
    partitions = len(topics.partitions([job.topic]))
    topics.create({job.tier(number): partitions for number in range(1, job.tiers + 2)})
    group = GroupOffsets(job.kafka, job.group_id)
    done = Handled()
    while True:
        ranges, waiting = _due(job, topics, group)
        if ranges:
            done = _handle(spark, job, path, ranges, done)
            group.commit({place: end for place, (_, end) in ranges.items()})
            report(
                f"{counted(done.succeeded, 'record')} handled, {done.retried:,} sent to wait, {done.dead:,} given up"
            )
        elif not (waiting if follow is None else follow()):
            return done
        else:
            time.sleep(_MOMENT)


def _due(job: RetryJob, topics: Topics, group: GroupOffsets) -> tuple[dict[Place, Range], bool]:
    """What may be handled now, and whether anything has to wait longer."""
    tier_of = {job.tier(number): number for number in range(job.tiers + 1)}
    places = topics.partitions(tier_of)
    latest, earliest = topics.latest(places), topics.earliest(places)
    begin = group.positions(earliest)
    open_places = [place for place in places if begin[place] < latest[place]]
    now = time.time()
    ready = topics.at_time(
        {place: int((now - job.delay(tier_of[place[0]])) * 1000) + 1 for place in open_places}
    )
    ranges = {
        place: (begin[place], min(ready[place], latest[place]) if tier_of[place[0]] else latest[place])
        for place in open_places
    }
    ranges = {place: (first, end) for place, (first, end) in ranges.items() if first < end}
    return ranges, len(open_places) > len(ranges)


def _handle(
    spark: SparkSession, job: RetryJob, path: Sequence[str], ranges: dict[Place, Range], done: Handled
) -> Handled:
    counts = {name: spark.sparkContext.accumulator(0) for name in ("succeeded", "retried", "dead")}

    def task(rows: Iterable[Row]) -> None:
        handler, sender = load_handler(job.handler, path), Sender(job.kafka.client_options())
        for row in rows:
            attempt = _attempt(row)
            try:
                handler(attempt)
            except Exception as error:  # noqa: BLE001 - whatever a handler raises is its way to say no
                _send_on(job, sender, attempt, f"{type(error).__name__}: {error}")
                counts["retried" if attempt.number <= job.tiers else "dead"].add(1)
            else:
                counts["succeeded"].add(1)
        sender.finish()

    read_ranges(spark, job.kafka, ranges).foreachPartition(task)
    return Handled(
        done.succeeded + counts["succeeded"].value,
        done.retried + counts["retried"].value,
        done.dead + counts["dead"].value,
    )


def _attempt(row: Row) -> Attempt:
    headers = header_pairs(row.headers)
    tried = next((value for name, value in reversed(headers) if name == ATTEMPT), None)
    return Attempt(
        topic=row.topic,
        partition=row.partition,
        offset=row.offset,
        key=as_bytes(row.key),
        value=as_bytes(row.value),
        headers=tuple(headers),
        timestamp_ms=int(row.timestamp.timestamp() * 1000),
        number=1 + (int(tried) if tried and tried.isdigit() else 0),
    )


def _send_on(job: RetryJob, sender: Sender, attempt: Attempt, reason: str) -> None:
    """One tier on, or to the dead letters; the time a tier waits counts from now."""
    kept = [(name, value) for name, value in attempt.headers if name not in {ATTEMPT, REASON}]
    if not any(name == ORIGIN for name, _ in kept):
        kept.append((ORIGIN, f"{attempt.topic}-{attempt.partition}@{attempt.offset}".encode()))
    kept.append((ATTEMPT, str(attempt.number).encode()))
    kept.append((REASON, reason[:_REASON_LENGTH].encode(errors="replace")))
    sender.send(job.tier(attempt.number), attempt.key, attempt.value, kept)


def redrive(
    spark: SparkSession, kafka: Kafka, topic: str, *, group: str | None = None, report: Report = silent
) -> int:
    """Put the dead letters of a topic back into it, each once; returns how many.

    They start over with their first attempt, and carry a header that says how often they came back.
    """
    topics, dead = Topics(kafka), dead_letters(topic)
    topics.partitions([topic])
    places = topics.partitions([dead])
    offsets = GroupOffsets(kafka, group or f"{topic}-redrive")
    begin, latest = offsets.positions(topics.earliest(places)), topics.latest(places)
    ranges = {place: (begin[place], end) for place, end in latest.items() if begin[place] < end}
    if not ranges:
        report("no dead letters")
        return 0
    sent = spark.sparkContext.accumulator(0)
    options: dict[str, Any] = kafka.client_options()

    def task(rows: Iterable[Row]) -> None:
        sender = Sender(options)
        for row in rows:
            headers = header_pairs(row.headers)
            times = 1 + sum(int(value or b"0") for name, value in headers if name == REDRIVEN)
            kept = [(name, value) for name, value in headers if name not in {*OURS, REDRIVEN}]
            kept.append((REDRIVEN, str(times).encode()))
            sender.send(topic, as_bytes(row.key), as_bytes(row.value), kept)
        sent.add(sender.finish())

    read_ranges(spark, kafka, ranges).foreachPartition(task)
    offsets.commit(latest)
    report(f"{counted(sent.value, 'dead letter')} back in {topic}")
    return int(sent.value)
