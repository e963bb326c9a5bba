"""Measure the broker and Apache Kafka side by side, and write docs/performance.md.

What is not measured by a run keeps its place in the report with the numbers of the run that measured it last.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchmarks import (
    environment,
    failover,
    flat,
    groups,
    latency,
    replicated,
    report,
    spark,
    startup,
    throughput,
)
from benchmarks.contenders import KAFKA, OURS, scratch
from benchmarks.java_client import JavaClient
from benchmarks.results import Result, Run, keep, kept
from benchmarks.rounds import Lab
from compat_tests.provision import PROJECT, cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.rounds import Section

CASES: dict[str, Callable[[Lab], list[Section]]] = {
    "startup": startup.startup,
    "java": throughput.java,
    "librdkafka": throughput.rdkafka,
    "latency": latency.latency,
    "partitions": flat.partitions,
    "log": flat.log,
    "connections": flat.connections,
    "members": groups.members,
    "commits": groups.commits,
    "load": groups.load,
    "cluster": replicated.cluster,
    "failover": failover.failover,
    "spark": spark.spark,
}
GROUPS = {
    "throughput": ["java", "librdkafka"],
    "flat": ["partitions", "log", "connections"],
    "groups": ["members", "commits", "load"],
}
DEFAULT_ROUNDS = 3
REPORT = PROJECT / "docs" / "performance.md"


def main() -> int:
    options = _options()
    results, failed = [], []
    with _lab(options) as lab:
        for case in options.only:
            began, load = time.monotonic(), os.getloadavg()
            try:
                sections = CASES[case](lab)
            except Exception:  # noqa: BLE001 - what was measured before and comes after is worth keeping
                failed.append(case)
                _say(f"{case} failed:\n{traceback.format_exc()}")
                continue
            run = _run(case, options, (time.monotonic() - began) / 60, load)
            results.append(Result(case, run, environment.facts(lab.directory), sections))
            _say(f"-- {case}: {time.monotonic() - began:.0f} s")
            if options.write:
                keep(results[-1], cache() / "benchmarks")
    if options.write:
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(report.render(kept(CASES, cache() / "benchmarks")))
        _say(f"written: {REPORT.relative_to(PROJECT)}")
    else:
        print(report.render(results))
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        type=_cases,
        default=list(CASES),
        metavar="NAME,...",
        help=f"measure these: {', '.join([*CASES, *GROUPS])} (everything)",
    )
    parser.add_argument("--rounds", type=int, help=f"counted rounds of each row ({DEFAULT_ROUNDS}; quick: 1)")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the work, one round, printed: a first look"
    )
    parser.add_argument("--write", action="store_true", help="keep a quick run's numbers in the report too")
    parser.add_argument("--alone", choices=[OURS, KAFKA], help="run one broker without the other; printed")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else DEFAULT_ROUNDS)
    options.write = (options.write or not options.quick) and not options.alone
    return options


def _cases(text: str) -> list[str]:
    """The cases that a comma-separated list of cases and groups names, in the order of the report."""
    names = text.split(",")
    if unknown := [name for name in names if name not in CASES and name not in GROUPS]:
        raise argparse.ArgumentTypeError(f"no such benchmark: {', '.join(unknown)}")
    chosen = {case for name in names for case in GROUPS.get(name, [name])}
    return [case for case in CASES if case in chosen]


@contextlib.contextmanager
def _lab(options: argparse.Namespace) -> Iterator[Lab]:
    """A place to measure in; the Java client's JVM starts when it is first asked for."""
    with scratch() as directory, contextlib.ExitStack() as ending:
        yield Lab(
            rounds=options.rounds,
            quick=options.quick,
            directory=directory,
            names=[options.alone] if options.alone else [OURS, KAFKA],
            java=functools.cache(lambda: ending.enter_context(JavaClient())),
            say=_say,
        )


def _run(case: str, options: argparse.Namespace, minutes: float, load: tuple[float, ...]) -> Run:
    again = f".venv/bin/python -m benchmarks --only {case}"
    if options.quick:
        again += " --quick --write"
    if options.rounds != (1 if options.quick else DEFAULT_ROUNDS):
        again += f" --rounds {options.rounds}"
    return Run(
        when=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        commit=environment.commit(),
        rounds=options.rounds,
        quick=options.quick,
        minutes=round(minutes, 1),
        load_before=f"{load[0]:.2f}",
        command=again,
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
