"""Consumer groups: joining, sharing, leaving, being given up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pykafka_broker.coordinator.consumer_group_gathering import LONGEST_MS, QUIET_MS
from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.protocol.errors import ErrorCode

from .consumers import (
    HEARTBEAT_MS,
    REBALANCE_MS,
    SESSION_MS,
    Consumer,
    described,
    group_of,
    image,
    partitions_by_name,
    settle,
)
from .harness import Harness, KnownTopics

ALL_OF_T = {("t", 0), ("t", 1), ("t", 2)}
NO_DELAY = GroupSettings(group_consumer_assignment_interval_ms=0)


def harness(**topics: int) -> Harness:
    return Harness(NO_DELAY, KnownTopics(topics) if topics else None)


def test_the_first_member_gets_everything_with_its_first_heartbeat() -> None:
    h = harness()
    a = Consumer(h, "a")
    response = a.beat()
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert a.owned == ALL_OF_T
    assert described(h).group_state == "Stable"


def test_a_heartbeat_without_news_is_answered_without_an_assignment_and_writes_nothing() -> None:
    h = harness()
    a = Consumer(h, "a")
    a.beat()
    a.beat()
    written = len(h.log)
    assert a.beat().assignment is None
    assert len(h.log) == written


def test_a_full_heartbeat_is_answered_with_the_assignment() -> None:
    h = harness()
    a = Consumer(h, "a")
    a.beat()
    request = a.request()
    request.rebalance_timeout_ms, request.subscribed_topic_names = REBALANCE_MS, ["t"]
    assert partitions_by_name(h, h.call(request, 1).assignment.topic_partitions) == ALL_OF_T


def test_a_second_member_waits_until_the_first_has_given_back() -> None:
    h = harness()
    a, b = Consumer(h, "a"), Consumer(h, "b")
    a.beat()
    a.beat()
    assert b.beat().assignment.topic_partitions == []
    assert described(h).group_state == "Reconciling"
    a.beat(digest=False)
    assert a.told is not None
    assert len(a.told) == 2
    assert b.beat().assignment is None, "a has not said that it gave anything back"
    a.digest()
    a.beat()
    b.beat()
    assert (len(a.owned), len(b.owned)) == (2, 1)
    assert a.owned | b.owned == ALL_OF_T
    assert a.epoch == b.epoch == 3
    assert described(h).group_state == "Stable"


def test_members_share_evenly_and_hold_everything_once() -> None:
    h = harness(t=10, u=7)
    members = [Consumer(h, f"m{n}", ("t", "u")) for n in range(5)]
    settle(h, *members)
    assert sorted(p for m in members for p in m.owned) == sorted(
        [("t", p) for p in range(10)] + [("u", p) for p in range(7)]
    )
    assert {len(m.owned) for m in members} <= {3, 4}


def test_what_a_leaving_member_had_goes_to_those_who_stay() -> None:
    h = harness()
    a, b = Consumer(h, "a"), Consumer(h, "b")
    settle(h, a, b)
    response = a.leave()
    assert (response.member_id, response.member_epoch) == ("a", -1)
    settle(h, b)
    assert b.owned == ALL_OF_T


def test_the_last_to_leave_leaves_an_empty_group() -> None:
    h = harness()
    a = Consumer(h, "a")
    a.beat()
    a.leave()
    assert described(h).group_state == "Empty"
    assert described(h).members == []


def test_a_silent_member_is_given_up_after_its_session() -> None:
    h = harness()
    a, b = Consumer(h, "a"), Consumer(h, "b")
    settle(h, a, b)
    for _ in range(SESSION_MS // HEARTBEAT_MS + 1):
        h.pass_time(HEARTBEAT_MS)
        b.beat()
    settle(h, b)
    assert b.owned == ALL_OF_T
    assert a.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_that_fall_silent_together_are_given_up_together() -> None:
    h = harness()
    settle(h, Consumer(h, "a"), Consumer(h, "b"), Consumer(h, "c"))
    h.pass_time(SESSION_MS)
    assert described(h).members == []


def test_a_member_that_does_not_give_back_in_time_is_given_up() -> None:
    h = harness()
    a, b = Consumer(h, "a"), Consumer(h, "b")
    a.beat()
    a.beat()
    b.beat()
    a.beat(digest=False)
    for _ in range(REBALANCE_MS // HEARTBEAT_MS):
        h.pass_time(HEARTBEAT_MS)
        b.beat()
        a.beat(digest=False)
    assert a.epoch == 0
    settle(h, b)
    assert b.owned == ALL_OF_T


def test_growing_topics_are_noticed_with_the_next_heartbeat() -> None:
    h = harness()
    a = Consumer(h, "a")
    settle(h, a)
    h.topics.counts["t"] = 5
    h.shard.topics_changed()
    settle(h, a)
    assert a.owned == {("t", p) for p in range(5)}


def test_a_topic_that_does_not_exist_yet_is_read_as_soon_as_it_does() -> None:
    h = harness(u=1)
    a = Consumer(h, "a", ("t",))
    settle(h, a)
    assert a.owned == set()
    h.topics.counts["t"] = 1
    h.shard.topics_changed()
    settle(h, a)
    assert a.owned == {("t", 0)}


def test_a_deleted_topic_is_taken_back() -> None:
    h = harness(t=1, u=1)
    a = Consumer(h, "a", ("t", "u"))
    settle(h, a)
    del h.topics.counts["u"]
    h.shard.topics_changed()
    settle(h, a)
    assert a.owned == {("t", 0)}


def test_a_member_that_wants_something_else_gets_that_instead() -> None:
    h = harness(t=2, u=3)
    a = Consumer(h, "a", ("t",))
    settle(h, a)
    a.subscribe(["u"])
    settle(h, a)
    assert a.owned == {("u", p) for p in range(3)}


def test_members_that_come_together_get_their_shares_of_one_target() -> None:
    h = harness(t=6)
    first, *others = [Consumer(h, f"m{n}") for n in range(3)]
    tokens = [first.ask()]
    h.pass_time(QUIET_MS - 1)
    tokens += [member.ask() for member in others]
    h.pass_time(1)
    assert all(h.waits(token) for token in tokens), "somebody has just come"
    h.pass_time(1)
    for member, token in zip([first, *others], tokens, strict=True):
        member.hear(h.replies[token])
    assert [len(member.owned) for member in (first, *others)] == [2, 2, 2]
    assert {member.epoch for member in (first, *others)} == {4}
    assert described(h).group_state == "Stable"


def test_nobody_waits_long_for_those_who_keep_coming() -> None:
    h = harness(t=100)
    tokens = []
    for n in range(LONGEST_MS):
        tokens.append(Consumer(h, f"m{n}").ask())
        assert all(h.waits(token) for token in tokens)
        h.pass_time(1)
    assert not any(h.waits(token) for token in tokens)


def test_a_member_that_asks_again_while_it_waits_gets_one_answer_to_both() -> None:
    h = harness()
    a = Consumer(h, "a")
    tokens = [a.ask(), a.ask()]
    h.pass_time(QUIET_MS)
    assert h.replies[tokens[0]] is h.replies[tokens[1]]
    a.hear(h.replies[tokens[0]])
    assert a.owned == ALL_OF_T


def test_a_member_that_left_while_it_waited_is_told_so() -> None:
    h = harness()
    a = Consumer(h, "a")
    token = a.ask()
    a.leave()
    h.pass_time(QUIET_MS)
    assert h.replies[token].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_targets_are_made_at_most_once_in_an_interval() -> None:
    h = Harness(GroupSettings(group_consumer_assignment_interval_ms=1_000))
    members = [Consumer(h, f"m{n}") for n in range(3)]
    for member in members:
        member.beat()
    assert group_of(h).epoch == 4
    assert group_of(h).target_epoch == 2
    assert members[2].epoch == 2
    assert described(h).group_state == "Assigning"
    settle(h, *members)
    assert [len(m.owned) for m in members] == [1, 1, 1]


@pytest.mark.parametrize(
    ("votes", "chosen"),
    [(("range",), "range"), (("uniform", "range", "range"), "range"), ((None,), "uniform")],
)
def test_the_assignor_most_members_ask_for_is_used(votes: tuple[str | None, ...], chosen: str) -> None:
    h = harness()
    settle(h, *(Consumer(h, f"m{n}", assignor=vote) for n, vote in enumerate(votes)))
    assert described(h).assignor_name == chosen


def test_range_keeps_equal_partitions_of_topics_together() -> None:
    h = harness(t=4, u=4)
    members = [Consumer(h, f"m{n}", ("t", "u"), assignor="range") for n in range(2)]
    settle(h, *members)
    for member in members:
        assert {p for t, p in member.owned if t == "t"} == {p for t, p in member.owned if t == "u"}


def test_the_broker_makes_an_id_for_clients_of_version_0() -> None:
    h = harness()
    a = Consumer(h, "", version=0)
    assert a.beat().error_code == ErrorCode.NONE
    assert len(a.member_id) == 22
    assert a.owned == ALL_OF_T


def test_an_answer_that_got_lost_is_no_reason_to_be_fenced() -> None:
    h = harness()
    a, b = Consumer(h, "a"), Consumer(h, "b")
    settle(h, a)
    b.beat()
    before = a.request()
    before.topic_partitions = []
    a.beat()
    a.beat()
    assert a.epoch > before.member_epoch
    assert h.call(before, 1).error_code == ErrorCode.NONE


def test_a_member_cannot_begin_with_what_was_taken_back_in_an_answer_that_got_lost() -> None:
    h = harness(t=2)
    a, b = Consumer(h, "a"), Consumer(h, "b")
    a.beat(digest=False)
    b.beat()
    says_it_owns_nothing = a.request()
    says_it_owns_nothing.topic_partitions = []
    h.call(says_it_owns_nothing, 1)
    b.beat()
    a.digest()
    assert a.owned == set(), "its epoch is old, so it is not told the offsets to begin at"
    assert b.owned == {("t", 1)}


def test_a_member_can_join_again_with_the_same_id() -> None:
    h = harness()
    a = Consumer(h, "a")
    settle(h, a)
    a.abandon()
    a.beat()
    assert a.owned == ALL_OF_T


def test_a_group_is_the_same_after_a_reload() -> None:
    h = harness()
    a, b = Consumer(h, "a"), Consumer(h, "b", instance="i")
    a.beat()
    a.beat()
    b.beat()
    a.beat(digest=False)
    again = h.reloaded()
    assert image(again) == image(h)
    a.h = b.h = again
    a.digest()
    settle(again, a, b)
    assert a.owned | b.owned == ALL_OF_T


def test_sessions_begin_anew_after_a_reload() -> None:
    h = harness()
    settle(h, Consumer(h, "a"))
    h.pass_time(SESSION_MS - 2 * HEARTBEAT_MS)
    again = h.reloaded()
    again.pass_time(SESSION_MS - 1)
    assert len(described(again).members) == 1
    again.pass_time(1)
    assert described(again).members == []


def test_what_is_not_written_has_not_happened() -> None:
    h = harness()
    a, b = Consumer(h, "a"), Consumer(h, "b")
    settle(h, a)
    before = image(h)
    h.refuse_appends = ErrorCode.NOT_ENOUGH_REPLICAS
    assert b.beat().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert image(h) == before
    h.refuse_appends = None
    settle(h, a, b)
    assert a.owned | b.owned == ALL_OF_T


def test_an_empty_group_can_be_deleted_with_all_its_records() -> None:
    h = harness()
    a = Consumer(h, "a", None, regex="t.*")
    settle(h, a)
    a.leave()
    group = group_of(h)
    for record in group.tombstones():
        h.shard.replay(record)
    assert described(h).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_describing_shows_members_and_what_they_have_and_shall_have() -> None:
    h = harness()
    a, b = Consumer(h, "a", instance="i"), Consumer(h, "b")
    a.beat()
    a.beat()
    b.beat()
    group = described(h)
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == (
        "Reconciling",
        3,
        3,
        "uniform",
    )
    first, second = group.members
    assert (first.member_id, first.instance_id, first.member_epoch, first.member_type) == ("a", "i", 2, 1)
    assert (first.client_id, first.client_host, first.subscribed_topic_names) == (
        "client",
        "/127.0.0.1",
        ["t"],
    )
    assert [(t.topic_name, t.partitions) for t in first.assignment.topic_partitions] == [("t", [0, 1, 2])]
    assert [(t.topic_name, t.partitions) for t in first.target_assignment.topic_partitions] == [("t", [0, 1])]
    assert second.assignment.topic_partitions == []
    assert [(t.topic_name, t.partitions) for t in second.target_assignment.topic_partitions] == [("t", [2])]


def test_groups_are_listed_with_their_kind() -> None:
    h = harness()
    settle(h, Consumer(h, "a"))
    (listed,) = h.shard.list()
    assert (listed.group_id, listed.group_state, listed.group_type, listed.protocol_type) == (
        "g",
        "Stable",
        "consumer",
        "consumer",
    )


def test_a_hundred_members_share_a_thousand_partitions_without_delay() -> None:
    h = Harness(replace(NO_DELAY, group_consumer_assignment_interval_ms=1_000), KnownTopics({"t": 1_000}))
    members = [Consumer(h, f"m{n}") for n in range(100)]
    settle(h, *members)
    assert {len(m.owned) for m in members} == {10}
