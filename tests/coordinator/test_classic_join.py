"""Joining a classic group: ids, the first rebalance, who is turned away."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.classic_join import NEW_MEMBER_TIMEOUT_MS
from pykafka_broker.coordinator.records import GroupMetadataKey
from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.protocol.errors import ErrorCode

from .harness import SUBSCRIPTION_TO_T, Harness


def test_a_new_member_is_first_sent_away_with_its_id() -> None:
    h = Harness()
    required = h.replies[h.join(client_id="me")]
    assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert required.member_id.startswith("me-")
    assert h.describe().members == []
    token = h.join(required.member_id)
    h.pass_time()
    assert h.replies[token].error_code == ErrorCode.NONE
    assert h.replies[token].member_id == required.member_id


@pytest.mark.parametrize("version", range(4))
def test_old_clients_are_members_at_once(version: int) -> None:
    h = Harness()
    token = h.join(version=version)
    h.pass_time()
    answer = h.replies[token]
    assert answer.error_code == ErrorCode.NONE
    assert answer.leader == answer.member_id
    assert answer.generation_id == 1
    assert answer.protocol_name == "range"


def test_a_group_is_written_when_it_is_born() -> None:
    h = Harness()
    h.join()
    (record,) = h.records()
    assert record.key == GroupMetadataKey(group="g")
    assert (record.value.generation, record.value.members, record.value.protocol_type) == (0, [], "")
    assert record.value.current_state_timestamp == h.now_ms


def test_the_first_rebalance_waits_for_more_members_as_long_as_they_come() -> None:
    h = Harness(GroupSettings(group_initial_rebalance_delay_ms=3_000))
    _, first = h.new_member(rebalance_ms=10_000)
    h.pass_time(2_000)
    assert h.waits(first)
    _, second = h.new_member(rebalance_ms=10_000)
    h.pass_time(3_999)
    assert h.waits(first), "the second has put it off by another delay"
    h.pass_time(1)
    assert h.replies[first].generation_id == h.replies[second].generation_id == 1
    assert h.now_ms - 1_000_000 == 6_000


def test_the_first_rebalance_is_put_off_no_longer_than_the_rebalance_timeout() -> None:
    h = Harness(GroupSettings(group_initial_rebalance_delay_ms=3_000))
    _, first = h.new_member(rebalance_ms=7_000)
    for _ in range(20):
        if h.waits(first):
            h.new_member(rebalance_ms=7_000)
            h.pass_time(500)
    assert not h.waits(first)
    assert h.now_ms - 1_000_000 <= 7_500


def test_all_members_get_the_same_generation_and_only_the_leader_the_members() -> None:
    h = Harness()
    joins = dict(h.new_member() for _ in range(3))
    h.pass_time()
    answers = [h.replies[token] for token in joins.values()]
    assert {(a.generation_id, a.leader, a.protocol_name, a.protocol_type) for a in answers} == {
        (1, answers[0].leader, "range", "consumer")
    }
    for answer in answers:
        leads = answer.member_id == answer.leader
        assert [m.member_id for m in answer.members] == (list(joins) if leads else [])
    assert all(m.metadata == SUBSCRIPTION_TO_T for a in answers for m in a.members)


def test_the_protocol_that_all_know_and_most_prefer_is_chosen() -> None:
    h = Harness()
    _, token = h.new_member(protocols={"a": b"", "b": b"", "c": b""})
    h.new_member(protocols={"c": b"", "b": b""})
    h.new_member(protocols={"b": b"", "c": b"", "d": b""})
    h.new_member(protocols={"c": b"", "b": b"", "a": b""})
    h.pass_time()
    # b is preferred by two (a is not known to all), c by two: the longest-standing member's vote wins.
    assert h.replies[token].protocol_name == "b"


def test_metadata_of_the_chosen_protocol_reaches_the_leader() -> None:
    h = Harness()
    leader, token = h.new_member(protocols={"a": b"a1", "b": b"b1"})
    h.new_member(protocols={"b": b"b2"})
    h.pass_time()
    assert h.replies[token].leader == leader
    assert [m.metadata for m in h.replies[token].members] == [b"b1", b"b2"]


@pytest.mark.parametrize(
    "options",
    [
        {"protocol_type": "connect"},
        {"protocols": {"roundrobin": b""}},
        {"protocols": {}},
    ],
)
def test_who_shares_no_protocol_with_the_group_is_refused(options: dict[str, object]) -> None:
    h = Harness()
    h.stable_group()
    answer = h.replies[h.join(**options)]  # type: ignore[arg-type]
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("options", [{"protocol_type": ""}, {"protocols": {}}])
def test_an_empty_group_takes_any_protocol_but_not_none(options: dict[str, object]) -> None:
    h = Harness()
    assert h.replies[h.join(**options)].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[arg-type]


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, 0, -1])
def test_session_timeouts_have_limits(session_ms: int) -> None:
    h = Harness()
    answer = h.replies[h.join("who", session_ms=session_ms)]
    assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert answer.member_id == "who"
    assert h.log == []


def test_a_group_needs_a_name() -> None:
    h = Harness()
    assert h.replies[h.join(group="")].error_code == ErrorCode.INVALID_GROUP_ID


def test_an_id_nobody_gave_out_is_unknown() -> None:
    h = Harness()
    assert h.replies[h.join("ghost")].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.log == [], "no group comes of it"
    h.stable_group()
    assert h.replies[h.join("ghost")].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_is_not_used_in_time_is_forgotten_and_holds_nobody_up() -> None:
    h = Harness()
    leader, *_ = h.stable_group()
    pending = h.replies[h.join(session_ms=6_000)].member_id
    rejoin = h.join(leader)
    assert h.waits(rejoin), "the id given out might be used at any moment"
    h.pass_time(6_000)
    assert h.replies[rejoin].generation_id == 2
    assert h.replies[h.join(pending)].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_turns_newcomers_away() -> None:
    h = Harness(GroupSettings(group_initial_rebalance_delay_ms=0, group_max_size=2))
    first, second = h.stable_group(2)
    answer = h.replies[h.join()]
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert h.state() == "Stable"
    rejoin = h.join(first)
    assert h.replies[h.join(second)].error_code == ErrorCode.NONE, "its members may come back"
    assert h.replies[rejoin].error_code == ErrorCode.NONE


def test_the_last_to_come_back_to_a_group_that_has_become_too_large_is_turned_away() -> None:
    h = Harness()
    members = h.stable_group(3)
    h.settings = GroupSettings(group_initial_rebalance_delay_ms=0, group_max_size=2)
    h = h.reloaded()
    assert h.state() == "PreparingRebalance"
    tokens = [h.join(member) for member in members]
    assert [h.replies[token].error_code for token in tokens] == [0, 0, ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert len(h.describe().members) == 2


def test_a_member_that_never_learned_its_id_is_given_up_after_five_minutes() -> None:
    h = Harness()
    h.stable_group(session_ms=1_800_000, rebalance_ms=1_800_000)
    token = h.join(version=3, rebalance_ms=1_800_000)
    assert h.waits(token)
    h.pass_time(NEW_MEMBER_TIMEOUT_MS)
    assert h.replies[token].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert len(h.describe().members) == 1


def test_version_0_has_one_timeout_for_sessions_and_rebalances() -> None:
    h = Harness()
    leader, *_ = h.stable_group(session_ms=30_000, version=4, rebalance_ms=7_000)
    token = h.join(version=0, session_ms=8_000, rebalance_ms=-1)
    h.pass_time(7_999)
    assert h.waits(token)
    h.pass_time(1)
    assert h.replies[token].error_code == ErrorCode.NONE, "the other has had its 8 seconds to come back"
    assert [m.member_id for m in h.describe().members] == [h.replies[token].member_id]
    assert leader not in {m.member_id for m in h.describe().members}


def test_a_join_that_is_sent_again_answers_the_one_before() -> None:
    h = Harness()
    first, second = h.stable_group(2)
    lost = h.join(first)
    again = h.join(first)
    assert h.replies[lost].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    h.join(second)
    assert h.replies[again].generation_id == 2


def test_a_follower_that_joins_again_unchanged_is_told_the_generation_it_is_in() -> None:
    h = Harness()
    _, follower = h.stable_group(2)
    answer = h.replies[h.join(follower)]
    assert (answer.error_code, answer.generation_id, answer.members) == (ErrorCode.NONE, 1, [])
    assert h.state() == "Stable"


def test_a_leader_that_joins_again_starts_a_rebalance() -> None:
    h = Harness()
    leader, follower = h.stable_group(2)
    token = h.join(leader)
    assert h.state() == "PreparingRebalance"
    h.join(follower)
    assert h.replies[token].generation_id == 2


def test_a_follower_with_another_subscription_starts_a_rebalance() -> None:
    h = Harness()
    leader, follower = h.stable_group(2)
    h.join(follower, protocols={"range": b"other"})
    assert h.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_join_answer_that_was_lost_is_given_again_while_the_group_syncs() -> None:
    h = Harness()
    joins = dict(h.new_member() for _ in range(2))
    h.pass_time()
    for member in joins:
        answer = h.replies[h.join(member)]
        assert answer.generation_id == 1
        assert bool(answer.members) == (member == answer.leader)
    assert h.state() == "CompletingRebalance"


def test_another_subscription_while_the_group_syncs_starts_over() -> None:
    h = Harness()
    joins = dict(h.new_member() for _ in range(2))
    h.pass_time()
    first, second = joins
    waiting = h.sync(second, 1)
    token = h.join(first, protocols={"range": b"new"})
    assert h.replies[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    h.join(second)
    assert h.replies[token].generation_id == 2
