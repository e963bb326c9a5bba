"""What the broker's disk holds against what an archive holds, record by record.

Wrong, and reason for exit code 1:
- missing: on disk, inside the stretch the archive has covered, and not in it
- doubled: more than once in the archive
- different: in both, but key, value, headers or time differ
- beyond: in the archive at an offset the disk has not reached
Not wrong, but told: what is not archived yet (to come), what retention has removed from the disk (expired), what is
gone from inside the log (only archive: usual for a compacted topic, and for no other), and gaps that were accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sf

from pykafka_broker.pipeline.archive import read_archive
from pykafka_broker.pipeline.manifest import Manifest
from pykafka_broker.pipeline.progress import counted, silent
from pykafka_broker.pipeline.segments.source import NAME, LogView, Settings
from pykafka_broker.pipeline.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import Column, DataFrame, SparkSession

    from pykafka_broker.pipeline.manifest import State
    from pykafka_broker.pipeline.progress import Report

WRONG = ("missing", "doubled", "different", "beyond")
MAX_FINDINGS = 1000
_PLACE = ["topic", "partition", "offset"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A stretch of neighbouring offsets with the same trouble."""

    topic: str
    partition: int
    kind: str
    first: int
    last: int
    records: int


@dataclass(frozen=True, slots=True)
class Audit:
    """The outcome, by partition and in detail."""

    counts: dict[tuple[str, int], dict[str, int]]
    """Records by partition and by what they are: `same`, one of WRONG, or one of those that are only told."""
    findings: tuple[Finding, ...]
    gaps: tuple[tuple[str, int, int, int], ...]

    @property
    def sound(self) -> bool:
        return not any(counts.get(kind) for counts in self.counts.values() for kind in WRONG)

    def lines(self) -> Iterator[str]:
        """The report a person reads."""
        kinds = ("same", *WRONG, "to come", "expired", "only archive")
        yield f"{'partition':40}" + "".join(f"{kind:>14}" for kind in kinds)
        for (topic, number), counts in sorted(self.counts.items()):
            yield f"{topic + '-' + str(number):40}" + "".join(f"{counts.get(kind, 0):>14,}" for kind in kinds)
        for found in self.findings:
            stretch = (
                f"offset {found.first}"
                if found.first == found.last
                else f"offsets {found.first} to {found.last}"
            )
            yield f"{found.kind}: {found.topic}-{found.partition}, {stretch}"
        for topic, number, first, end in self.gaps:
            yield f"accepted gap: {topic}-{number}, offsets {first} to {end - 1} were deleted before they were archived"
        same = sum(counts.get("same", 0) for counts in self.counts.values())
        sound = f"the archive is sound, {counted(same, 'record')} the same as on disk"
        yield sound if self.sound else "the archive differs from the disk"


def audit(
    spark: SparkSession,
    path: str,
    log_dirs: str,
    topics: Iterable[str] | None = None,
    *,
    report: Report = silent,
) -> Audit:
    """Compare the archive at `path` with the segments in `log_dirs`, for some topics or all the archive has."""
    state = Manifest(Storage(spark, path)).load(must_exist=True)
    names = tuple(topics or state.topics)
    options = {"path": log_dirs, "subscribe": ",".join(names), "includeHeaders": "true"}
    report(f"comparing {', '.join(names)} in {path} with {log_dirs}")
    archived = read_archive(spark, path, names, state=state)
    disk = spark.read.format(NAME).options(**options).load()
    judged = _judged(spark, disk, archived, state, options).cache()
    try:
        counts: dict[tuple[str, int], dict[str, int]] = {}
        for row in judged.groupBy("topic", "partition", "kind").count().collect():
            counts.setdefault((row.topic, row.partition), {})[row.kind] = row["count"]
        findings = tuple(Finding(*row) for row in _stretches(judged).collect())
    finally:
        judged.unpersist()
    gaps = tuple(gap for gap in state.gaps if gap[0] in names)
    return Audit(counts, findings, gaps)


def _judged(
    spark: SparkSession, disk: DataFrame, archived: DataFrame, state: State, options: dict[str, str]
) -> DataFrame:
    """Every place that disk or archive has, and what is to be said of it."""
    on_disk = disk.select(*_PLACE, _digest().alias("disk_digest"))
    in_archive = archived.groupBy(*_PLACE).agg(
        sf.count(sf.lit(1)).alias("copies"), sf.min(_digest()).alias("low"), sf.max(_digest()).alias("high")
    )
    both = on_disk.join(in_archive, _PLACE, "full_outer").join(
        _bounds(spark, state, options), ["topic", "partition"]
    )
    offset = sf.col("offset")
    return both.select(
        *_PLACE,
        sf.when(sf.col("copies") > 1, "doubled")
        .when(sf.col("disk_digest").isNull() & (offset >= sf.col("disk_end")), "beyond")
        .when(sf.col("disk_digest").isNull() & (offset < sf.col("disk_first")), "expired")
        .when(sf.col("disk_digest").isNull(), "only archive")
        .when(sf.col("copies").isNotNull() & (sf.col("disk_digest") != sf.col("low")), "different")
        .when(sf.col("copies").isNotNull(), "same")
        .when(offset >= sf.col("covered_end"), "to come")
        .when(offset < sf.col("covered_first"), "before")
        .otherwise("missing")
        .alias("kind"),
    )


def _bounds(spark: SparkSession, state: State, options: dict[str, str]) -> DataFrame:
    """Where each partition's archive begins and ends, and where its log does."""
    view = LogView(Settings.of(options, "earliest"))
    begins, ends = view.resolve("earliest"), view.resolve("latest")
    rows = []
    for topic, partitions in ends.items():
        for number, end in partitions.items():
            first, upto = state.covered.get((topic, int(number)), (end, 0))
            rows.append((topic, int(number), first, upto, begins[topic][number], end))
    schema = (
        "topic string, partition int, covered_first long, covered_end long, disk_first long, disk_end long"
    )
    return sf.broadcast(spark.createDataFrame(rows, schema))


def _digest() -> Column:
    """A number that differs where a record does; null and empty are not the same."""
    key, value = sf.col("key"), sf.col("value")
    time, headers = sf.unix_millis("timestamp"), sf.col("headers")
    return sf.xxhash64(key, key.isNull(), value, value.isNull(), time, sf.col("timestampType"), headers)


def _stretches(judged: DataFrame) -> DataFrame:
    by_kind = Window.partitionBy("topic", "partition", "kind").orderBy("offset")
    wrong = judged.where(sf.col("kind").isin(*WRONG))
    islands = wrong.withColumn("island", sf.col("offset") - sf.row_number().over(by_kind))
    return (
        islands.groupBy("topic", "partition", "kind", "island")
        .agg(
            sf.min("offset").alias("first"),
            sf.max("offset").alias("last"),
            sf.count(sf.lit(1)).alias("records"),
        )
        .drop("island")
        .orderBy("topic", "partition", "first")
        .limit(MAX_FINDINGS)
    )
