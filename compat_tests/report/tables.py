"""Recorded runs as Markdown: the report in docs/ and the short table of the README."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compat_tests.report.features import AREAS, FEATURES, LATER, areas_of
from compat_tests.report.results import FAILED, PASSED, SKIPPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compat_tests.report.features import Area
    from compat_tests.report.results import ClientName, Run

SIGNS = {PASSED: "✓", FAILED: "✗", SKIPPED: "n/a", None: "·"}
INTRODUCTION = """\
# Which clients work, and with what

Written by `make compat` from its own runs; do not edit. The same tests are run against {brokers}, so that
a failure that Apache Kafka shares is seen as such.

A cell reads **{order}**: ✓ every test passes, ✗ one fails, n/a not applicable (the client cannot do it, or that broker
does not offer it), · no test was run.
"""


@dataclass(frozen=True, slots=True)
class Card:
    """The runs side by side, ours first, and what each client cannot do, with the reason."""

    runs: Sequence[Run]
    cannot: Mapping[str, Mapping[str, str]]

    def clients(self) -> list[ClientName]:
        found = {result.client for run in self.runs for result in run.results}
        return sorted(found, key=lambda client: (client.name.lower(), _as_numbers(client.version)))

    def excuse(self, client: ClientName, feature: str) -> str | None:
        """Why this client is not asked to do this, if it is not."""
        return self._cannot(client).get(feature)

    def outcome(self, run: Run, client: ClientName, feature: str) -> str | None:
        return run.outcome(client, feature) or (SKIPPED if self.excuse(client, feature) else None)

    def excuses(self) -> Iterable[tuple[ClientName, str, str]]:
        for client in self.clients():
            for feature, reason in self._cannot(client).items():
                yield client, feature, reason

    def _cannot(self, client: ClientName) -> dict[str, str]:
        return {**self.cannot.get(client.name, {}), **self.cannot.get(str(client), {})}


def document(card: Card) -> str:
    """The whole of docs/compatibility.md."""
    parts = [
        _introduction(card),
        *(_area(card, area) for area in AREAS),
        _later(card),
        _excuses(card),
        _failures(card),
    ]
    return "\n".join(part for part in parts if part)


def summary(card: Card) -> str:
    """For the README: of the features that apply to a client, how many are proven on which broker."""
    lines = [_row(["client", *(_title(run.against) for run in card.runs)]), _rule(1 + len(card.runs))]
    lines += [
        _row([str(client), *(_share(card, run, client) for run in card.runs)]) for client in card.clients()
    ]
    return "\n".join(lines) + "\n"


def _introduction(card: Card) -> str:
    """It names the runs that are there: nobody shall think that one was made that was not."""
    names = [_title(run.against) for run in card.runs]
    counts = [f"{name} ({len(run.results)} tests)" for name, run in zip(names, card.runs, strict=True)]
    order = f"{names[0]} / {', '.join(names[1:])}".rstrip(" /")
    return INTRODUCTION.format(brokers=", ".join(counts), order=order)


def _share(card: Card, run: Run, client: ClientName) -> str:
    """What nobody tried counts as not proven."""
    asked = [feature for area in areas_of(client.name) for feature in area.features]
    outcomes = [card.outcome(run, client, feature) for feature in asked]
    if not {PASSED, FAILED} & set(outcomes):
        return SIGNS[SKIPPED] if any(result.client == client for result in run.results) else "not run"
    return f"{outcomes.count(PASSED)} of {len(outcomes) - outcomes.count(SKIPPED)}"


def _area(card: Card, area: Area) -> str:
    names = [feature.partition(": ")[2] or feature for feature in area.features]
    lines = [f"## {area.name}", _row(["client", *names]), _rule(1 + len(names))]
    lines += [
        _row([str(client), *(_cell(card, client, feature) for feature in area.features)])
        for client in card.clients()
        if area in areas_of(client.name)
    ]
    return "\n".join(lines) + "\n"


def _cell(card: Card, client: ClientName, feature: str) -> str:
    ours, *theirs = (SIGNS[card.outcome(run, client, feature)] for run in card.runs)
    return f"{ours} / {' '.join(theirs)}" if theirs else ours


def _later(card: Card) -> str:
    """What is not served is said by the brokers themselves: their ApiVersions were recorded."""
    lines = [
        "## Not yet served, or not yet proven",
        _row(["", *(_title(run.against) for run in card.runs)]),
        _rule(1 + len(card.runs)),
    ]
    for later in LATER:
        told = ["served, no test here" if later.api in run.served else "not served" for run in card.runs]
        told[0] = told[0].replace("not served", "not yet served")
        lines.append(_row([later.name, *told]))
    return "\n".join(lines) + "\n"


def _excuses(card: Card) -> str:
    by_reason: dict[tuple[str, str], list[str]] = {}
    for client, feature, reason in card.excuses():
        by_reason.setdefault((feature, reason), []).append(str(client))
    if not by_reason:
        return ""
    order = sorted(by_reason, key=lambda key: (FEATURES.index(key[0]), key[1]))
    lines = ["## Not applicable, and why", _row(["feature", "clients", "reason"]), _rule(3)]
    lines += [_row([feature, ", ".join(by_reason[feature, reason]), reason]) for feature, reason in order]
    return "\n".join(lines) + "\n"


def _failures(card: Card) -> str:
    where: dict[str, list[str]] = {}
    for run in card.runs:
        for result in run.results:
            if result.outcome == FAILED:
                where.setdefault(result.test, []).append(_title(run.against))
    if not where:
        return "## Failures\nNone.\n"
    lines = ["## Failures", _row(["test", "fails on"]), _rule(2)]
    lines += [_row([f"`{test}`", ", ".join(brokers)]) for test, brokers in sorted(where.items())]
    return "\n".join(lines) + "\n"


def _title(against: str) -> str:
    return "pykafka-broker" if against == "ours" else against.replace("kafka-", "Apache Kafka ")


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(count: int) -> str:
    return "|---" * count + "|"


def _as_numbers(version: str) -> list[int]:
    return [int("".join(filter(str.isdigit, part)) or 0) for part in version.split(".")]
