"""The pytest plugin behind `--record`: it watches the tests that speak for a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.provision import Unavailable
from compat_tests.report import results
from compat_tests.report.features import FEATURES
from compat_tests.report.results import FAILED, SKIPPED, ClientName, Result, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME = "report-card"
WHY_LENGTH = 300


def client_of(item: pytest.Item) -> ClientName | None:
    """Whom a test speaks for, by its marker; a version may be a function, asked only now."""
    marker = item.get_closest_marker("client")
    if marker is None:
        return None
    name, version = marker.args
    try:
        return ClientName(name, version() if callable(version) else version)
    except Unavailable:  # then its tests are skipped, each with the reason
        return ClientName(name, "?")


def features_of(item: pytest.Item) -> tuple[str, ...]:
    """What a test proves; a word that is no column of the report is an error in the test."""
    named = tuple(dict.fromkeys(f for marker in item.iter_markers("feature") for f in marker.args))
    unknown = [feature for feature in named if feature not in FEATURES]
    if unknown:
        raise pytest.UsageError(f"{item.nodeid} proves what is no feature of a client: {unknown}")
    return named


def check(items: list[pytest.Item]) -> None:
    """Refuse a test that speaks for a client and proves nothing the report knows."""
    for item in items:
        if item.get_closest_marker("client") is not None and not features_of(item):
            raise pytest.UsageError(f"{item.nodeid} speaks for a client, but proves no feature")


class Collector:
    """Keeps the results of one run and writes them when it ends; owned by pytest as a plugin."""

    def __init__(self, against: str) -> None:
        self._run = Run(against)
        self._open: dict[str, Result] = {}

    def met(self, served: Mapping[int, tuple[int, int]]) -> None:
        """A broker was started that serves these APIs."""
        self._run.served.update(served)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[pytest.TestReport]:
        report = yield
        client = client_of(item)
        if client is not None:
            known = self._open.get(item.nodeid)
            if known is None or report.outcome in {FAILED, SKIPPED}:
                self._open[item.nodeid] = Result(
                    item.nodeid, client, features_of(item), report.outcome, why(report)
                )
        return report

    def pytest_sessionfinish(self) -> None:
        """A run of a few tests replaces what was known of those, and leaves the rest."""
        with results.alone(self._run.against):
            before = results.load(self._run.against) or Run(self._run.against)
            kept = [result for result in before.results if result.test not in self._open]
            served = self._run.served or before.served
            results.save(Run(self._run.against, kept + list(self._open.values()), served))


def why(report: pytest.TestReport) -> str:
    """The reason of a skip, the last word of a failure."""
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")[:WHY_LENGTH]
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        message = crash.message if crash else str(report.longrepr)
        return message.splitlines()[0][:WHY_LENGTH] if message else ""
    return ""
