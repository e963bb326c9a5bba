"""Fixtures of the client tests: a shared broker, brokers a test may kill, and fresh topics.

`--against kafka-4.3.1` runs the same tests against Apache Kafka, which is how each was proven.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import TYPE_CHECKING, Protocol

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from compat_tests import servers
from compat_tests.provision import or_skip
from compat_tests.report import collector
from compat_tests.servers import Server, wait_until
from compat_tests.wire import served_by

if TYPE_CHECKING:
    from collections.abc import Iterator


class MakeTopic(Protocol):
    def __call__(self, partitions: int = 1, **configs: object) -> str: ...


class MakeBroker(Protocol):
    def __call__(self, port: int = 0, **properties: object) -> Server: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    with contextlib.suppress(ValueError):  # the Spark tests offer it too, whichever directory comes first
        parser.addoption(
            "--against",
            default="ours",
            choices=("ours", "kafka-4.3.1", "kafka-3.9.1"),
            help="the broker under the client tests: ours, or Apache Kafka as the reference",
        )
        parser.addoption(
            "--record", action="store_true", help="keep the outcomes of this run for the report of clients"
        )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "feature(name, ...): what of Kafka the test shows, for the table of features"
    )
    config.addinivalue_line("markers", "client(name, version): the client library the test speaks for")
    if config.getoption("--record") and not config.pluginmanager.has_plugin(collector.NAME):
        config.pluginmanager.register(collector.Collector(config.getoption("--against")), collector.NAME)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    collector.check(items)


def properties_of(named: dict[str, object]) -> dict[str, str]:
    """Keyword arguments as Kafka's property names: underscores are dots."""
    return {name.replace("_", "."): str(value) for name, value in named.items()}


def create_topic(bootstrap: str, name: str, partitions: int = 1, **configs: object) -> str:
    """Create a topic and return its name once the leader of every partition serves it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=properties_of(configs))
    patience = 30 + partitions / 10
    admin.create_topics([new], operation_timeout=patience, request_timeout=patience)[name].result(patience)

    def led() -> bool:
        found = admin.list_topics(name, timeout=10).topics[name]
        if found.error is not None or len(found.partitions) < partitions:
            return False
        places = {TopicPartition(name, partition): OffsetSpec.latest() for partition in found.partitions}
        try:
            return all(future.result(10).offset == 0 for future in admin.list_offsets(places).values())
        except KafkaException:
            return False

    wait_until(led, f"{name} is led in each partition", patience)
    return name


@pytest.fixture(scope="session")
def against(request: pytest.FixtureRequest) -> str:
    return request.config.getoption("--against")


@pytest.fixture(scope="session")
def broker(
    against: str, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Server]:
    """One broker shared by all tests that leave it as they found it."""
    # Nobody waits for a second member: Apache Kafka is started so as well.
    hurry = {"group.initial.rebalance.delay.ms": "0"}
    server = servers.make(against, tmp_path_factory.mktemp("shared"), hurry)
    try:
        with or_skip():
            server.start()
        if card := pytestconfig.pluginmanager.get_plugin(collector.NAME):
            card.met(served_by(server.port))
        yield server
        assert server.alive, f"the shared broker died:\n{server.tail()}"
        server.stop()
    finally:
        server.close()


@pytest.fixture
def own_broker(against: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeBroker]:
    """Makes brokers, started, that belong to the test alone: it may kill and restart them."""
    made: list[Server] = []

    def make(port: int = 0, **properties: object) -> Server:
        directory = tmp_path_factory.mktemp("own")
        made.append(servers.make(against, directory, properties_of(properties), port))
        with or_skip():
            made[-1].start()
        return made[-1]

    yield make
    for server in made:
        server.close()


_numbers = itertools.count(1)


@pytest.fixture
def fresh_name(request: pytest.FixtureRequest) -> str:
    """A topic name nobody used before."""
    return f"{request.node.originalname.removeprefix('test_')}-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def topic(broker: Server, request: pytest.FixtureRequest) -> MakeTopic:
    """Creates a fresh topic on the shared broker: `topic(partitions=2, retention_ms=1000)`."""

    def make(partitions: int = 1, **configs: object) -> str:
        name = f"{request.node.originalname.removeprefix('test_')}-{os.getpid()}-{next(_numbers)}"
        return create_topic(broker.bootstrap, name, partitions, **configs)

    return make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A failure shows the last words of the broker it met."""
    report = yield
    server = getattr(item, "funcargs", {}).get("broker")
    if report.failed and isinstance(server, Server):
        report.sections.append(("broker", server.tail()))
    return report
