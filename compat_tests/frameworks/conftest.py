"""Frameworks at work on the shared broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from compat_tests.conftest import create_topic
from compat_tests.frameworks.connect import Connect
from compat_tests.frameworks.streams import Application

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.servers import Server


class MakeApplication(Protocol):
    def __call__(
        self, version: str, topology: str, *, inputs: int = 1, partitions: int = 2, on: Server | None = None
    ) -> Application: ...


@pytest.fixture
def application(broker: Server, fresh_name: str, tmp_path: Path) -> Iterator[MakeApplication]:
    """Makes applications of Kafka Streams, with fresh topics, on the shared broker or on another."""
    made: list[Application] = []

    def make(
        version: str, topology: str, *, inputs: int = 1, partitions: int = 2, on: Server | None = None
    ) -> Application:
        server, name = on or broker, f"{fresh_name}-{len(made)}"
        topics = [create_topic(server.bootstrap, f"{name}-in-{n}", partitions) for n in range(inputs)]
        output = create_topic(server.bootstrap, f"{name}-out")
        made.append(Application(version, server, name, topology, topics, output, tmp_path / name))
        return made[-1]

    yield make
    for one in made:
        one.close()


class MakeConnect(Protocol):
    def __call__(self, version: str) -> Connect: ...


@pytest.fixture
def connect(broker: Server, fresh_name: str, tmp_path: Path) -> Iterator[MakeConnect]:
    """Makes workers of Kafka Connect that belong together."""
    made: list[Connect] = []

    def make(version: str) -> Connect:
        name = f"{fresh_name}-connect-{len(made)}"
        made.append(Connect(version, broker, name, tmp_path / name))
        return made[-1]

    yield make
    for one in made:
        one.close()
