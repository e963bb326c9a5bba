"""Clusters of three brokers that belong to the test alone: it may do with them what it likes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.brokers import Cluster, opened
from compat_tests.cluster.namespace import Namespace
from compat_tests.cluster.places import Loopback
from compat_tests.cluster.relays import Relays
from compat_tests.provision import Unavailable, or_skip
from compat_tests.servers import Zookeeper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def clustered(against: str) -> str:
    if against == "kafka-4.3.1":
        pytest.skip("Apache Kafka 4 knows no ZooKeeper")
    return against


@pytest.fixture
def cluster(clustered: str, zookeeper: Zookeeper, tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers on the session's ZooKeeper."""
    with opened(Cluster(clustered, zookeeper, Loopback(zookeeper), tmp_path)) as made:
        yield made


@pytest.fixture
def cuttable(clustered: str, zookeeper: Zookeeper, tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers of which any can be cut off from the others, from clients and from ZooKeeper."""
    land = Relays(zookeeper)
    try:
        with opened(Cluster(clustered, zookeeper, land, tmp_path)) as made:
            yield made
    finally:
        land.close()


@pytest.fixture
def own_zookeeper(tmp_path: Path) -> Iterator[Zookeeper]:
    """A ZooKeeper that the test may stop."""
    server = Zookeeper(tmp_path / "zookeeper")
    try:
        with or_skip():
            server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def cluster_with_zookeeper(clustered: str, own_zookeeper: Zookeeper, tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers on a ZooKeeper of their own, `cluster.zookeeper`, which the test may stop."""
    with opened(Cluster(clustered, own_zookeeper, Loopback(own_zookeeper), tmp_path)) as made:
        yield made


@pytest.fixture
def cuttable_with_zookeeper(clustered: str, own_zookeeper: Zookeeper, tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers of which any can be cut off, on a ZooKeeper that the test may stop."""
    land = Relays(own_zookeeper)
    try:
        with opened(Cluster(clustered, own_zookeeper, land, tmp_path)) as made:
            yield made
    finally:
        land.close()


@pytest.fixture
def parted(clustered: str, tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers, the third behind a cable in a network namespace; behind relays where none can be made."""
    keeper = Zookeeper(tmp_path / "zookeeper", {"clientPortAddress": "0.0.0.0"})
    try:
        with or_skip():
            keeper.start()
        land = _land_with_a_cable(keeper)
        try:
            with opened(Cluster(clustered, keeper, land, tmp_path)) as made:
                yield made
        finally:
            land.close()
    finally:
        keeper.close()


def _land_with_a_cable(keeper: Zookeeper) -> Namespace | Relays:
    try:
        return Namespace(keeper)
    except Unavailable as reason:
        warnings.warn(f"relays instead of a network namespace: {reason}", stacklevel=2)
        return Relays(keeper)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A failure shows the last words of each broker."""
    report = yield
    if report.failed:
        for found in getattr(item, "funcargs", {}).values():
            if isinstance(found, Cluster):
                report.sections.append(("brokers", found.tails()))
    return report
