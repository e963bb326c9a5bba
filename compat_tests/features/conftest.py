"""Each library as one process for all the scenarios it plays on the shared broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests import servers
from compat_tests.features.peer import Peer
from compat_tests.provision import or_skip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.features.libraries import Library
    from compat_tests.servers import Server


@pytest.fixture(scope="session")
def library(request: pytest.FixtureRequest, against: str) -> Library:
    if request.param.ancient and against == "kafka-4.3.1":
        pytest.skip("Apache Kafka 4 does not speak to clients this old")
    return request.param


@pytest.fixture(scope="session")
def peer(library: Library, broker: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """The library at work on the shared broker."""
    with Peer(library, broker.bootstrap, tmp_path_factory.mktemp("peer") / f"{library}.err") as at_work:
        yield at_work


@pytest.fixture(scope="session")
def mortal_broker(against: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker that tests may stop and start again; it keeps its port."""
    hurry = {"group.initial.rebalance.delay.ms": "0"}
    server = servers.make(against, tmp_path_factory.mktemp("mortal"), hurry)
    try:
        with or_skip():
            server.start()
        yield server
    finally:
        server.close()
