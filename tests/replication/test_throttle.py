"""Moves of partitions take no more than they may, and nobody waits for them who need not."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from pykafka_broker.clock import ManualClock
from pykafka_broker.cluster.view import ClusterView, TopicInfo
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.throttle import FOLLOWED_REPLICAS, LED_REPLICAS, Throttle, Throttles
from tests.log.samples import batch
from tests.replication.mini_cluster import TOPIC, eventually, mini_cluster

if TYPE_CHECKING:
    from pathlib import Path

FOREVER = 2**63 - 1


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def throttle(clock: ManualClock) -> Throttle:
    """A hundred kilobytes a second for every partition of the topic."""
    made = Throttle(clock)
    made.limit = 100_000
    made.cover(TOPIC, None)
    return made


# The rate


def test_a_burst_is_paid_for_by_waiting(clock: ManualClock, throttle: Throttle) -> None:
    assert not throttle.is_exceeded
    throttle.record(500_000)
    waited = 0
    while throttle.is_exceeded:
        clock.advance(100)
        waited += 100
    assert waited == 5000


def test_what_is_long_ago_is_forgotten(clock: ManualClock, throttle: Throttle) -> None:
    throttle.record(10_000_000)
    clock.advance(10_900)
    assert throttle.is_exceeded
    clock.advance(100)
    assert not throttle.is_exceeded


def test_a_steady_rate_within_the_limit_is_never_held_back(clock: ManualClock, throttle: Throttle) -> None:
    for _ in range(100):
        throttle.record(20_000)
        assert not throttle.is_exceeded
        clock.advance(300)
    throttle.limit = 50_000
    assert throttle.is_exceeded


# Configs


def view(config: dict[str, str], brokers: dict[int | None, dict[str, str]]) -> ClusterView:
    topic = TopicInfo("t", UUID(int=1), (), config)
    return ClusterView("", broker_configs=brokers).with_topics([topic])


def test_a_broker_covers_the_replicas_that_are_its_own(clock: ManualClock) -> None:
    throttles = Throttles(2, clock, 11, 1)
    first = view({LED_REPLICAS: "0:1,1:2,7:2", FOLLOWED_REPLICAS: "*"}, {})
    throttles.follow(ClusterView(""), first)
    assert [throttles.leading.covers("t", n) for n in (0, 1, 7)] == [False, True, True]
    assert [throttles.following.covers("t", n) for n in (0, 1, 7)] == [True, True, True]
    assert not throttles.following.covers("u", 0)
    second = view({FOLLOWED_REPLICAS: ""}, {})
    throttles.follow(first, second)
    assert not throttles.leading.is_on
    assert not throttles.following.is_on
    throttles.follow(second, first)
    throttles.follow(first, ClusterView(""))
    assert not throttles.leading.is_on
    assert not throttles.following.is_on


def test_a_broker_s_own_limit_goes_before_that_of_all(clock: ManualClock) -> None:
    throttles = Throttles(2, clock, 11, 1)
    leader, follower = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
    throttles.follow(ClusterView(""), view({}, {}))
    assert throttles.leading.limit == throttles.following.limit == FOREVER
    throttles.follow(ClusterView(""), view({}, {None: {leader: "5", follower: "6"}, 2: {leader: "7"}}))
    assert (throttles.leading.limit, throttles.following.limit) == (7, 6)
    throttles.follow(ClusterView(""), view({}, {None: {}, 1: {leader: "7"}}))
    assert throttles.leading.limit == FOREVER


# Moving


@pytest.mark.parametrize("side", ["leading", "following"])
async def test_a_replica_that_catches_up_takes_its_time(
    tmp_path: Path, clock: ManualClock, throttle: Throttle, side: str
) -> None:
    async with mini_cluster(tmp_path, brokers=2, wait_max_ms=20, **{side: throttle}) as cluster:
        follower = cluster.nodes[2]
        cluster.cut_off(follower)
        cluster.shrink((1,))
        for _ in range(30):
            await cluster.leader.produce(batch(1, size=200_000))
        cluster.come_back(follower)
        stops = []
        while follower.end < 30:
            await eventually(lambda: throttle.is_exceeded or follower.end == 30)
            stops.append(follower.end)
            clock.advance(12_000)
        assert len(stops) >= 6, "no more than a fetch of a megabyte at a time"
        assert follower.batches == cluster.leader.batches
        await eventually(lambda: cluster.isr == (1, 2))


@pytest.mark.parametrize("side", ["leading", "following"])
async def test_replicas_in_sync_are_not_held_back(tmp_path: Path, throttle: Throttle, side: str) -> None:
    async with mini_cluster(tmp_path, brokers=2, **{side: throttle}) as cluster:
        for _ in range(5):
            answer = await cluster.leader.produce(batch(1, size=200_000))
            assert answer.error_code == ErrorCode.NONE
        assert throttle.is_exceeded
        assert cluster.leader.high_watermark == 5
