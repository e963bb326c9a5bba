"""Topics into Parquet, exactly once.

Each round reads what is new, writes it aside, and then makes files and position valid in one commit of the
manifest. A job killed anywhere before that has changed nothing, one killed behind it has finished its round.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyspark.sql import Observation
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from pykafka_broker.pipeline.decoding import JSON, UNDECODED, parse_schema, with_json
from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.pipeline.manifest import STAGING, Commit, Manifest
from pykafka_broker.pipeline.progress import counted, silent
from pykafka_broker.pipeline.storage import Storage
from pykafka_broker.pipeline.topics import Topics, read_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

    from pykafka_broker.pipeline.manifest import State
    from pykafka_broker.pipeline.progress import Report
    from pykafka_broker.pipeline.topics import Kafka, Place, Range

SCHEMA = (
    "key binary, value binary, headers array<struct<key:string,value:binary>>, partition int, offset long,"
    " timestamp timestamp, timestampType int"
)
PLACED = "topic string, date date"
"""The columns that are directories."""
ROUND = "round-"
MAX_RECORDS = 5_000_000
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class ArchiveJob:
    """What to archive, and how."""

    kafka: Kafka
    topics: tuple[str, ...]
    path: str
    starting: Literal["earliest", "latest"] = "earliest"
    """For partitions the archive does not have yet."""
    json_schema: str | None = None
    """Values are decoded into a column `json` of this schema, beside the bytes."""
    on_bad_value: Literal["keep", "fail"] = "keep"
    allow_gaps: bool = False
    """Go on where records were deleted before they could be archived."""
    max_records: int = MAX_RECORDS
    """About this many in one round, and so in one commit."""


@dataclass(frozen=True, slots=True)
class Archived:
    """What a run brought into the archive."""

    records: int = 0
    files: int = 0
    rounds: int = 0
    undecoded: int = 0

    def plus(self, other: Archived) -> Archived:
        return Archived(
            self.records + other.records,
            self.files + other.files,
            self.rounds + other.rounds,
            self.undecoded + other.undecoded,
        )


def archive(
    spark: SparkSession,
    job: ArchiveJob,
    *,
    report: Report = silent,
    follow: Callable[[], bool] | None = None,
) -> Archived:
    """Archive what is there now. With `follow`, go on until it returns False; it is asked when there is nothing new."""
    manifest = Manifest(Storage(spark, job.path))
    if job.json_schema is not None:
        parse_schema(job.json_schema)
    topics = Topics(job.kafka)
    places = topics.partitions(job.topics)
    state = manifest.load()
    _sweep(manifest, state)
    total = Archived()
    target = topics.latest(places)
    while True:
        ranges, gaps = _ranges(job, state, topics, target)
        if ranges:
            state, done = _round(spark, job, manifest, state, ranges, gaps)
            total = total.plus(done)
            report(
                f"{counted(total.records, 'record')} in {counted(total.files, 'file')}, {_behind(state, target)}"
            )
        elif follow is None or not follow():
            return total
        else:
            target = topics.latest(topics.partitions(job.topics))


def read_archive(
    spark: SparkSession, path: str, topics: Iterable[str] | None = None, *, state: State | None = None
) -> DataFrame:
    """The archive's records, or those of some topics. PipelineError if files or commits are missing."""
    manifest = Manifest(Storage(spark, path))
    if state is None:
        state = manifest.load(must_exist=True)
    wanted = None if topics is None else set(topics)
    if wanted is not None and (unknown := wanted - set(state.topics)):
        raise PipelineError(f"archive {path} has no topic {', '.join(sorted(unknown))}")
    files = [name for name in sorted(state.files) if wanted is None or topic_of(name) in wanted]
    manifest.check_files(state, files)
    return read_files(spark, manifest.storage, files, state.json_schema)


def read_files(
    spark: SparkSession, storage: Storage, files: Iterable[str], json_schema: str | None
) -> DataFrame:
    """The records of these files of an archive."""
    schema = StructType.fromDDL(f"{SCHEMA}, {PLACED}")
    assert isinstance(schema, StructType)
    if json_schema is not None:
        schema = StructType([*schema.fields, StructField(JSON, parse_schema(json_schema))])
    names = [storage.path(name) for name in files]
    if not names:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).option("basePath", storage.root).parquet(*names)


