"""Static members of consumer groups: those who come back are known by their instance ids."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.protocol.errors import ErrorCode

from .consumers import Consumer, described, settle
from .harness import Harness

NO_DELAY = GroupSettings(group_consumer_assignment_interval_ms=0)


@pytest.mark.parametrize("comes_back_as", ["a", "a2"])
def test_a_static_member_that_comes_back_in_time_gets_what_it_had_and_nobody_else_notices(
    comes_back_as: str,
) -> None:
    h = Harness(NO_DELAY)
    a, b = Consumer(h, "a", instance="i"), Consumer(h, "b")
    settle(h, a, b)
    had, epoch = set(a.owned), b.epoch
    response = a.leave(-2)
    assert (response.error_code, response.member_epoch) == (ErrorCode.NONE, -2)
    h.pass_time(20_000)
    b.beat()
    back = Consumer(h, comes_back_as, instance="i")
    back.beat()
    assert back.owned == had
    b.beat()
    assert b.epoch == epoch
    assert back.epoch == epoch
    assert described(h).group_state == "Stable"


def test_a_static_member_that_does_not_come_back_is_given_up() -> None:
    h = Harness(NO_DELAY)
    a, b = Consumer(h, "a", instance="i"), Consumer(h, "b")
    settle(h, a, b)
    a.leave(-2)
    for _ in range(10):
        h.pass_time(5_000)
        b.beat()
    settle(h, b)
    assert len(b.owned) == 3
