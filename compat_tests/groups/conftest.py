"""A broker whose groups live fast, shared by the tests of groups, and crews to put on it."""

from __future__ import annotations

import itertools
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import pytest

from compat_tests import servers
from compat_tests.conftest import create_topic
from compat_tests.groups.clients import CONSUMER
from compat_tests.groups.crew import PARTITIONS, Crew
from compat_tests.provision import or_skip
from compat_tests.servers import ApacheKafka
from compat_tests.wire import served_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.groups.clients import Client
    from compat_tests.servers import Server

FAST_GROUPS = {
    "offsets.topic.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}
CONSUMER_GROUP_HEARTBEAT = 68


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: a variation that `make compat` runs and `make test` leaves out")


class MakeCrew(Protocol):
    def __call__(self, client: Client, partitions: int = PARTITIONS) -> Crew: ...


def speaks(broker: Server, client: Client) -> bool:
    """Whether the broker serves the client, and its group protocol.

    On ZooKeeper Apache Kafka 3.9.1 advertises the new protocol, and answers that it is not supported.
    """
    if client.ancient and isinstance(broker, ApacheKafka) and broker.kraft:
        return False
    if client.protocol != CONSUMER:
        return True
    if isinstance(broker, ApacheKafka) and not broker.kraft:
        return False
    able = CONSUMER_GROUP_HEARTBEAT in served_by(broker.port)
    assert able or isinstance(broker, ApacheKafka), "ours serves both protocols"
    return able


@pytest.fixture(scope="session")
def broker(against: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One broker for all tests of groups; it may be restarted, and keeps its port."""
    server = servers.make(against, tmp_path_factory.mktemp("groups"), FAST_GROUPS)
    try:
        with or_skip():
            server.start()
        yield server
        assert server.alive, f"the shared broker died:\n{server.tail()}"
        server.stop()
    finally:
        server.close()


_numbers = itertools.count(1)


def new_crew(
    broker: Server, client: Client, story: str, directory: Path, partitions: int = PARTITIONS
) -> Crew:
    """A crew with a topic and a group of its own, named after the story."""
    if not speaks(broker, client):
        old = "Apache Kafka 4 does not speak to clients this old"
        pytest.skip(old if client.ancient else "Apache Kafka 3.9.1 does not serve the protocol of KIP-848")
    name = f"{story}-{os.getpid()}-{next(_numbers)}"
    topic = create_topic(broker.bootstrap, name, partitions)
    return Crew(client, broker, topic, f"group-{name}", directory)


@pytest.fixture
def crew(broker: Server, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeCrew]:
    """Makes crews, each with a topic and a group of its own; all are gone after the test."""
    with ExitStack() as crews:

        def make(client: Client, partitions: int = PARTITIONS) -> Crew:
            story = request.node.originalname.removeprefix("test_")[:60]
            return crews.enter_context(new_crew(broker, client, story, tmp_path, partitions))

        yield make
