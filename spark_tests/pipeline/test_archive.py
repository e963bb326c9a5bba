"""Topics become Parquet: every column, every record, once, whatever is killed on the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from compat_tests.samples import samples
from pykafka_broker.pipeline import manifest
from pykafka_broker.pipeline.archive import ArchiveJob, archive, read_archive
from pykafka_broker.pipeline.compaction import compact
from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.pipeline.storage import Storage
from spark_tests.broker_side import delete_records, fill, recreate_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server
    from pykafka_broker.pipeline.topics import Kafka
    from spark_tests.connector import Connector

COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
PLACE = ["topic", "partition", "offset"]
DAY = 86_400_000


def places(spark: SparkSession, vault: str) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in read_archive(spark, vault).collect())


def test_an_archive_holds_every_column_by_topic_and_day(
    segments: SparkSession, at: Kafka, kafka: Connector, broker: Server, topic: MakeTopic, vault: str
) -> None:
    first, second = topic(partitions=2), topic()
    for number, sample in enumerate(samples()[:20]):
        fields = sample._asdict() | {
            "timestamp": sample.timestamp + number // 10 * DAY,
            "headers": list(sample.headers),
        }
        fill_one(broker, first, number % 2, fields)
    fill(broker, second, ["other"])
    done = archive(segments, ArchiveJob(at, (first, second), vault))
    assert (done.records, done.rounds) == (21, 1)
    held = read_archive(segments, vault).select(COLUMNS).orderBy(PLACE).collect()
    assert held == kafka.read(subscribe=f"{first},{second}", includeHeaders=True).orderBy(PLACE).collect()
    days = sorted(path.name for path in Path(vault, f"topic={first}").iterdir())
    assert days == ["date=2023-11-14", "date=2023-11-15"]
    assert read_archive(segments, vault, [second]).count() == 1


def test_rounds_go_on_where_the_last_one_ended(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, vault: str
) -> None:
    name = topic()
    job = ArchiveJob(at, (name,), vault, max_records=4)
    assert archive(segments, job).records == 0
    fill(broker, name, range(10))
    told: list[str] = []
    assert archive(segments, job, report=told.append).rounds == 3
    assert told[-1].endswith("up to date")
    fill(broker, name, range(10, 12))
    waits = iter([True, False])

    def more() -> bool:
        if again := next(waits):
            fill(broker, name, ["late"])
        return again

    assert archive(segments, job, follow=more).records == 3
    assert places(segments, vault) == [(0, offset) for offset in range(13)]


def test_compaction_replaces_small_files_in_one_step(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, vault: str
) -> None:
    name = topic()
    fill(broker, name, range(6), timestamp=1_700_000_000_000)
    archive(segments, ArchiveJob(at, (name,), vault, max_records=2))
    before = read_archive(segments, vault)
    done = compact(segments, vault)
    assert (done.replaced, done.written, done.deleted) == (3, 1, 0)
    assert before.count() == 6, "a reader that planned with the old files still finds them"
    assert compact(segments, vault, keep_seconds=0).deleted == 3
    assert len(list(Path(vault).rglob("*.parquet"))) == 1
    assert places(segments, vault) == [(0, offset) for offset in range(6)]


def test_json_becomes_columns_and_what_does_not_decode_is_kept(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, vault: str
) -> None:
    name = topic()
    fill(broker, name, ['{"team": "blue", "minute": 3}', "no json", '{"minute": "x"}', '{"team": "red"}'])
    job = ArchiveJob(at, (name,), vault, json_schema="team string, minute int")
    assert archive(segments, job).undecoded == 2
    rows = read_archive(segments, vault).orderBy("offset").collect()
    assert [row.json and tuple(row.json) for row in rows] == [("blue", 3), None, None, ("red", None)]
    assert bytes(rows[1].value) == b"no json"
    strict = ArchiveJob(at, (name,), vault + "-2", json_schema="team string, minute int", on_bad_value="fail")
    with pytest.raises(PipelineError, match="2 values of 4 did not decode"):
        archive(segments, strict)
    assert not list(Path(vault + "-2").rglob("*.parquet"))


def test_a_jvm_killed_between_write_and_commit_loses_and_doubles_nothing(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, vault: str
) -> None:
    name = topic(partitions=2)
    fill(broker, name, range(5))
    job = ArchiveJob(at, (name,), vault)
    archive(segments, job)
    fill(broker, name, range(5, 9), 1)
    jars = segments.conf.get("spark.jars")
    assert jars is not None
    script = Path(__file__).with_name("killed_archive.py")
    killed = subprocess.run(
        [sys.executable, script, broker.bootstrap, name, vault, jars],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "killed before the commit" in killed.stdout, killed.stderr
    assert killed.returncode != 0
    assert len(list(Path(vault).rglob("*.parquet"))) == 2, "the round was written"
    assert places(segments, vault) == [(0, offset) for offset in range(5)], "and does not count"
    assert archive(segments, job).records == 4
    assert places(segments, vault) == [(0, n) for n in range(5)] + [(1, n) for n in range(4)]
    assert len(list(Path(vault).rglob("*.parquet"))) == 2, "what was left behind is gone"


def test_deleted_records_stop_an_archive_until_gaps_are_allowed(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, vault: str
) -> None:
    name = topic()
    fill(broker, name, range(3))
    archive(segments, ArchiveJob(at, (name,), vault))
    fill(broker, name, range(3, 8))
    delete_records(broker, name, 6)
    with pytest.raises(PipelineError, match=r"offsets 3 to 5 were deleted before they were archived"):
        archive(segments, ArchiveJob(at, (name,), vault))
    assert archive(segments, ArchiveJob(at, (name,), vault, allow_gaps=True)).records == 2
    recreate_topic(broker, name)
    with pytest.raises(PipelineError, match="was the topic created anew"):
        archive(segments, ArchiveJob(at, (name,), vault))


def test_a_long_archive_opens_from_its_summary_and_without_it_from_its_commits(
    segments: SparkSession,
    at: Kafka,
    broker: Server,
    topic: MakeTopic,
    vault: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manifest, "SUMMARY_EVERY", 2)
    name = topic()
    fill(broker, name, range(5))
    archive(segments, ArchiveJob(at, (name,), vault, max_records=1))
    book = manifest.Manifest(Storage(segments, vault))
    commits = Path(vault, "_commits")
    assert sorted(path.name for path in commits.glob("*.state")) == [f"{2:020d}.state", f"{4:020d}.state"]
    whole = book.load()
    assert (whole.commits, whole.covered) == (5, {(name, 0): (0, 5)})
    (commits / f"{4:020d}.state").write_text("{")
    assert book.load() == whole
    for path in commits.glob("*.state"):
        path.unlink()
    assert book.load() == whole


def test_damage_is_named_and_nothing_is_written(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, vault: str
) -> None:
    name = topic()
    job = ArchiveJob(at, (name,), vault)
    with pytest.raises(PipelineError, match="no topic nowhere at"):
        archive(segments, ArchiveJob(at, ("nowhere",), vault))
    with pytest.raises(PipelineError, match="no archive here"):
        read_archive(segments, vault)
    for number in range(2):
        fill(broker, name, [number])
        archive(segments, job)
    commits = sorted(Path(vault, "_commits").glob("*.json"))
    whole = commits[-1].read_text()
    commits[-1].write_text(whole[:20])
    with pytest.raises(PipelineError, match=r"commit _commits/0+1\.json is damaged"):
        archive(segments, job)
    commits[-1].write_text(whole)
    next(Path(vault).rglob("*.parquet")).unlink()
    with pytest.raises(PipelineError, match="has a hole: 1 of its 2 files are missing"):
        read_archive(segments, vault)


def fill_one(broker: Server, topic: str, partition: int, fields: dict[str, object]) -> None:
    value = fields.pop("value")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value, partition=partition, **fields)
    assert producer.flush(30) == 0
