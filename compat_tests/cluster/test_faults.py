"""One fault at a time: no acknowledged record is lost or out of order, replicas stay identical, groups go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.namespace import FAR
from compat_tests.cluster.ordeal import Ordeal
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from compat_tests.cluster.brokers import Cluster

ROLES = ["controller", pytest.param("other", marks=pytest.mark.long)]
"""Each broker leads a partition; one of them is the controller too."""


def other_than(cluster: Cluster, *numbers: int | None) -> int:
    return next(number for number in cluster.brokers if number not in numbers)


def wait_until_replaced(cluster: Cluster, topic: str, *gone: int) -> None:
    """Return once none of them leads a partition of the topic or the cluster."""
    wait_until(
        lambda: (
            cluster.controller() not in (None, *gone)
            and all(cluster.leader(topic, p) not in (-1, None, *gone) for p in range(3))
        ),
        f"others take over from {gone}",
    )


def test_a_leader_is_killed(cluster: Cluster) -> None:
    with Ordeal(cluster) as ordeal:
        victim = other_than(cluster, cluster.controller())
        cluster.kill(victim)
        wait_until_replaced(cluster, ordeal.topic, victim)
        ordeal.carries_on()
        cluster.start(victim)


def test_the_controller_is_killed(cluster: Cluster) -> None:
    with Ordeal(cluster) as ordeal:
        victim = cluster.controller()
        cluster.kill(victim)
        wait_until_replaced(cluster, ordeal.topic, victim)
        ordeal.carries_on()
        cluster.start(victim)


def test_a_leader_and_the_controller_are_killed_at_once(cluster: Cluster) -> None:
    """One of three is left: it may lead, but takes no acks=all until a second is back."""
    with Ordeal(cluster) as ordeal:
        controller = cluster.controller()
        leader = other_than(cluster, controller)
        cluster.kill(controller, leader)
        wait_until_replaced(cluster, ordeal.topic, controller, leader)
        cluster.start(leader)
        ordeal.carries_on()
        cluster.start(controller)


def test_a_follower_is_killed(cluster: Cluster) -> None:
    """A broker that never led the topic, and is not preferred: no balancing of leaders makes it lead."""
    follower = other_than(cluster, cluster.controller())
    leaders = [number for number in cluster.brokers if number != follower]
    with Ordeal(cluster, leaders=leaders) as ordeal:
        assert {cluster.leader(ordeal.topic, p) for p in range(3)} == set(leaders)
        cluster.kill(follower)
        ordeal.carries_on()
        cluster.start(follower)


def test_zookeeper_is_stopped_and_started(cluster_with_zookeeper: Cluster) -> None:
    """While it is away nothing can be decided, and nothing needs to be: the load goes on."""
    cluster = cluster_with_zookeeper
    with Ordeal(cluster) as ordeal:
        cluster.zookeeper.stop()
        ordeal.carries_on(1500)
        cluster.zookeeper.start()
        wait_until(lambda: cluster.registered() == {1, 2, 3}, "all brokers are registered again")
        ordeal.carries_on()
        victim = cluster.controller()
        cluster.kill(victim)
        wait_until_replaced(cluster, ordeal.topic, victim)
        ordeal.carries_on()
        cluster.start(victim)


@pytest.mark.parametrize("role", ROLES)
def test_a_session_expires(cluster: Cluster, role: str) -> None:
    with Ordeal(cluster) as ordeal:
        controller = cluster.controller()
        victim = controller if role == "controller" else other_than(cluster, controller)
        before = cluster.epoch(victim)
        cluster.expire(victim)
        wait_until(lambda: cluster.epoch(victim) not in (-1, before), "the broker registers anew")
        ordeal.carries_on()
        wait_until(lambda: cluster.controller() is not None, "somebody controls")


@pytest.mark.parametrize("role", ROLES)
def test_a_paused_broker_wakes_as_a_zombie(cluster: Cluster, role: str) -> None:
    """It was leader, and in one case controller, when it fell asleep, and believes it still is."""
    with Ordeal(cluster) as ordeal:
        controller = cluster.controller()
        victim = controller if role == "controller" else other_than(cluster, controller)
        cluster.pause(victim)
        wait_until_replaced(cluster, ordeal.topic, victim)
        ordeal.carries_on()
        cluster.wake(victim)
        wait_until(lambda: victim in cluster.registered(), "the zombie is a broker again")


@pytest.mark.parametrize("role", ROLES)
def test_a_broker_is_cut_off(cuttable: Cluster, role: str) -> None:
    """From the others, from clients and from ZooKeeper; it does not know that it no longer leads."""
    cluster = cuttable
    with Ordeal(cluster) as ordeal:
        controller = cluster.controller()
        victim = controller if role == "controller" else other_than(cluster, controller)
        cluster.land.cut(victim)
        wait_until_replaced(cluster, ordeal.topic, victim)
        ordeal.carries_on()
        cluster.land.mend(victim)
        wait_until(lambda: victim in cluster.registered(), "the broker is back")


@pytest.mark.long
def test_the_cable_of_a_broker_is_pulled(parted: Cluster) -> None:
    """A network namespace: the kernel itself drops what is sent, and retransmits when the cable is back."""
    with Ordeal(parted) as ordeal:
        parted.land.cut(FAR)
        wait_until_replaced(parted, ordeal.topic, FAR)
        ordeal.carries_on()
        parted.land.mend(FAR)
        wait_until(lambda: FAR in parted.registered(), "the broker is back")
