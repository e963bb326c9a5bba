"""The long run: `python -m compat_tests.differential [--release 4.3.1] [--requests 10000] [--seed 0]`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from compat_tests.differential.run import Comparison, Report
from compat_tests.report import differences
from compat_tests.report.differences import Asked, DifferentialRun


async def compare(release: str, requests: int, seed: int, *, explore: bool, only: int | None) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        async with Comparison(Path(scratch), release, explore=explore) as comparison:
            report = comparison.report
            seeds = iter([only]) if only is not None else iter(range(seed, seed + requests))
            while report.requests < requests and (number := next(seeds, None)) is not None:
                found = await comparison.tell(number)
                for difference in found:
                    print(f"story {number}: {difference}\n    {difference.step.request}", flush=True)
            never = [] if only is not None else comparison.never_asked()
    _print_asked(report, release)
    if only is None and not explore:
        differences.save(_record(report, release, seed))
    for why, count in report.meant.most_common():
        print(f"  meant, {count} times: {why}")
    for where, count in report.witnessed.most_common():
        print(f"  as Apache Kafka 4.3.1, {count} times: {where}")
    for cell in never:
        print(f"never asked: {cell.key.name} {cell.version}")
    print(f"{len(report.unexplained)} unexplained differences")
    return 1 if report.unexplained or never else 0


def _record(report: Report, release: str, seed: int) -> DifferentialRun:
    asked = [
        Asked(cell.key, cell.version, times, report.without_error[cell])
        for cell, times in sorted(report.asked.items())
    ]
    told = [f"story {number}: {difference}" for number, difference in report.unexplained]
    return DifferentialRun(
        release, seed, report.requests, asked, dict(report.meant), dict(report.witnessed), told
    )


def _print_asked(report: Report, release: str) -> None:
    apis = sorted({cell.key for cell in report.asked})
    print(
        f"{report.requests} requests in {len(report.asked)} versions of {len(apis)} APIs to Apache Kafka {release}"
    )
    for key in apis:
        told = ", ".join(
            f"v{cell.version} {count} ({report.without_error[cell]})"
            for cell, count in sorted(report.asked.items())
            if cell.key is key
        )
        print(f"  {key.name}, in all (without an error): {told}")


def main() -> int:
    parser = argparse.ArgumentParser("compat_tests.differential", description=__doc__)
    parser.add_argument("--release", default="4.3.1", choices=["4.3.1", "3.9.1"])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--explore", action="store_true", help="tell each story once, to its end")
    parser.add_argument("--story", type=int, help="tell this one alone")
    options = parser.parse_args()
    return asyncio.run(
        compare(options.release, options.requests, options.seed, explore=options.explore, only=options.story)
    )


if __name__ == "__main__":
    sys.exit(main())
