"""`python -m compat_tests.report [--run]`: write the report from recorded runs, made anew if asked to."""

from __future__ import annotations

import argparse
import subprocess
import sys

from compat_tests import provision
from compat_tests.report import proofs, results, tables
from compat_tests.report.cannot import CANNOT
from compat_tests.report.results import BROKERS, FAILED

DOCUMENT = provision.PROJECT / "docs" / "compatibility.md"
README = provision.PROJECT / "README.md"
BEGIN, END = "<!-- compatibility: written by make compat -->", "<!-- end of compatibility -->"


def run_tests(against: str) -> int:
    """Everything against ours; what speaks for a client against Apache Kafka. The exit code of pytest."""
    results.path_of(against).unlink(missing_ok=True)
    which = "" if against == "ours" else "client"
    command = [sys.executable, "-m", "pytest", "compat_tests", "-m", which, "--against", against, "--record"]
    return subprocess.run(command, cwd=provision.PROJECT, check=False).returncode


def between_markers(text: str, table: str) -> str:
    """The text with the table in its place; without the markers it stays as it is."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{table}{end}{after}" if begin and end else text


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m compat_tests.report", description=__doc__)
    asked.add_argument("--run", action="store_true", help="run the tests against all three brokers first")
    anew = asked.parse_args().run
    codes = [run_tests(against) for against in BROKERS] if anew else []
    compared = proofs.compare() if anew else True
    runs = [run for run in map(results.load, BROKERS) if run is not None]
    if not runs or runs[0].against != "ours":
        print("there is no recorded run against ours: make compat", file=sys.stderr)
        return 1
    card = tables.Card(runs, CANNOT)
    DOCUMENT.write_text(tables.document(card))
    proofs.write()
    README.write_text(between_markers(README.read_text(), tables.summary(card)))
    print(tables.summary(card))
    failed = {result.test for result in runs[0].results if result.outcome == FAILED}
    for test in sorted(failed):
        print(f"fails on ours: {test}")
    return 1 if failed or any(codes[:1]) or not compared else 0


if __name__ == "__main__":
    raise SystemExit(main())
