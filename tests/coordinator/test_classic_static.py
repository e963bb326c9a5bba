"""Static members: they come back under a new id and keep their place, and whoever had it is fenced."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.leave_group import MemberIdentity

from .harness import Harness


def static_group(h: Harness, *instances: str, **options: object) -> dict[str, str]:
    """A stable group of static members: their ids by instance id. The first leads."""
    joins = {instance: h.join(instance=instance, **options) for instance in instances}  # type: ignore[arg-type]
    h.pass_time()
    ids = {instance: h.replies[token].member_id for instance, token in joins.items()}
    leader, *others = ids.items()
    for instance, member in others:
        h.sync(member, 1, instance=instance)
    parts = {member: instance.encode() for instance, member in ids.items()}
    h.sync(leader[1], 1, parts, instance=leader[0])
    assert h.state() == "Stable"
    return ids


def test_a_static_member_needs_no_second_join_for_its_id() -> None:
    h = Harness()
    token = h.join(instance="i")
    h.pass_time()
    assert h.replies[token].member_id.startswith("i-")


def test_a_static_member_that_restarts_keeps_its_part_without_a_rebalance() -> None:
    h = Harness()
    ids = static_group(h, "a", "b")
    answer = h.replies[h.join(instance="b")]
    assert (answer.error_code, answer.generation_id, answer.leader) == (ErrorCode.NONE, 1, ids["a"])
    assert answer.member_id != ids["b"]
    assert (answer.skip_assignment, answer.members) == (False, [])
    assert h.state() == "Stable"
    assert h.replies[h.sync(answer.member_id, 1, instance="b")].assignment == b"b"
    assert h.heartbeat(ids["a"], 1, instance="a") == ErrorCode.NONE


def test_the_new_id_of_a_static_member_is_written() -> None:
    h = Harness()
    ids = static_group(h, "a", "b")
    new = h.replies[h.join(instance="b")].member_id
    assert {m.member_id for m in h.records()[-1].value.members} == {ids["a"], new}
    other = h.reloaded()
    assert other.heartbeat(new, 1, instance="b") == ErrorCode.NONE
    assert other.heartbeat(ids["b"], 1, instance="b") == ErrorCode.FENCED_INSTANCE_ID


def test_a_leader_that_restarts_leads_but_need_not_assign() -> None:
    h = Harness()
    ids = static_group(h, "a", "b")
    answer = h.replies[h.join(instance="a", version=9)]
    assert answer.leader == answer.member_id != ids["a"]
    assert answer.skip_assignment
    assert {m.member_id for m in answer.members} == {answer.member_id, ids["b"]}
    assert {m.group_instance_id for m in answer.members} == {"a", "b"}
    assert h.records()[-1].value.leader == answer.member_id


@pytest.mark.parametrize("version", range(5, 9))
def test_an_older_leader_that_restarts_takes_itself_for_a_follower(version: int) -> None:
    h = Harness()
    ids = static_group(h, "a", "b")
    answer = h.replies[h.join(instance="a", version=version)]
    assert (answer.leader, answer.members, answer.skip_assignment) == (ids["a"], [], False)
    assert h.records()[-1].value.leader == answer.member_id, "in truth it leads"


def test_the_one_that_was_replaced_is_fenced() -> None:
    h = Harness()
    ids = static_group(h, "a", "b")
    h.join(instance="b")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert h.heartbeat(ids["b"], 1, instance="b") == fenced
    assert h.replies[h.sync(ids["b"], 1, instance="b")].error_code == fenced
    assert h.replies[h.join(ids["b"], instance="b")].error_code == fenced
    commit = h.commit({("t", 0): 1}, member_id=ids["b"], generation=1, instance="b")
    assert commit == {("t", 0): fenced}
    leave = h.leave(MemberIdentity(member_id=ids["b"], group_instance_id="b"))
    assert leave.members[0].error_code == fenced


def test_a_waiting_join_of_the_one_that_is_replaced_is_fenced() -> None:
    h = Harness()
    static_group(h, "a", "b")
    h.join(instance="a", protocols={"other": b"", "range": b""})
    ids = {m.group_instance_id: m.member_id for m in h.describe().members}
    waiting = h.join(ids["b"], instance="b", protocols={"other": b"x", "range": b""})
    assert h.waits(waiting)
    again = h.join(instance="b", protocols={"other": b"x", "range": b""})
    assert h.replies[waiting].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert h.waits(again)


def test_a_static_member_that_restarts_while_the_group_syncs_starts_over() -> None:
    h = Harness()
    tokens = [h.join(instance=instance) for instance in ("a", "b")]
    h.pass_time()
    leader, follower = (h.replies[token].member_id for token in tokens)
    waiting = h.sync(follower, 1, instance="b")
    again = h.join(instance="b")
    assert h.replies[waiting].error_code == ErrorCode.FENCED_INSTANCE_ID
    h.join(leader, instance="a")
    assert h.replies[again].generation_id == 2


def test_a_restart_that_changes_the_choice_of_protocol_rebalances() -> None:
    h = Harness()
    ids = static_group(h, "a", protocols={"range": b"", "sticky": b""})
    token = h.join(instance="a", protocols={"sticky": b"", "range": b""})
    assert h.replies[token].generation_id == 2
    assert h.replies[token].protocol_name == "sticky"
    assert h.replies[token].member_id != ids["a"]


def test_static_members_are_not_dropped_when_they_miss_a_rebalance_but_when_their_sessions_end() -> None:
    h = Harness()
    ids = static_group(h, "a", "b", session_ms=30_000, rebalance_ms=10_000)
    token = h.join(ids["a"], instance="a", session_ms=30_000, rebalance_ms=10_000)
    h.pass_time(10_000)
    assert {m.member_id for m in h.replies[token].members} == set(ids.values())
    h.sync(ids["a"], 2, {}, instance="a")
    assert h.state() == "Stable"


def test_a_group_of_static_members_of_whom_none_comes_back_waits_for_their_sessions() -> None:
    h = Harness()
    static_group(h, "a", "b", session_ms=60_000, rebalance_ms=10_000)
    h.leave(MemberIdentity(member_id="", group_instance_id="a"))
    h.pass_time(30_000)
    assert h.state() == "PreparingRebalance"
    h.pass_time(30_000)
    assert h.state() == "Empty"


def test_an_operator_removes_a_static_member_by_its_instance_id() -> None:
    h = Harness()
    static_group(h, "a", "b")
    answer = h.leave(
        MemberIdentity(member_id="", group_instance_id="a"),
        MemberIdentity(member_id="", group_instance_id="nobody"),
        MemberIdentity(member_id=""),
    )
    assert [m.error_code for m in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert [m.group_instance_id for m in h.describe().members] == ["b"]


def test_a_restart_that_cannot_be_written_leaves_the_old_member_in_place() -> None:
    h = Harness()
    ids = static_group(h, "a")
    h.refuse_appends = ErrorCode.NOT_ENOUGH_REPLICAS
    answer = h.replies[h.join(instance="a")]
    assert (answer.error_code, answer.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    h.refuse_appends = None
    assert h.heartbeat(ids["a"], 1, instance="a") == ErrorCode.NONE
    assert h.replies[h.join(instance="a")].error_code == ErrorCode.NONE
