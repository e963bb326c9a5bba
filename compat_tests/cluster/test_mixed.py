"""Brokers of ours and of Apache Kafka 3.9.1 in one cluster: each follows, leads and coordinates for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.brokers import Cluster, opened
from compat_tests.cluster.ordeal import Ordeal
from compat_tests.cluster.places import Loopback
from compat_tests.cluster.test_faults import wait_until_replaced
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.cluster.places import Place
    from compat_tests.servers import Server, Zookeeper

pytestmark = pytest.mark.long
THEIRS = 3


class MixedCluster(Cluster):
    """Brokers 1 and 2 are ours, 3 is Apache Kafka's."""

    def _make(self, number: int, place: Place) -> Server:
        self.kind = "kafka-3.9.1" if number == THEIRS else "ours"
        return super()._make(number, place)


@pytest.fixture
def mixed(against: str, zookeeper: Zookeeper, tmp_path: Path) -> Iterator[Cluster]:
    if against != "ours":
        pytest.skip("there is nothing of ours in it")
    with opened(MixedCluster("ours", zookeeper, Loopback(zookeeper), tmp_path)) as made:
        yield made


def test_each_takes_over_from_each(mixed: Cluster) -> None:
    """By the end each of them was killed once, the controller among them, and led what the others wrote."""
    with Ordeal(mixed) as ordeal:
        for victim in (THEIRS, 1, 2):
            mixed.kill(victim)
            wait_until_replaced(mixed, ordeal.topic, victim)
            ordeal.carries_on()
            mixed.start(victim)
            wait_until(mixed.in_sync, "all replicas are in sync again", 60)


def test_apache_kafka_is_the_controller_of_ours(mixed: Cluster) -> None:
    for number in (1, 2):
        mixed.stop(number)
    wait_until(lambda: mixed.controller() == THEIRS, "Apache Kafka is the controller", 60)
    for number in (1, 2):
        mixed.start(number)
    wait_until(lambda: mixed.registered() == {1, 2, THEIRS}, "all are back")
    with Ordeal(mixed) as ordeal:
        mixed.kill(1)
        wait_until_replaced(mixed, ordeal.topic, 1)
        ordeal.carries_on()
        mixed.start(1)
    assert mixed.controller() == THEIRS
