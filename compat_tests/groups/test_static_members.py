"""Static members: who comes back in time under the same name finds everything as it was."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from compat_tests.groups.clients import (
    AIOKAFKA,
    CONFLUENT,
    JAVA,
    KAFKA_PYTHON,
    KCAT,
    PLATFORMATIC,
    STATIC,
    STATIC_848,
    proofs,
)
from compat_tests.groups.crew import Feed, everything_arrives
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

    from compat_tests.groups.clients import Client
    from compat_tests.groups.conftest import MakeCrew
    from compat_tests.groups.crew import Crew, Program

FAMILIAR = ("confluent-kafka", "Java kafka-clients")
LEAVING = (KCAT, PLATFORMATIC)
"""kcat drops what it has taken when it is interrupted, and @platformatic/kafka leaves for good when it closes."""
SILENT = (KAFKA_PYTHON, AIOKAFKA)
"""kafka-python is fenced without a word. aiokafka heartbeats without its static name, so nobody can say that it was
replaced: it takes its place back, most of the time."""
PATIENT_MS = 20_000
"""A session longer than any restart here; with KIP-848 the broker's own session applies."""


class Pair:
    """Two static members that share a topic, and a third process ready to take one's place."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.stays = self._start("stays")
        self.guest = self._start("guest")
        self.before = crew.settle(self.stays, self.guest)
        self.again = self._start("guest", hold=True)
        wait_until(lambda: self.again.ready, "the replacement is ready")
        self._shares_before = self._shares()

    def _start(self, name: str, *, hold: bool = False) -> Program:
        return self.crew.start(name, static=True, session_ms=PATIENT_MS, hold=hold)

    def _shares(self) -> list[object]:
        return self.crew.history.of(self.stays.names[0], "assigned", "revoked")

    def replaced(self) -> None:
        """The replacement takes the guest's share, and the other member notices nothing."""
        self.again.go()
        after = self.crew.settle(self.stays, self.again)
        assert after[self.again.names[0]] == self.before[self.guest.names[0]]
        assert self._shares() == self._shares_before, "no rebalance"


def played(client: Client, *more: str, long: bool) -> ParameterSet:
    """A client as a test's parameter; `make test` meets those that everybody knows."""
    marks = [*proofs(client), *[pytest.mark.long] * (long and not client.long)]
    return pytest.param(client, *more, id="-".join([str(client), *more]), marks=marks)


@pytest.mark.feature("groups: static members")
@pytest.mark.parametrize(
    ("client", "end"),
    [
        played(client, end, long=client.library.args[0] not in FAMILIAR)
        for client, end in (
            *((client, "killed") for client in STATIC),
            *((client, "left") for client in STATIC + STATIC_848 if client not in LEAVING),
        )
    ],
)
def test_a_static_member_restarts_without_a_rebalance(crew: MakeCrew, client: Client, end: str) -> None:
    pair = Pair(crew(client))
    feed = Feed(pair.crew.broker.bootstrap, pair.crew.topic)
    feed.send(120)
    pair.guest.kill() if end == "killed" else pair.guest.leave()
    pair.replaced()
    feed.send(120)
    everything_arrives(pair.crew, feed)
    pair.crew.assert_one_owner_at_a_time()


@pytest.mark.feature("errors: fenced")
@pytest.mark.parametrize(
    "client", [played(c, long=c not in (CONFLUENT, JAVA)) for c in STATIC if c not in SILENT]
)
def test_a_static_member_that_wakes_up_replaced_is_fenced(crew: MakeCrew, client: Client) -> None:
    pair = Pair(crew(client))
    pair.guest.freeze()
    pair.replaced()
    pair.guest.thaw()

    def fenced() -> bool:
        """Some raise it, and some only write it into their log."""
        return (
            re.search(r"fenced|same group\.instance\.id", pair.crew.complaints(), re.IGNORECASE) is not None
        )

    wait_until(fenced, "the old member is told that it was fenced")
    pair.crew.settle(pair.stays, pair.again)
