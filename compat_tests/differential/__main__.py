"""The long run: `python -m compat_tests.differential [--release 4.3.1] [--requests 10000] [--seed 0]`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from compat_tests.differential.run import Comparison


async def compare(release: str, requests: int, seed: int, *, explore: bool, only: int | None) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        async with Comparison(Path(scratch), release, explore=explore) as comparison:
            report = comparison.report
            seeds = iter([only]) if only is not None else iter(range(seed, seed + requests))
            while report.requests < requests and (number := next(seeds, None)) is not None:
                found = await comparison.tell(number)
                for difference in found:
                    print(f"story {number}: {difference}\n    {difference.step.request}", flush=True)
            asked = Counter(name for name, _ in report.asked.elements())
    print(
        f"{report.requests} requests in {len(report.asked)} versions of {len(asked)} APIs to Apache Kafka {release}"
    )
    for name, count in sorted(asked.items()):
        versions = sorted(version for api, version in report.asked if api == name)
        print(f"  {name} {versions[0]}-{versions[-1]}: {count}")
    for why, count in report.meant.most_common():
        print(f"  meant, {count} times: {why}")
    print(f"{len(report.unexplained)} unexplained differences")
    return 1 if report.unexplained else 0


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
