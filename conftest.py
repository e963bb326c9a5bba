"""What tests of every kind share: one ZooKeeper for the whole session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.provision import or_skip
from compat_tests.servers import Zookeeper

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zookeeper]:
    """A real ZooKeeper, running; a test keeps to a chroot of its own and leaves the server alone."""
    server = Zookeeper(tmp_path_factory.mktemp("zookeeper"))
    try:
        with or_skip():
            server.start()
        yield server
    finally:
        server.close()
