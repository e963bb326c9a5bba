"""Sync, heartbeats, silence and departure in classic groups."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.records import GroupMetadataValue
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.leave_group import MemberIdentity

from .harness import Harness


def syncing_group(h: Harness, size: int = 2, **options: object) -> list[str]:
    """A group whose members have joined and not synced, the leader first."""
    joins = dict(h.new_member(**options) for _ in range(size))
    h.pass_time()
    leader = h.replies[next(iter(joins.values()))].leader
    return [leader, *(member for member in joins if member != leader)]


# Sync.


def test_members_wait_for_the_leader_and_get_their_parts() -> None:
    h = Harness()
    leader, follower = syncing_group(h)
    waiting = h.sync(follower, 1)
    assert h.waits(waiting)
    token = h.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert (h.replies[token].assignment, h.replies[waiting].assignment) == (b"L", b"F")
    assert h.replies[waiting].protocol_name == "range"
    assert h.replies[waiting].protocol_type == "consumer"
    assert h.state() == "Stable"


def test_who_syncs_late_gets_its_part_at_once() -> None:
    h = Harness()
    leader, follower = syncing_group(h)
    h.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert h.replies[h.sync(follower, 1)].assignment == b"F"


def test_whom_the_leader_forgot_gets_an_empty_part() -> None:
    h = Harness()
    leader, follower = syncing_group(h)
    waiting = h.sync(follower, 1)
    h.sync(leader, 1, {leader: b"L", "stranger": b"S"})
    assert (h.replies[waiting].error_code, h.replies[waiting].assignment) == (ErrorCode.NONE, b"")
    assert {m.member_id for m in h.describe().members} == {leader, follower}


def test_the_generation_is_written_when_it_is_assigned() -> None:
    h = Harness()
    leader, follower = syncing_group(h)
    h.sync(leader, 1, {leader: b"L", follower: b"F"})
    value = h.records()[-1].value
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation, value.protocol, value.leader, value.protocol_type) == (
        1,
        "range",
        leader,
        "consumer",
    )
    assert {m.member_id: m.assignment for m in value.members} == {leader: b"L", follower: b"F"}
    assert {(m.session_timeout, m.rebalance_timeout) for m in value.members} == {(10_000, 60_000)}


@pytest.mark.parametrize(
    ("member", "generation", "options", "error"),
    [
        ("ghost", 1, {}, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 2, {}, ErrorCode.ILLEGAL_GENERATION),
        (None, 1, {"instance": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 1, {"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (None, 1, {"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (None, 1, {"protocol_name": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (None, 1, {"group": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 1, {"group": ""}, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_a_sync_that_does_not_fit_is_refused(
    member: str | None, generation: int, options: dict[str, str], error: ErrorCode
) -> None:
    h = Harness()
    leader, _ = syncing_group(h)
    assert h.replies[h.sync(member or leader, generation, **options)].error_code == error  # type: ignore[arg-type]
    assert h.state() == "CompletingRebalance"


def test_older_syncs_name_no_protocol() -> None:
    h = Harness()
    leader, _ = syncing_group(h)
    token = h.sync(leader, 1, version=4, protocol_name=None, protocol_type=None)
    assert h.replies[token].error_code == ErrorCode.NONE


def test_syncs_to_a_group_that_is_rebalancing_again_are_sent_back() -> None:
    h = Harness()
    leader, follower = h.stable_group(2)
    h.join(leader)
    assert h.replies[h.sync(follower, 1)].error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_sync_to_an_empty_group_comes_from_nobody() -> None:
    h = Harness()
    (member,) = h.stable_group()
    h.leave(member)
    assert h.replies[h.sync(member, 2)].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_that_is_sent_again_answers_the_one_before() -> None:
    h = Harness()
    leader, follower = syncing_group(h)
    lost = h.sync(follower, 1)
    again = h.sync(follower, 1)
    assert h.replies[lost].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    h.sync(leader, 1, {follower: b"F"})
    assert h.replies[again].assignment == b"F"


def test_members_that_never_sync_are_removed_and_the_others_rebalance() -> None:
    h = Harness()
    leader, follower = syncing_group(h, rebalance_ms=20_000, session_ms=1_000_000)
    waiting = h.sync(follower, 1)
    h.pass_time(20_000)
    assert h.replies[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert [m.member_id for m in h.describe().members] == [follower]
    token = h.join(follower, rebalance_ms=20_000)
    assert h.replies[token].leader == follower
    assert h.replies[h.join(leader)].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_that_never_syncs_is_removed_from_a_stable_group_too() -> None:
    h = Harness()
    leader, follower = syncing_group(h, rebalance_ms=20_000, session_ms=1_000_000)
    h.sync(leader, 1, {leader: b"L", follower: b"F"})
    h.pass_time(20_000)
    assert h.state() == "PreparingRebalance"
    assert [m.member_id for m in h.describe().members] == [leader]


# Heartbeats and silence.


def test_heartbeats_keep_a_member_alive() -> None:
    h = Harness()
    (member,) = h.stable_group(session_ms=10_000)
    for _ in range(5):
        h.pass_time(9_999)
        assert h.heartbeat(member, 1) == ErrorCode.NONE
    assert h.state() == "Stable"


def test_a_silent_member_is_removed() -> None:
    h = Harness()
    leader, follower = h.stable_group(2, session_ms=10_000)
    h.pass_time(6_000)
    h.heartbeat(leader, 1)
    h.pass_time(4_000)
    assert h.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert h.heartbeat(follower, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.replies[h.join(leader)].generation_id == 2


def test_a_group_whose_members_are_all_silent_is_empty_and_that_is_written() -> None:
    h = Harness()
    h.stable_group(3, session_ms=10_000)
    h.pass_time(10_000)
    assert h.state() == "Empty"
    value = h.records()[-1].value
    assert (value.generation, value.members, value.protocol, value.leader) == (2, [], None, None)
    assert value.protocol_type == "consumer"
    assert value.current_state_timestamp == h.now_ms


def test_who_does_not_come_back_within_the_rebalance_timeout_is_removed() -> None:
    h = Harness()
    leader, follower = h.stable_group(2, session_ms=10_000, rebalance_ms=30_000)
    token = h.join(leader, rebalance_ms=30_000)
    for _ in range(10):
        h.pass_time(3_000)
        h.heartbeat(follower, 1)
    assert h.replies[token].generation_id == 2
    assert [m.member_id for m in h.replies[token].members] == [leader]


def test_who_waits_for_a_rebalance_need_not_beat() -> None:
    h = Harness()
    leader, follower = h.stable_group(2, session_ms=10_000, rebalance_ms=30_000)
    token = h.join(leader, rebalance_ms=30_000)
    for _ in range(3):
        h.pass_time(9_000)
        h.heartbeat(follower, 1)
    h.join(follower)
    assert h.replies[token].error_code == ErrorCode.NONE


def test_when_the_leader_does_not_come_back_another_leads() -> None:
    h = Harness()
    leader, follower = h.stable_group(2, session_ms=10_000, rebalance_ms=10_000)
    token = h.join(follower, protocols={"range": b"new"}, rebalance_ms=10_000)
    h.pass_time(10_000)
    assert h.replies[token].leader == follower != leader
    assert [m.member_id for m in h.replies[token].members] == [follower]


@pytest.mark.parametrize(
    ("group", "member", "generation", "error"),
    [
        ("g", "ghost", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("g", None, 0, ErrorCode.ILLEGAL_GENERATION),
        ("other", None, 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", None, 1, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_a_heartbeat_that_does_not_fit_is_refused(
    group: str, member: str | None, generation: int, error: ErrorCode
) -> None:
    h = Harness()
    (leader,) = h.stable_group()
    assert h.heartbeat(member or leader, generation, group=group) == error


def test_heartbeats_are_fine_while_the_group_syncs() -> None:
    h = Harness()
    leader, _ = syncing_group(h)
    assert h.heartbeat(leader, 1) == ErrorCode.NONE


def test_commits_keep_a_member_alive_as_heartbeats_do() -> None:
    h = Harness()
    (member,) = h.stable_group(session_ms=10_000)
    for n in range(5):
        h.pass_time(9_999)
        h.commit({("t", 0): n}, member_id=member, generation=1)
    assert h.state() == "Stable"


# Leaving.


def test_the_last_to_leave_leaves_an_empty_group() -> None:
    h = Harness()
    (member,) = h.stable_group()
    answer = h.leave(member)
    assert [(m.member_id, m.error_code) for m in answer.members] == [(member, ErrorCode.NONE)]
    assert h.state() == "Empty"
    assert h.records()[-1].value.members == []


def test_when_one_leaves_the_others_rebalance() -> None:
    h = Harness()
    leader, follower = h.stable_group(2)
    h.leave(leader)
    assert h.heartbeat(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    token = h.join(follower)
    assert (h.replies[token].leader, h.replies[token].generation_id) == (follower, 2)


def test_several_leave_at_once_and_each_hears_of_its_own() -> None:
    h = Harness()
    first, second, third = h.stable_group(3)
    answer = h.leave(first, "ghost", second)
    assert [m.error_code for m in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert answer.error_code == ErrorCode.NONE
    assert [m.member_id for m in h.describe().members] == [third]


@pytest.mark.parametrize("version", range(3))
def test_old_clients_leave_alone(version: int) -> None:
    h = Harness()
    (member,) = h.stable_group()
    assert h.leave("ghost", version=version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.leave(member, version=version).error_code == ErrorCode.NONE
    assert h.leave(member, group="other", version=version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.leave(member, group="", version=version).error_code == ErrorCode.INVALID_GROUP_ID


def test_leaving_a_group_that_is_not_there_is_leaving_as_a_stranger() -> None:
    answer = Harness().leave("a", MemberIdentity(member_id="b", group_instance_id="i"))
    assert [(m.member_id, m.group_instance_id, m.error_code) for m in answer.members] == [
        ("a", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("b", "i", ErrorCode.UNKNOWN_MEMBER_ID),
    ]


def test_who_leaves_while_waiting_is_answered() -> None:
    h = Harness()
    leader, follower = h.stable_group(2)
    joining = h.join(leader)
    h.leave(leader)
    assert h.replies[joining].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    h.join(follower)
    h = Harness()
    leader, follower = syncing_group(h)
    waiting = h.sync(follower, 1)
    h.leave(follower)
    assert h.replies[waiting].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_can_be_given_back_before_it_is_used() -> None:
    h = Harness()
    leader, *_ = h.stable_group()
    pending = h.replies[h.join()].member_id
    rejoin = h.join(leader)
    assert h.leave(pending).members[0].error_code == ErrorCode.NONE
    assert h.replies[rejoin].generation_id == 2


def test_when_the_coordinator_moves_whoever_waits_is_sent_after_it() -> None:
    h = Harness()
    leader, _ = h.stable_group(2)
    joining = h.join(leader)
    _, other_follower = syncing_group(h, group="other")
    waiting = h.sync(other_follower, 1, group="other")
    h.apply(h.shard.unload())
    assert h.replies[joining].error_code == ErrorCode.NOT_COORDINATOR
    assert h.replies[waiting].error_code == ErrorCode.NOT_COORDINATOR
