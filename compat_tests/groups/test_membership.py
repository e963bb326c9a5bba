"""Every client in groups of one, three and ten: joining, leaving, killed and silent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from compat_tests.groups import scenarios
from compat_tests.groups.clients import ALL, RELEASES, each, proofs
from compat_tests.groups.conftest import new_crew
from compat_tests.groups.crew import Feed
from compat_tests.groups.positions import all_committed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.groups.clients import Client
    from compat_tests.groups.conftest import MakeCrew
    from compat_tests.servers import Server


AT_ONCE = 3
"""Lives of groups that are told side by side: most of each is waiting for sessions to end."""
SIZES = pytest.mark.parametrize(
    "size", [pytest.param(1, marks=pytest.mark.long), 3, pytest.param(10, marks=pytest.mark.long)]
)


class Lives:
    """The lives of groups that the selected tests ask for, begun together; owns their threads."""

    def __init__(self, broker: Server, directory: Path, wanted: list[tuple[Client, int]]) -> None:
        self._broker, self._directory = broker, directory
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._told = {which: self._pool.submit(self._live, *which) for which in wanted}

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def outcome(self, client: Client, size: int) -> None:
        """Wait for this one; raises what went wrong in it."""
        self._told[client, size].result()

    def _live(self, client: Client, size: int) -> None:
        with new_crew(self._broker, client, f"life-{client}-{size}", self._directory) as crew:
            scenarios.live(crew, size)


@pytest.fixture(scope="module")
def lives(
    broker: Server, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lives]:
    asking = [
        (item.callspec.params["client"], item.callspec.params["size"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and "lives" in item.fixturenames
    ]
    with closing(Lives(broker, tmp_path_factory.mktemp("lives"), asking)) as begun:
        yield begun


@pytest.mark.feature("groups: join, leave, rebalance")
@SIZES
@each(*ALL)
def test_a_group_shares_through_leaving_killing_and_silence(lives: Lives, client: Client, size: int) -> None:
    lives.outcome(client, size)


@pytest.mark.feature("groups: join, leave, rebalance", "commit and fetch offsets")
@each(*ALL, *RELEASES)
def test_ten_members_share_all_partitions_and_leave_notes_at_their_positions(
    crew: MakeCrew, client: Client
) -> None:
    group = crew(client)
    note = "seen, größtenteils ✓" if client.keeps_metadata else ""
    feed = Feed(group.broker.bootstrap, group.topic)
    owners = scenarios.share(group, feed, 10, metadata=note or None)
    positions = all_committed((group, feed))
    assert sorted(map(len, owners.values())) == [1] * 8 + [2] * 2
    # confluent-kafka sends its text with the nought that ends it in C, and Apache Kafka keeps that too.
    assert {position.metadata.rstrip("\0") for position in positions[group.group].values()} == {note}


@pytest.mark.long
@pytest.mark.feature("groups: join, leave, rebalance")
@pytest.mark.parametrize(
    ("client", "assignor"),
    [pytest.param(c, a, id=f"{c}-{a.rpartition('.')[2]}", marks=proofs(c)) for c in ALL for a in c.assignors],
)
def test_every_assignor_of_a_client_shares_all_partitions(
    crew: MakeCrew, client: Client, assignor: str
) -> None:
    group = crew(client)
    owners = scenarios.share(group, Feed(group.broker.bootstrap, group.topic), 3, assignor)
    assert sorted(map(len, owners.values())) == [4, 4, 4]
