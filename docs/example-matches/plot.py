"""Draws the rows of per_minute.sql as an SVG: events a minute for each team, a dot where it scored.

python plot.py per-minute matches.svg
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from datetime import datetime

WIDTH, ROW, LEFT, TOP = 900, 56, 90, 40
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#997700", "#777777")


def main(source: str, target: str) -> None:
    rows = [row for path in sorted(Path(source).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    if not rows:
        sys.exit(f"{source}: no rows yet; a window is written once the watermark has passed it")
    minutes = sorted({row["minute"] for row in rows})
    teams: dict[str, dict[datetime, tuple[int, int]]] = defaultdict(dict)
    for row in rows:
        teams[row["team"]][row["minute"]] = (row["events"], row["goals"])
    most = max(row["events"] for row in rows)
    step = (WIDTH - LEFT - 20) / len(minutes)
    height = TOP + ROW * len(teams) + 30
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">Events a minute, and goals</text>',
    ]
    for line, team in enumerate(sorted(teams)):
        base = TOP + ROW * (line + 1)
        colour = COLOURS[line % len(COLOURS)]
        drawn.append(f'<text x="10" y="{base - 8}" font-size="13">{team}</text>')
        for column, minute in enumerate(minutes):
            events, goals = teams[team].get(minute, (0, 0))
            tall = events / most * (ROW - 14)
            x, wide = LEFT + column * step, step * 0.8
            drawn.append(
                f'<rect x="{x:.1f}" y="{base - tall:.1f}" width="{wide:.1f}" height="{tall:.1f}" fill="{colour}"/>'
            )
            drawn += [
                f'<circle cx="{x + wide / 2:.1f}" cy="{base - tall - 5 - 7 * goal:.1f}" r="3"/>'
                for goal in range(goals)
            ]
    for column, minute in enumerate(minutes):
        if column % 5 == 0:
            x = LEFT + column * step
            drawn.append(f'<text x="{x:.1f}" y="{height - 10}" font-size="12">{minute:%H:%M}</text>')
    Path(target).write_text("\n".join([*drawn, "</svg>\n"]))
    print(f"{len(rows)} rows, {len(minutes)} minutes, {len(teams)} teams: {target}")


if __name__ == "__main__":
    main(*sys.argv[1:])
