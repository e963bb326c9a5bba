"""What consumer groups refuse, each with Kafka's error code, and that nothing is written then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatTopicPartitions,
)
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequestGroup

from .consumers import Consumer, described, settle
from .harness import Harness

NO_DELAY = GroupSettings(group_consumer_assignment_interval_ms=0)


def joining(**changes: Any) -> ConsumerGroupHeartbeatRequest:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


OWNS = [HeartbeatTopicPartitions(topic_id=UUID(int=1), partitions=[0])]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "  "}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": OWNS}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "mine"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"subscribed_topic_regex": r"(a)\1"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(changes: dict[str, Any], error: ErrorCode) -> None:
    h = Harness(NO_DELAY)
    response = h.call(joining(**changes), 1)
    assert response.error_code == error
    assert response.error_message
    assert h.log == []
    assert described(h).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_unknown_member_cannot_speak_or_leave() -> None:
    h = Harness(NO_DELAY)
    settle(h, Consumer(h, "a"))
    for epoch in (1, -1):
        response = h.call(joining(member_id="x", member_epoch=epoch), 1)
        assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("away", [-1, 1])
def test_a_member_at_another_epoch_is_fenced(away: int) -> None:
    h = Harness(NO_DELAY)
    a = Consumer(h, "a")
    settle(h, a)
    response = h.call(joining(member_epoch=a.epoch + away, topic_partitions=OWNS), 1)
    assert response.error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_owns_what_it_was_not_given_is_fenced_at_its_previous_epoch() -> None:
    h = Harness(NO_DELAY)
    a, b = Consumer(h, "a"), Consumer(h, "b")
    settle(h, a)
    before = a.request()
    settle(h, a, b)
    for owned in (None, OWNS):
        before.topic_partitions = owned
        assert h.call(before, 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_full_group_takes_nobody_more_but_keeps_its_own() -> None:
    h = Harness(replace(NO_DELAY, group_consumer_max_size=1))
    a = Consumer(h, "a")
    a.beat()
    assert Consumer(h, "b").beat().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert a.beat().error_code == ErrorCode.NONE


def test_an_instance_id_in_use_is_not_given_to_another() -> None:
    h = Harness(NO_DELAY)
    settle(h, Consumer(h, "a", instance="i"))
    assert Consumer(h, "b", instance="i").beat().error_code == ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_member_whose_instance_id_was_taken_over_is_fenced() -> None:
    h = Harness(NO_DELAY)
    old = Consumer(h, "a", instance="i")
    settle(h, old)
    epoch = old.epoch
    old.leave(-2)
    Consumer(h, "b", instance="i").beat()
    old.epoch = epoch
    assert old.beat().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert old.leave().error_code == ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_id_nobody_has_is_unknown() -> None:
    h = Harness(NO_DELAY)
    settle(h, Consumer(h, "a"))
    for epoch in (-1, -2, 2):
        response = h.call(joining(member_epoch=epoch, instance_id="i"), 1)
        assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


# Offsets.


def test_a_member_commits_at_its_epoch_and_not_at_a_later_one() -> None:
    h = Harness(NO_DELAY)
    a = Consumer(h, "a")
    settle(h, a)
    place = ("t", 0)
    assert h.commit({place: 5}, member_id="a", generation=a.epoch) == {place: ErrorCode.NONE}
    assert h.commit({place: 6}, member_id="a", generation=a.epoch + 1) == {
        place: ErrorCode.STALE_MEMBER_EPOCH
    }
    assert h.offsets() == {place: 5}


def test_at_an_older_epoch_a_member_commits_only_what_it_has_held_since() -> None:
    h = Harness(NO_DELAY)
    a, b = Consumer(h, "a"), Consumer(h, "b")
    settle(h, a)
    older = a.epoch
    settle(h, a, b)
    (kept, *_), (given,) = sorted(a.owned), b.owned
    assert h.commit({kept: 1}, member_id="a", generation=older) == {kept: ErrorCode.NONE}
    assert h.commit({given: 1}, member_id="a", generation=older) == {given: ErrorCode.STALE_MEMBER_EPOCH}


def test_strangers_commit_only_to_empty_groups() -> None:
    h = Harness(NO_DELAY)
    a = Consumer(h, "a")
    settle(h, a)
    place = ("t", 0)
    assert h.commit({place: 1}) == {place: ErrorCode.UNKNOWN_MEMBER_ID}
    assert h.commit({place: 1}, member_id="x", generation=3) == {place: ErrorCode.UNKNOWN_MEMBER_ID}
    a.leave()
    assert h.commit({place: 1}) == {place: ErrorCode.NONE}


def test_members_commit_with_versions_that_know_epochs() -> None:
    h = Harness(NO_DELAY)
    a = Consumer(h, "a")
    settle(h, a)
    place = ("t", 0)
    answer = h.commit({place: 1}, member_id="a", generation=a.epoch, version=8)
    assert answer == {place: ErrorCode.UNSUPPORTED_VERSION}


def test_offsets_are_read_by_members_at_their_epoch_and_by_anybody_who_is_none() -> None:
    h = Harness(NO_DELAY)
    a = Consumer(h, "a")
    settle(h, a)

    def fetch(member_id: str | None, epoch: int) -> int:
        request = OffsetFetchRequestGroup(group_id="g", member_id=member_id, member_epoch=epoch, topics=None)
        return h.shard.fetch_offsets(request, 9).error_code

    assert fetch(None, -1) == ErrorCode.NONE
    assert fetch("a", a.epoch) == ErrorCode.NONE
    assert fetch("a", a.epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert fetch("x", 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_with_members_is_not_deleted() -> None:
    h = Harness(NO_DELAY)
    a = Consumer(h, "a")
    settle(h, a)
    assert delete(h) == ErrorCode.NON_EMPTY_GROUP
    a.leave()
    assert delete(h) == ErrorCode.NONE
    assert h.shard.list() == []


def delete(h: Harness) -> int:
    code: int = h.call(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code
    return code


def test_describing_what_is_not_a_consumer_group_says_so() -> None:
    h = Harness(GroupSettings(group_initial_rebalance_delay_ms=0))
    h.stable_group(group="classic")
    assert described(h, "classic").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert described(h, "nobody").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert described(h, "").error_code == ErrorCode.INVALID_GROUP_ID
