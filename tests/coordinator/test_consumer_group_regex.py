"""Consumer groups whose members subscribe by regular expressions, which the broker resolves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykafka_broker.coordinator.settings import GroupSettings

from .consumers import Consumer, described, group_of, settle
from .harness import Harness, KnownTopics

if TYPE_CHECKING:
    from collections.abc import Callable

NO_DELAY = GroupSettings(group_consumer_assignment_interval_ms=0)


def test_topics_are_found_by_a_regular_expression_and_new_ones_too() -> None:
    h = Harness(NO_DELAY, KnownTopics({"orders-eu": 1, "orders-us": 1, "other": 1}))
    a = Consumer(h, "a", None, regex="orders-.*")
    settle(h, a)
    assert {topic for topic, _ in a.owned} == {"orders-eu", "orders-us"}
    h.topics.counts["orders-jp"] = 1
    h.shard.topics_changed()
    for _ in range(4):
        h.pass_time(5_000)
        a.beat()
    settle(h, a)
    assert {topic for topic, _ in a.owned} == {"orders-eu", "orders-us", "orders-jp"}
    assert described(h).members[0].subscribed_topic_regex == "orders-.*"


def test_names_and_a_regular_expression_go_together() -> None:
    h = Harness(NO_DELAY, KnownTopics({"a1": 1, "a2": 1, "b": 1}))
    a = Consumer(h, "a", ["b"], regex="a.")
    settle(h, a)
    assert {topic for topic, _ in a.owned} == {"a1", "a2", "b"}


def test_an_expression_nobody_uses_any_more_is_forgotten() -> None:
    h = Harness(NO_DELAY)
    a, b = Consumer(h, "a", None, regex="t"), Consumer(h, "b", None, regex="t")
    settle(h, a, b)
    a.leave()
    settle(h, b)
    assert b.owned == {("t", 0), ("t", 1), ("t", 2)}
    b.leave()
    assert group_of(h).resolved == {}


def test_many_topics_are_matched_in_slices_with_time_for_others_between() -> None:
    h = Harness(NO_DELAY, KnownTopics({f"t{n}": 1 for n in range(2_500)}))
    a = Consumer(h, "a", None, regex="t.*77")
    a.beat()
    ticks = 0
    while h.shard.next_deadline() == h.now_ms:
        for decide in h.shard.due(h.now_ms):
            h.apply(decide())
        ticks += 1
    assert ticks == 3
    settle(h, a)
    assert len(a.owned) == 25


@pytest.mark.parametrize("change", [lambda a: a.leave(), lambda a: a.h.pass_time(60_000)])
def test_a_group_that_empties_while_its_expression_is_matched_is_no_trouble(
    change: Callable[[Consumer], None],
) -> None:
    h = Harness(NO_DELAY)
    a = Consumer(h, "a", None, regex="t")
    a.beat()
    change(a)
    h.pass_time(60_000)
    assert described(h).group_state == "Empty"
