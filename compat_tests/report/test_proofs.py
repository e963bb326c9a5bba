"""The table of versions tells the truth: the goal is that of the official jars, and what is served is within it."""

from __future__ import annotations

from compat_tests.report import proofs
from compat_tests.report.differences import Asked, DifferentialRun
from compat_tests.report.goal import GOAL
from compat_tests.test_every_version import EVERY
from tests.protocol.test_against_kafka_json import definitions, versions_of

RELEASES = ("3.9.1", "4.4.0")


def test_the_goal_is_what_any_release_of_the_clients_speaks() -> None:
    spoken: dict[int, set[int]] = {}
    for release in RELEASES:
        for definition in definitions(release).values():
            if definition["type"] == "request" and "broker" in definition.get("listeners", ["broker"]):
                spoken.setdefault(definition["apiKey"], set()).update(versions_of(definition))
    unstable = {76: {0}, 77: {0}, 78: {0}, 79: {0}}  # of share groups, gone before anybody relied on it
    for key, goal in GOAL.items():
        wanted = spoken[key] - unstable.get(key, set())
        assert wanted == set(range(goal.oldest, goal.newest + 1)), goal.name


def test_what_is_served_to_clients_is_the_whole_of_the_goal_of_its_api() -> None:
    for key, served in proofs.SERVED.items():
        if key in GOAL:
            assert served == range(GOAL[key].oldest, GOAL[key].newest + 1), GOAL[key].name


def test_every_version_that_is_served_is_proven_or_said_not_to_be() -> None:
    served = {(key, n) for key, versions in proofs.SERVED.items() if key in GOAL for n in versions}
    assert served - {*EVERY} == set(proofs.NOT_PROVEN)


def test_a_row_tells_what_was_asked_and_what_is_not_served() -> None:
    run = DifferentialRun("4.3.1", 7, 12, [Asked(12, 0, 2, 1), Asked(12, 1, 3, 0), Asked(12, 4, 1, 1)])
    told = proofs.document([run])
    assert "| Heartbeat | 0-4 | 0-4 | not run | 6 (0-1, 4) | 0-4 |" in told
    assert "| SaslHandshake | 0-1 | not yet served |  |  |  |" in told
    assert "4.3.1: 12 requests from seed 7, 0 unexplained differences" in told
