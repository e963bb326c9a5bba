"""Fixtures of the Spark tests: one session, one broker, and connectors whose queries end with the test.

`--against kafka-4.3.1` runs the same tests against Apache Kafka, which is how each was proven.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests import servers
from compat_tests.conftest import (
    against,
    fresh_name,
    own_broker,
    pytest_addoption,
    pytest_configure,
    pytest_runtest_makereport,
    topic,
)
from compat_tests.provision import or_skip
from spark_tests.connector import Connector
from spark_tests.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Protocol

    from pyspark.sql import SparkSession

    from compat_tests.conftest import MakeBroker
    from compat_tests.servers import Server

    class Connect(Protocol):
        def __call__(self, broker: Server) -> Connector: ...


__all__ = [
    "against",
    "fresh_name",
    "own_broker",
    "pytest_addoption",
    "pytest_configure",
    "pytest_runtest_makereport",
    "topic",
]

SETTINGS = {
    # Retention is looked at several times a second, and applies only to topics that ask for it.
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.retention.ms": "-1",
    # No second member will come: waiting for one is not what these tests are about.
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark of this directory: starting it costs more than all its tests."""
    with or_skip():
        session = open_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(against: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The one broker of this directory."""
    server = servers.make(against, tmp_path_factory.mktemp("broker"), SETTINGS)
    try:
        with or_skip():
            server.start()
        yield server
        assert server.alive, f"the shared broker died:\n{server.tail()}"
        server.stop()
    finally:
        server.close()


@pytest.fixture
def connect(spark: SparkSession, own_broker: MakeBroker) -> Iterator[Connect]:
    """Connects Spark to a broker of the test's choice; queries end before the test's own brokers do."""
    made: list[Connector] = []

    def to(broker: Server) -> Connector:
        made.append(Connector(spark, broker.bootstrap))
        return made[-1]

    yield to
    for connector in made:
        connector.close()


@pytest.fixture
def kafka(connect: Connect, broker: Server) -> Connector:
    """Spark connected to the shared broker."""
    return connect(broker)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"
