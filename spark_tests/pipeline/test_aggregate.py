"""SQL over topics: windows by event time, results in a topic or in Parquet, state that outlives a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.pipeline.aggregate import AggregateJob, aggregate
from pykafka_broker.pipeline.errors import PipelineError
from spark_tests.broker_side import fill, stored

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server
    from pykafka_broker.pipeline.topics import Kafka

PER_MINUTE = """
    SELECT date_format(window.start, 'HH:mm') AS minute, team, count(*) AS goals
    FROM goals GROUP BY window(at, '1 minute'), team
"""
SCHEMA = {"goals": "team string, at timestamp"}


def goal(team: str, at: str) -> str:
    return json.dumps({"team": team, "at": f"2024-05-01T{at}Z"})


def test_windows_close_with_the_watermark_over_several_runs(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name, results = topic(), topic()
    job = AggregateJob(
        at,
        PER_MINUTE,
        {"goals": name},
        str(checkpoint),
        to_topic=results,
        schemas=SCHEMA,
        event_time="at",
        watermark="30 seconds",
        key="team",
    )
    fill(broker, name, [goal("blue", "12:00:10"), "own goal", goal("blue", "12:00:50")])
    done = aggregate(segments, job)
    assert (done.records, done.undecoded) == (3, 1)
    fill(broker, name, [goal("red", "12:00:20"), goal("red", "12:02:00")])
    aggregate(segments, job)
    found = {m.key(): json.loads(m.value()) for m in stored(broker, results)}
    assert found == {
        b"blue": {"minute": "12:00", "team": "blue", "goals": 2},
        b"red": {"minute": "12:00", "team": "red", "goals": 1},
    }
    state = {path.name for path in (checkpoint / "state").rglob("*") if path.is_file()}
    assert any(file.endswith((".zip", ".changelog")) for file in state), "state is kept by RocksDB"


def test_topics_join_and_rows_go_to_parquet(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, checkpoint: Path, tmp_path: Path
) -> None:
    left, right = topic(), topic()
    fill(broker, left, ["a", "b"], key=b"1")
    fill(broker, right, ["c"], key=b"1")
    job = AggregateJob(
        at,
        "SELECT string(l.value) AS l, string(r.value) AS r FROM l JOIN r ON l.key = r.key",
        {"l": left, "r": right},
        str(checkpoint),
        to_parquet=str(tmp_path / "joined"),
    )
    assert aggregate(segments, job).records == 3
    rows = segments.read.parquet(str(tmp_path / "joined")).orderBy("l").collect()
    assert [tuple(row) for row in rows] == [("a", "c"), ("b", "c")]


def test_what_cannot_run_is_told_in_one_line(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic, checkpoint: Path, tmp_path: Path
) -> None:
    name = topic()
    fill(broker, name, ["no json"])
    place = str(tmp_path / "out")

    def run(sql: str = PER_MINUTE, source: str = name, **options: object) -> str:
        job = AggregateJob(at, sql, {"goals": source}, str(checkpoint), to_parquet=place, **options)
        with pytest.raises(PipelineError) as refused:
            aggregate(segments, job)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    assert "no topic nowhere at" in run(source="nowhere")
    assert "SQL: [PARSE_SYNTAX_ERROR]" in run("SELEC team")
    assert "SQL: [TABLE_OR_VIEW_NOT_FOUND]" in run("SELECT * FROM elsewhere")
    assert "no column at to tell the time by" in run(event_time="at")
    assert "does not decode: offset 0" in run(schemas=SCHEMA, event_time="at", on_bad_value="fail")
    broken = checkpoint / "offsets" / "0"
    broken.write_text("v1\n{")
    (checkpoint / "offsets" / ".0.crc").unlink(missing_ok=True)
    assert f"(checkpoint {checkpoint})" in run(schemas=SCHEMA, event_time="at")
