"""What was measured, kept between runs: one JSON file a case, so that one report can come from several runs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.rounds import Goal, Metric, Row, Section

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Run:
    """When and how a case was measured."""

    when: str
    commit: str
    rounds: int
    quick: bool
    minutes: float
    load_before: str
    command: str


@dataclass(frozen=True, slots=True)
class Result:
    """A case as it was last measured; the environment names machine and versions."""

    case: str
    run: Run
    environment: dict[str, str]
    sections: list[Section]


def keep(result: Result, directory: Path) -> None:
    """Put a result in the place of the one the same case had before."""
    directory.mkdir(parents=True, exist_ok=True)
    fresh = directory / f"{result.case}.json.new"
    fresh.write_text(json.dumps(asdict(result), indent=1))
    fresh.rename(directory / f"{result.case}.json")


def kept(cases: Iterable[str], directory: Path) -> list[Result]:
    """The results there are, in the order of the cases."""
    paths = (directory / f"{case}.json" for case in cases)
    return [_result(json.loads(path.read_text())) for path in paths if path.exists()]


def _result(raw: dict[str, Any]) -> Result:
    sections = [_section(section) for section in raw["sections"]]
    return Result(raw["case"], Run(**raw["run"]), raw["environment"], sections)


def _section(raw: dict[str, Any]) -> Section:
    return Section(**raw | {"rows": [_row(row) for row in raw["rows"]]})


def _row(raw: dict[str, Any]) -> Row:
    return Row(**raw | {"metrics": tuple(_metric(metric) for metric in raw["metrics"])})


def _metric(raw: dict[str, Any]) -> Metric:
    return Metric(**raw | {"goal": Goal(**raw["goal"]) if raw["goal"] else None})
