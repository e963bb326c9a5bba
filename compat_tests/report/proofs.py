"""The table of docs/api-versions.md: of every API for clients, what is served, and what proves each version."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from compat_tests import provision
from compat_tests.report import differences
from compat_tests.report.goal import GOAL
from pykafka_broker.handlers import ROUTES
from pykafka_broker.handlers.cluster_routes import CLUSTER_ROUTES
from pykafka_broker.handlers.releases import release

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compat_tests.report.differences import DifferentialRun

DOCUMENT = provision.PROJECT / "docs" / "api-versions.md"

SERVED = {route.api.key: range(route.oldest, route.newest + 1) for route in (*ROUTES, *CLUSTER_ROUTES)}
IN_CLUSTERS_ONLY = {route.api.key for route in CLUSTER_ROUTES}

NOT_PROVEN: Mapping[tuple[int, int], str] = {}
"""Versions that are served and that no test sends, with the reason."""

HEAD = """\
# Every API for clients, version by version

Written by `python -m compat_tests.report`; do not edit. The goal is all that releases of kafka-clients speak.

- **3.9.1**, **4.3.1**: generated requests of the last differential run against that release, and the versions they went
  to; each answer was compared field by field ([how](compatibility-differential.md)). {runs}
- **wire test**: `compat_tests/test_every_version.py` sends every served version a request, and the answer makes sense.
- What client libraries at which versions were tried with: [compatibility.md](compatibility.md).
"""


def document(runs: Sequence[DifferentialRun]) -> str:
    """The whole of docs/api-versions.md."""
    lines = [HEAD.format(runs=_told(runs)), "", _row("API", "goal", "served", "3.9.1", "4.3.1", "wire test")]
    lines.append("|---|---|---|---|---|---|")
    by_release = {run.release: run for run in runs}
    lines += [_line(key, by_release) for key in GOAL]
    lines += ["", "## Served and not proven", *_not_proven(), ""]
    return "\n".join(lines)


def compare() -> bool:
    """Run the differential against both releases; whether nothing was left unexplained."""
    command = [sys.executable, "-m", "compat_tests.differential", "--release"]
    done = [
        subprocess.run([*command, release], cwd=provision.PROJECT, check=False)
        for release in differences.RELEASES
    ]
    return not any(each.returncode for each in done)


def write() -> None:
    runs = [run for run in map(differences.load, differences.RELEASES) if run is not None]
    DOCUMENT.write_text(document(runs))


def spans(versions: Iterable[int]) -> str:
    """Versions as people write them: 0-2, 4."""
    found: list[list[int]] = []
    for version in sorted(versions):
        if found and found[-1][-1] == version - 1:
            found[-1].append(version)
        else:
            found.append([version])
    return ", ".join(f"{span[0]}-{span[-1]}" if len(span) > 1 else f"{span[0]}" for span in found)


def _told(runs: Sequence[DifferentialRun]) -> str:
    told = [
        f"{run.release}: {run.requests:,} requests from seed {run.seed}, {len(run.unexplained)} unexplained differences"
        for run in runs
    ]
    return f"Last runs: {'; '.join(told)}." if told else "No run is recorded."


def _line(key: int, runs: Mapping[str, DifferentialRun]) -> str:
    goal = GOAL[key]
    served = SERVED.get(key)
    if served is None:
        return _row(goal.name, spans(range(goal.oldest, goal.newest + 1)), "not yet served", "", "", "")
    told = spans(served) + (" (in a cluster)" if key in IN_CLUSTERS_ONLY else "")
    asked = [_asked(key, served, runs.get(release)) for release in differences.RELEASES]
    proven = [version for version in served if (key, version) not in NOT_PROVEN]
    return _row(goal.name, spans(range(goal.oldest, goal.newest + 1)), told, *asked, spans(proven))


def _asked(key: int, served: range, run: DifferentialRun | None) -> str:
    if run is None:
        return "not run"
    # What is sent beyond what the release offers is sent to be refused.
    oldest, newest = release(run.release).ranges.get(key, (1, 0))
    times = {n: run.times(key, n) for n in served if oldest <= n <= newest}
    if not any(times.values()):
        return "-"
    return f"{sum(times.values())} ({spans(version for version in times if times[version])})"


def _not_proven() -> list[str]:
    return [f"- {GOAL[key].name} {version}: {why}" for (key, version), why in NOT_PROVEN.items()] or ["None."]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
