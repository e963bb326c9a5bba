"""Rows as Markdown: medians with their extremes, ours over Kafka's, and whether the goal is met."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.contenders import KAFKA, OURS

if TYPE_CHECKING:
    from benchmarks.results import Result, Run
    from benchmarks.rounds import Metric, Row

INTRODUCTION = """\
# Performance

Written by `make bench`; do not edit. Every table comes from one run that alternated between this broker and Apache
Kafka on the same machine and disk. Each cell is the median of the counted rounds, with the extremes in parentheses; a
warm-up round went before and is not counted. MB and GB are powers of ten and count the values of records only. CPU is
the user and system time of the whole server process. A ratio is ours over Kafka's, with its goal beside it.

Again: `make bench` for everything, or one part with the command below its table.
"""


@dataclass(slots=True)
class _Chapter:
    """All rows of one title, with the runs they come from."""

    title: str
    note: str
    compared: bool
    rows: list[Row] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)


def render(results: list[Result]) -> str:
    """The whole report."""
    chapters = _chapters(results)
    parts = [INTRODUCTION, *_environments(results), _summary(chapters)]
    parts += [_chapter(chapter) for chapter in chapters]
    return "\n".join(part for part in parts if part)


def _chapters(results: list[Result]) -> list[_Chapter]:
    """Sections of one title become one chapter, where the first of them stood."""
    chapters: dict[str, _Chapter] = {}
    for result in results:
        for section in result.sections:
            chapter = chapters.setdefault(
                section.title, _Chapter(section.title, section.note, section.compared)
            )
            chapter.note = chapter.note or section.note
            chapter.rows += section.rows
            chapter.runs.append(result.run)
    return list(chapters.values())


def _environments(results: list[Result]) -> list[str]:
    """One table for each environment there was; usually one for all."""
    different: list[dict[str, str]] = []
    for result in results:
        if result.environment not in different:
            different.append(result.environment)
    tables = []
    for facts in different:
        rows = [f"| {name} | {value} |" for name, value in facts.items()]
        if len(different) > 1:
            cases = (result.case for result in results if result.environment == facts)
            rows.insert(0, f"| measured here | {', '.join(cases)} |")
        tables.append("\n".join(["| | |", "|---|---|", *rows, ""]))
    return tables


def _summary(sections: list[_Chapter]) -> str:
    """How many goals are met, and which are not."""
    verdicts = [
        (f"{row.title}: {metric.heading} {ratio:.2f} (goal {metric.goal})", metric.goal.met(ratio))
        for section in sections
        for row in section.rows
        for metric in row.metrics
        if metric.goal and (ratio := row.ratio(metric)) is not None
    ]
    if not verdicts:
        return ""
    short = [text for text, met in verdicts if not met]
    lines = [f"**{len(verdicts) - len(short)} of {len(verdicts)} goals met.**"]
    lines += ["Not met:", "", *(f"- {text}" for text in short)] if short else []
    return "\n".join([*lines, ""])


def _chapter(chapter: _Chapter) -> str:
    table = _compared(chapter.rows) if chapter.compared else _listed(chapter.rows)
    note = [chapter.note, ""] if chapter.note else []
    runs = [_told(run) for run in chapter.runs]
    return "\n".join([f"## {chapter.title}", "", *note, *table, "", *runs, ""])


def _told(run: Run) -> str:
    """When and how a table was measured, and the command that does it again."""
    rounds = f"{run.rounds} round{'s' if run.rounds > 1 else ''}"
    size = ", a tenth of the work" if run.quick else ""
    return (
        f"`{run.command}`: {run.when}, commit {run.commit}, {rounds}{size}, {run.minutes:g} minutes,"
        f" load average before {run.load_before}  "
    )


def _compared(rows: list[Row]) -> list[str]:
    """One line a row; for every metric ours, Kafka's and the ratio."""
    metrics = _columns(rows)
    heads = [f"{metric.heading}, {name}" for metric in metrics for name in (OURS, KAFKA)]
    header = ["", *(cell for at in range(len(metrics)) for cell in (*heads[2 * at : 2 * at + 2], "ratio"))]
    lines = [_line(header), _line(["---", *["---:"] * (len(header) - 1)])]
    for row in rows:
        own = {metric.heading: metric for metric in row.metrics}
        cells = [row.title]
        for column in metrics:
            metric = own.get(column.heading)
            cells += [_cell(row, OURS, metric), _cell(row, KAFKA, metric), _ratio(row, metric)]
        lines.append(_line(cells))
    return lines + _reasons(rows)


def _listed(rows: list[Row]) -> list[str]:
    """One line a row and broker, for numbers that are read downwards."""
    metrics = _columns(rows)
    header = ["", "", *(metric.heading for metric in metrics)]
    lines = [_line(header), _line(["---", "---", *["---:"] * len(metrics)])]
    for name in (OURS, KAFKA):
        lines += [
            _line([name, row.title, *(_cell(row, name, metric) for metric in metrics)])
            for row in rows
            if name in row.samples or name in row.missing
        ]
    return lines + _reasons(rows)


def _columns(rows: list[Row]) -> list[Metric]:
    return list({metric.heading: metric for row in rows for metric in row.metrics}.values())


def _cell(row: Row, name: str, metric: Metric | None) -> str:
    if metric is None:
        return ""
    if name in row.missing:
        return row.missing[name].split(":")[0]
    spread = row.spread(name, metric)
    if spread is None:
        return ""
    if spread.rounds == 1 or spread.low == spread.high:
        return _number(spread.median)
    return f"{_number(spread.median)} ({_number(spread.low)} to {_number(spread.high)})"


def _ratio(row: Row, metric: Metric | None) -> str:
    ratio = row.ratio(metric) if metric else None
    if ratio is None or metric is None:
        return ""
    if metric.goal is None:
        return f"{ratio:.2f}"
    return (
        f"{ratio:.2f} met ({metric.goal})"
        if metric.goal.met(ratio)
        else f"**{ratio:.2f} not met ({metric.goal})**"
    )


def _reasons(rows: list[Row]) -> list[str]:
    """Why a cell holds no number, once for each reason."""
    reasons = {f"{name}: {reason}": None for row in rows for name, reason in row.missing.items()}
    return ["", *(f"- {reason}" for reason in reasons)] if reasons else []


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
