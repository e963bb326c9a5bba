"""An archive goes back into topics as it came, and is held against the broker's disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compat_tests.conftest import create_topic
from pykafka_broker.pipeline.archive import ArchiveJob, archive
from pykafka_broker.pipeline.audit import Finding, audit
from pykafka_broker.pipeline.compaction import compact
from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.pipeline.replay import ReplayJob, replay
from spark_tests.broker_side import fill, stored

if TYPE_CHECKING:
    from confluent_kafka import Message
    from pyspark.sql import SparkSession

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server
    from pykafka_broker.pipeline.topics import Kafka

BEGIN = 1_700_000_000_000


def shape(message: Message) -> tuple[object, ...]:
    key, value, headers = message.key(), message.value(), message.headers()
    return message.partition(), message.offset(), key, value, headers, message.timestamp()


def archived(segments: SparkSession, at: Kafka, broker: Server, name: str, vault: str) -> None:
    """Two partitions of six and three records, a second apart, archived in two rounds."""
    for number in range(6):
        headers = [("n", str(number).encode()), ("none", None)]
        fill(broker, name, [number], key=b"key", headers=headers, timestamp=BEGIN + 1000 * number)
    archive(segments, ArchiveJob(at, (name,), vault))
    fill(broker, name, range(3), 1, timestamp=BEGIN)
    archive(segments, ArchiveJob(at, (name,), vault))


def test_a_replay_fills_a_topic_with_the_very_same_records(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, vault: str
) -> None:
    name, copy = topic(partitions=2), topic(partitions=2)
    archived(segments, at, broker, name, vault)
    compact(segments, vault)
    assert replay(segments, ReplayJob(at, vault, renamed={name: copy})) == 9
    assert [shape(m) for m in stored(broker, copy)] == [shape(m) for m in stored(broker, name)]


def test_a_replay_takes_a_stretch_of_time_or_offsets_at_its_own_pace(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, vault: str
) -> None:
    name = topic(partitions=2)
    archived(segments, at, broker, name, vault)
    made, part = f"{name}-made", topic(partitions=2)
    began = time.monotonic()
    job = ReplayJob(at, vault, renamed={name: made}, first_offset=2, speed=4, create_topics=True)
    assert replay(segments, job) == 5
    assert time.monotonic() - began > 1.25, "five seconds of records at four times their speed"
    assert [m.value() for m in stored(broker, made)] == [b"2", b"3", b"4", b"5", b"2"]
    times = {"since": "2023-11-14T22:13:21Z", "until": "2023-11-14T22:13:23+00:00"}
    assert replay(segments, ReplayJob(at, vault, renamed={name: part}, **times)) == 2
    assert [m.value() for m in stored(broker, part)] == [b"1", b"2"]


def test_a_replay_that_cannot_be_whole_sends_nothing(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, vault: str
) -> None:
    name, small = topic(partitions=2), topic()
    archived(segments, at, broker, name, vault)
    with pytest.raises(PipelineError, match="has 1 partition, the archive's records need 2"):
        replay(segments, ReplayJob(at, vault, renamed={name: small}))
    with pytest.raises(PipelineError, match="no topic missing-target at"):
        replay(segments, ReplayJob(at, vault, renamed={name: "missing-target"}))
    with pytest.raises(PipelineError, match="has no topic unknown"):
        replay(segments, ReplayJob(at, vault, topics=("unknown",)))
    with pytest.raises(PipelineError, match="time 'noon': expected"):
        replay(segments, ReplayJob(at, vault, since="noon"))
    next(Path(vault).rglob("*.parquet")).unlink()
    with pytest.raises(PipelineError, match="has a hole"):
        replay(segments, ReplayJob(at, vault, renamed={name: small}))
    assert stored(broker, small) == []


def test_an_audit_finds_what_is_missing_doubled_and_different(
    segments: SparkSession, at: Kafka, broker: Server, fresh_name: str, vault: str
) -> None:
    name = create_topic(broker.bootstrap, fresh_name, 2)
    archived(segments, at, broker, name, vault)
    fill(broker, name, ["later"])
    sound = audit(segments, vault, str(broker.log_dir))
    assert sound.sound
    assert sound.counts == {(name, 0): {"same": 6, "to come": 1}, (name, 1): {"same": 3}}
    first, second = sorted(Path(vault).rglob("*.parquet"), key=lambda path: -pq.read_metadata(path).num_rows)
    rewrite(first, pq.read_table(first, partitioning=None).slice(2))
    rows = pq.read_table(second, partitioning=None)
    values = pa.chunked_array([pa.array([b"0", b"1", b"other"])])
    changed = rows.set_column(rows.schema.get_field_index("value"), "value", values)
    rewrite(second, pa.concat_tables([changed.cast(rows.schema), rows.slice(0, 1)]))
    found = audit(segments, vault, str(broker.log_dir))
    assert not found.sound
    assert found.findings == (
        Finding(name, 0, "missing", 0, 1, 2),
        Finding(name, 1, "doubled", 0, 0, 1),
        Finding(name, 1, "different", 2, 2, 1),
    )
    report = list(found.lines())
    assert f"missing: {name}-0, offsets 0 to 1" in report
    assert report[-1] == "the archive differs from the disk"


def rewrite(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
