"""Brokers restarted one after the other under load: clients with default retries notice nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.clients import whole_log
from compat_tests.cluster.history import violations
from compat_tests.cluster.java_producer import JavaProducer
from compat_tests.cluster.ordeal import Ordeal, assert_replicas_identical
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.cluster.brokers import Cluster


def restarted_in_turn(cluster: Cluster) -> Iterator[int]:
    """Each broker in turn, when it was stopped, is started and its replicas are in sync again."""
    for number in cluster.brokers:
        cluster.stop(number)
        cluster.start(number)
        wait_until(cluster.in_sync, f"broker {number} is in sync again", 60)
        yield number


def test_a_rolling_restart_shows_no_error_to_clients(cluster: Cluster) -> None:
    with Ordeal(cluster, idempotent=False, defaults=True) as ordeal:
        for _ in restarted_in_turn(cluster):
            ordeal.carries_on()
    assert [error for member in ordeal.group for error in member.errors] == []


@pytest.mark.long
def test_a_rolling_restart_shows_no_error_to_java(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topic("java")
    with JavaProducer(cluster.bootstrap, "java", tmp_path) as producer:
        producer.goes_on()
        for _ in restarted_in_turn(cluster):
            producer.goes_on()
    assert producer.errors() == []
    assert violations(producer.history(), whole_log(cluster.bootstrap, "java", 3)) == []
    assert_replicas_identical(cluster)
