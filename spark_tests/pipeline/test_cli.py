"""`pykafka-pipeline` as a person or a job meets it: words, summaries and exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.pipeline.cli import main
from spark_tests.broker_side import fill, stored_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server

ALL_STAGES = ["archive", "compact", "replay", "audit", "aggregate", "retry", "redrive"]


def test_a_topic_goes_round_by_commands_alone(
    segments: SparkSession,
    broker: Server,
    topic: MakeTopic,
    vault: str,
    checkpoint: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, counts = topic(), topic()
    fill(broker, name, ['{"team": "blue"}', "never"])
    reach = ["--bootstrap", broker.bootstrap]

    def says(*command: object, code: int = 0) -> str:
        assert main([str(word) for word in command]) == code
        return capsys.readouterr().out

    said = says("archive", *reach, "--topic", name, "--path", vault, "--json-schema", "team string")
    assert said.splitlines() == [
        f"archived 2 records in 1 file to {vault}",
        "1 value did not decode: kept as bytes, their column json is null",
    ]
    assert "the archive is sound, 2 records the same as on disk" in says(
        "audit", "--path", vault, "--log-dirs", broker.log_dir
    )
    assert says("compact", "--path", vault).startswith("0 files became 0")
    assert says(
        "replay", *reach, "--path", vault, "--into", f"{name}={name}-2", "--create-topics"
    ).startswith("replayed 2 records")
    assert stored_values(broker, f"{name}-2") == ['{"team": "blue"}', "never"]
    sql = "SELECT team FROM goals"
    says(
        "aggregate", *reach, "--topic", f"goals={name}", "--schema", "goals=team string", "--sql", sql,
        "--to-topic", counts, "--checkpoint", checkpoint,
    )  # fmt: skip
    assert stored_values(broker, counts) == ['{"team":"blue"}']
    handler = "spark_tests.pipeline.handlers:picky"
    said = says("retry", *reach, "--topic", name, "--handler", handler, "--tiers", 0)
    assert f"1 dead letter new in {name}-dead" in said
    assert says("redrive", *reach, "--topic", name) == f"put 1 dead letter back into {name}\n"
    next(Path(vault, "_commits").glob("*.json")).rename(Path(vault, "_commits", f"{1:020d}.json"))
    assert main(["audit", "--path", vault, "--log-dirs", str(broker.log_dir)]) == 2
    assert "commit _commits/00000000000000000000.json is missing" in capsys.readouterr().err


def test_a_difference_is_exit_code_one(
    segments: SparkSession, broker: Server, topic: MakeTopic, vault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = topic()
    fill(broker, name, ["1"])
    main(["archive", "--bootstrap", broker.bootstrap, "--topic", name, "--path", vault])
    commit = next(Path(vault, "_commits").glob("*.json"))
    files = json.loads(commit.read_text())
    commit.write_text(json.dumps(files | {"added": []}))
    assert main(["audit", "--path", vault, "--log-dirs", str(broker.log_dir)]) == 1
    assert f"missing: {name}-0, offset 0\nthe archive differs from the disk\n" in capsys.readouterr().out


def test_what_cannot_run_is_one_line_and_exit_code_two(
    segments: SparkSession, broker: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["archive", "--bootstrap", broker.bootstrap, "--topic", "nowhere", "--path", "unused"]) == 2
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        "starting Spark at local[*]",
        f"pykafka-pipeline archive: no topic nowhere at {broker.bootstrap}",
    ]
    assert shown.out == ""


def test_a_damaged_segment_is_named_by_the_task_that_met_it(
    segments: SparkSession,
    broker: Server,
    topic: MakeTopic,
    vault: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = topic()
    fill(broker, name, ["1"])
    main(["archive", "--bootstrap", broker.bootstrap, "--topic", name, "--path", vault])
    shutil.copytree(broker.log_dir / f"{name}-0", tmp_path / "copy" / f"{name}-0")
    [segment] = (tmp_path / "copy").rglob("*.log")
    segment.write_bytes(segment.read_bytes()[:-1] + b"x")
    assert main(["audit", "--path", vault, "--log-dirs", str(tmp_path / "copy")]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"pykafka-pipeline audit: {segment}: the batch at byte 0 fails its checksum"


@pytest.mark.parametrize("stage", ALL_STAGES)
def test_every_stage_explains_itself(stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([stage, "--help"])
    assert left.value.code == 0
    assert f"pykafka-pipeline {stage}" in capsys.readouterr().out
