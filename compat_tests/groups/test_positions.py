"""Positions that were committed are never lost: the broker may stop, or be killed, under every client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.groups.clients import ALL
from compat_tests.groups.conftest import speaks
from compat_tests.groups.crew import Feed, everything_arrives
from compat_tests.groups.positions import all_committed, committed

if TYPE_CHECKING:
    from compat_tests.groups.conftest import MakeCrew
    from compat_tests.groups.crew import Crew, Program
    from compat_tests.servers import Server

PARTITIONS = 3


class Reader:
    """A group of one member that reads and commits all there is."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.feed = Feed(crew.broker.bootstrap, crew.topic, PARTITIONS)
        self.program: Program = crew.start("before")

    def assert_nothing_committed_came_again(self) -> None:
        """Each record was committed before the next was written, so each was delivered once."""
        often = {place: n for place, n in self.crew.history.times_delivered().items() if n > 1}
        assert not often, f"{self.crew.client} was given committed records again: {often}"


class Readers:
    """One reader for every client that can speak to the broker."""

    def __init__(self, broker: Server, crew: MakeCrew) -> None:
        self._broker = broker
        self._all = [Reader(crew(client, PARTITIONS)) for client in ALL if speaks(broker, client)]

    def read(self) -> None:
        """More records for everybody, read and committed."""
        for reader in self._all:
            reader.feed.send(60)
        for reader in self._all:
            everything_arrives(reader.crew, reader.feed)
        self._positions = all_committed(*((reader.crew, reader.feed) for reader in self._all))

    def restart(self, end: str) -> None:
        """The broker goes down and comes back with every position it was given."""
        self._broker.stop() if end == "stopped" else self._broker.kill()
        self._broker.start()
        assert committed(self._broker.bootstrap, *self._positions) == self._positions

    def leave(self) -> None:
        for reader in self._all:
            reader.program.leave()

    def come_back(self) -> None:
        for reader in self._all:
            reader.program = reader.crew.start("after")

    def assert_nothing_committed_came_again(self) -> None:
        for reader in self._all:
            reader.assert_nothing_committed_came_again()


@pytest.mark.feature("groups: committed positions")
@pytest.mark.parametrize(
    ("under_members", "without_members"),
    [("stopped", "killed"), pytest.param("killed", "stopped", marks=pytest.mark.long)],
)
def test_positions_of_all_clients_outlive_the_broker(
    broker: Server, crew: MakeCrew, under_members: str, without_members: str
) -> None:
    readers = Readers(broker, crew)
    readers.read()
    readers.restart(under_members)
    readers.read()
    readers.leave()
    readers.restart(without_members)
    readers.come_back()
    readers.read()
    readers.leave()
    readers.assert_nothing_committed_came_again()
