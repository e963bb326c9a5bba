"""Groups as seen from outside: described, listed, deleted, expired, reloaded, and when the log refuses."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.effects import Effects, Record
from pykafka_broker.coordinator.records import GroupMetadataKey
from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest

from .harness import SUBSCRIPTION_TO_T, Harness

OK = ErrorCode.NONE
PLACE = ("t", 0)
RETENTION_MS = 3_600_000
CHECK_MS = 60_000


# Described and listed.


def test_a_stable_group_is_described_with_everything() -> None:
    h = Harness()
    (member,) = h.stable_group()
    described = h.describe()
    assert (described.error_code, described.group_state) == (OK, "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    (found,) = described.members
    assert (found.member_id, found.client_id, found.client_host) == (member, "client", "/127.0.0.1")
    assert (found.member_metadata, found.member_assignment) == (SUBSCRIPTION_TO_T, member.encode())


def test_a_group_between_generations_is_described_without_a_protocol() -> None:
    h = Harness()
    leader, _ = h.stable_group(2)
    h.join(leader)
    described = h.describe()
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert {m.member_metadata for m in described.members} == {b""}


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_is_not_there_is_dead(version: int) -> None:
    described = Harness().describe("nowhere", version)
    assert (described.group_id, described.group_state) == ("nowhere", "Dead")
    if version >= 6:
        assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert described.error_message == "Group nowhere not found."
    else:
        assert (described.error_code, described.error_message) == (OK, None)


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], {"stable", "empty", "simple"}),
        (["Stable"], [], {"stable"}),
        (["STABLE", " empty "], [], {"stable", "empty", "simple"}),
        (["Dead"], [], set()),
        (["nonsense"], [], set()),
        ([], ["classic"], {"stable", "empty", "simple"}),
        ([], ["Consumer"], set()),
        (["Empty"], ["CLASSIC", "consumer"], {"empty", "simple"}),
    ],
)
def test_groups_are_listed_by_state_and_type(states: list[str], types: list[str], expected: set[str]) -> None:
    h = Harness()
    h.stable_group(group="stable")
    (member,) = h.stable_group(group="empty")
    h.leave(member, group="empty")
    h.commit({PLACE: 1}, group="simple")
    listed = h.shard.list(states, types)
    assert {group.group_id for group in listed} == expected
    assert {group.group_type for group in listed} <= {"classic"}
    assert {group.protocol_type for group in listed if group.group_id == "simple"} <= {""}


# Deleted.


def delete(h: Harness, *groups: str) -> dict[str, ErrorCode]:
    answer = h.call(DeleteGroupsRequest(groups_names=list(groups)), 2)
    return {result.group_id: ErrorCode(result.error_code) for result in answer.results}


def test_only_empty_groups_can_be_deleted_and_their_offsets_go_too() -> None:
    h = Harness()
    h.stable_group(group="stable")
    h.commit({PLACE: 1, ("u", 0): 1}, group="simple")
    assert delete(h, "stable", "simple", "nowhere") == {
        "stable": ErrorCode.NON_EMPTY_GROUP,
        "simple": OK,
        "nowhere": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert h.offsets("simple") == {}
    for coordinator in (h, h.reloaded()):
        assert [group.group_id for group in coordinator.shard.list()] == ["stable"]


def test_a_group_of_the_same_name_starts_from_nothing() -> None:
    h = Harness()
    (member,) = h.stable_group()
    h.commit({PLACE: 1}, member_id=member, generation=1)
    h.leave(member)
    assert delete(h, "g") == {"g": OK}
    h.stable_group()
    assert h.generation() == 2, "the old group had come to its second, empty generation"
    assert h.offsets() == {}
    assert h.records()[-1].value.generation == 1


# Expired.


@pytest.fixture
def h() -> Harness:
    return Harness(
        GroupSettings(
            group_initial_rebalance_delay_ms=0,
            offsets_retention_ms=RETENTION_MS,
            offsets_retention_check_interval_ms=CHECK_MS,
        )
    )


def test_offsets_of_outsiders_expire_after_their_commit_and_the_group_with_the_last(h: Harness) -> None:
    h.commit({PLACE: 1})
    h.pass_time(RETENTION_MS // 2)
    h.commit({("t", 1): 1})
    h.pass_time(RETENTION_MS // 2 + CHECK_MS)
    assert h.offsets() == {("t", 1): 1}
    h.pass_time(RETENTION_MS)
    for coordinator in (h, h.reloaded()):
        assert coordinator.offsets() == {}
        assert coordinator.shard.list() == []


def test_offsets_of_a_group_that_lost_its_members_expire_when_it_has_been_empty_long_enough(
    h: Harness,
) -> None:
    (member,) = h.stable_group(session_ms=1_800_000)
    h.commit({PLACE: 1}, member_id=member, generation=1)
    for _ in range(4):
        h.pass_time(RETENTION_MS // 4)
        h.heartbeat(member, 1)
    h.leave(member)
    h.pass_time(RETENTION_MS - CHECK_MS)
    assert h.offsets() == {PLACE: 1}
    h.pass_time(2 * CHECK_MS)
    assert h.shard.list() == []


def test_offsets_of_topics_that_are_read_do_not_expire_and_others_do(h: Harness) -> None:
    (member,) = h.stable_group(session_ms=1_800_000)
    h.commit({PLACE: 1, ("u", 0): 1}, member_id=member, generation=1)
    for _ in range(5):
        h.pass_time(RETENTION_MS // 4)
        h.heartbeat(member, 1)
    assert h.offsets() == {PLACE: 1}


def test_offsets_with_a_time_of_their_own_expire_at_it(h: Harness) -> None:
    h.commit({PLACE: 1}, version=2, retention_ms=CHECK_MS)
    h.commit({("t", 1): 1}, version=2, retention_ms=10 * RETENTION_MS)
    h.pass_time(2 * CHECK_MS)
    assert h.offsets() == {("t", 1): 1}
    h.pass_time(2 * RETENTION_MS)
    assert h.offsets() == {("t", 1): 1}


def test_groups_of_others_than_consumers_keep_their_offsets_while_they_have_members(h: Harness) -> None:
    member, _ = h.new_member(protocol_type="connect", session_ms=1_800_000)
    h.pass_time()
    h.sync(member, 1, {}, protocol_type="connect")
    h.commit({PLACE: 1}, member_id=member, generation=1)
    for _ in range(8):
        h.pass_time(RETENTION_MS // 4)
        h.heartbeat(member, 1)
    assert h.offsets() == {PLACE: 1}


# Reloaded.


def test_a_reloaded_group_is_as_it_was_and_its_members_go_on() -> None:
    h = Harness()
    leader, follower = h.stable_group(2)
    h.commit({PLACE: 1}, member_id=leader, generation=1)
    other = h.reloaded()
    assert other.describe() == h.describe()
    assert other.offsets() == h.offsets()
    assert other.heartbeat(follower, 1) == OK
    other.pass_time(10_000)
    assert other.state() == "Empty", "nobody was heard of since, though one was a moment ago"


def test_a_rebalance_that_was_under_way_is_as_if_it_had_not_begun() -> None:
    h = Harness()
    leader, _ = h.stable_group(2)
    h.join(leader)
    h.new_member()
    other = h.reloaded()
    assert other.state() == "Stable"
    assert {m.member_id for m in other.describe().members} <= {m.member_id for m in h.describe().members}


def test_members_that_spoke_of_several_protocols_can_join_again_after_a_reload() -> None:
    h = Harness()
    protocols = {"range": SUBSCRIPTION_TO_T, "sticky": b"s"}
    leader, follower = h.stable_group(2, protocols=protocols)
    other = h.reloaded()
    token = other.join(leader, protocols=protocols)
    other.join(follower, protocols=protocols)
    assert other.replies[token].protocol_name == "range"


# When the log refuses.


def test_a_group_whose_birth_cannot_be_written_is_not_there() -> None:
    h = Harness()
    h.refuse_appends = ErrorCode.NOT_ENOUGH_REPLICAS
    assert h.replies[h.join()].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.replies[h.join(version=2)].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.shard.list() == []
    h.refuse_appends = None
    h.stable_group()


def test_an_assignment_that_cannot_be_written_reaches_nobody_and_all_join_again() -> None:
    h = Harness()
    joins = dict(h.new_member() for _ in range(2))
    h.pass_time()
    leader, follower = joins
    waiting = h.sync(follower, 1)
    h.refuse_appends = ErrorCode.NOT_LEADER_OR_FOLLOWER
    token = h.sync(leader, 1, {leader: b"L", follower: b"F"})
    for answer in (h.replies[token], h.replies[waiting]):
        assert (answer.error_code, answer.assignment) == (ErrorCode.NOT_COORDINATOR, b"")
    h.refuse_appends = None
    assert h.state() == "PreparingRebalance"
    assert {m.member_assignment for m in h.describe().members} == {b""}
    again = h.join(leader)
    h.join(follower)
    assert h.replies[again].generation_id == 2


def test_an_emptiness_that_cannot_be_written_is_true_all_the_same() -> None:
    h = Harness()
    (member,) = h.stable_group()
    h.refuse_appends = ErrorCode.NOT_ENOUGH_REPLICAS
    assert h.leave(member).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.state() == "Empty"
    h.refuse_appends = None
    assert h.reloaded().state() == "Stable", "there its session runs out anew"


def test_a_group_that_cannot_be_deleted_stays() -> None:
    h = Harness()
    h.commit({PLACE: 1})
    h.refuse_appends = ErrorCode.KAFKA_STORAGE_ERROR
    assert delete(h, "g") == {"g": ErrorCode.NOT_COORDINATOR}
    h.refuse_appends = None
    assert h.offsets() == {PLACE: 1}


def test_a_classic_group_that_another_kind_of_group_became_rebalances() -> None:
    h = Harness()
    leader, follower = h.stable_group(2)
    value = h.records()[-1].value
    other = Harness()
    other.apply(Effects([Record(GroupMetadataKey(group="g"), value)]))
    assert other.state() == "Stable"
    other.pass_time()
    assert other.state() == "PreparingRebalance"
    token = other.join(leader)
    other.join(follower)
    assert other.replies[token].generation_id == 2