def topic_of(name: str) -> str:
    return name.split("/", 1)[0].removeprefix("topic=")


def write_files(frame: DataFrame, storage: Storage, prefix: str) -> list[str]:
    """Write a frame with the archive's columns into its directories; returns the names of the files.

    They count for nothing until a commit names them.
    """
    token = uuid.uuid4().hex
    staging = f"{STAGING}/{token}"
    frame.write.partitionBy("topic", "date").parquet(storage.path(staging))
    names = []
    for number, found in enumerate(f for f in storage.files(staging) if f.name.endswith(".parquet")):
        directory = found.name.removeprefix(f"{staging}/").rsplit("/", 1)[0]
        name = f"{directory}/{prefix}{token}-{number:05d}.parquet"
        storage.move(found.name, name)
        names.append(name)
    storage.delete(staging)
    return names


def _round(
    spark: SparkSession,
    job: ArchiveJob,
    manifest: Manifest,
    state: State,
    ranges: dict[Place, Range],
    gaps: list[tuple[str, int, int, int]],
) -> tuple[State, Archived]:
    frame = read_ranges(spark, job.kafka, ranges)
    day = sf.floor(sf.unix_millis("timestamp") / _DAY_MS).cast("int")
    frame = frame.withColumn("date", sf.date_from_unix_date(day))
    bad = sf.lit(0)
    if job.json_schema is not None:
        frame = with_json(frame, job.json_schema)
        bad = sf.coalesce(sf.sum(sf.col(UNDECODED).cast("int")), sf.lit(0))
    seen = Observation()
    frame = frame.observe(seen, sf.count(sf.lit(1)).alias("records"), bad.alias("undecoded")).drop(UNDECODED)
    files = write_files(frame, manifest.storage, ROUND)
    counts = seen.get
    if counts["undecoded"] and job.on_bad_value == "fail":
        for name in files:
            manifest.storage.delete(name)
        raise PipelineError(
            f"{counted(counts['undecoded'], 'value')} of {counts['records']:,} did not decode as"
            f" {job.json_schema!r}; nothing of this round was kept"
        )
    commit = Commit(
        added=tuple(files),
        ranges=tuple((*place, *offsets) for place, offsets in ranges.items()),
        gaps=tuple(gaps),
        json_schema=job.json_schema,
    )
    done = Archived(counts["records"], len(files), 1, counts["undecoded"])
    return manifest.commit(commit, state), done


def _ranges(
    job: ArchiveJob, state: State, topics: Topics, target: dict[Place, int]
) -> tuple[dict[Place, Range], list[tuple[str, int, int, int]]]:
    """What the next round reads, and what it finds deleted."""
    earliest = topics.earliest(target)
    share = max(1, job.max_records // len(target))
    ranges: dict[Place, Range] = {}
    gaps: list[tuple[str, int, int, int]] = []
    for place, end in target.items():
        known = place in state.covered
        first = state.covered[place][1] if known else earliest[place] if job.starting == "earliest" else end
        name = f"{place[0]}-{place[1]}"
        if first > end:
            raise PipelineError(
                f"{name} ends at offset {end} and the archive already reaches {first}: was the topic created anew?"
                " Archive it elsewhere"
            )
        if first < earliest[place]:
            if not job.allow_gaps:
                raise PipelineError(
                    f"{name}: offsets {first} to {earliest[place] - 1} were deleted before they were archived;"
                    " --allow-gaps goes on without them"
                )
            gaps.append((*place, first, earliest[place]))
            first = earliest[place]
        if first < end or not known:
            ranges[place] = (first, min(end, first + share))
    return ranges, gaps


def _sweep(manifest: Manifest, state: State) -> None:
    """Remove what rounds that never ended have left."""
    storage = manifest.storage
    for found in storage.files():
        if found.name.rsplit("/", 1)[-1].startswith(ROUND) and found.name not in state.files:
            if found.name not in state.removed_at:
                storage.delete(found.name)
        elif found.name.startswith("_temporary-") and time.time() - found.modified > 3600:
            storage.delete(found.name)


def _behind(state: State, target: dict[Place, int]) -> str:
    left = sum(
        max(0, end - state.covered[place][1]) for place, end in target.items() if place in state.covered
    )
    return f"{counted(left, 'offset')} to go" if left else "up to date"
