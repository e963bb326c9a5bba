"""Committing, reading and deleting offsets."""

from __future__ import annotations

from uuid import UUID

import pytest

from pykafka_broker.coordinator.effects import Record
from pykafka_broker.coordinator.offsets_fetch import groups_of, response_of
from pykafka_broker.coordinator.records import OffsetCommitKey, OffsetCommitValue
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from pykafka_broker.protocol.types import ZERO_UUID

from .harness import Harness

OK = ErrorCode.NONE
PLACE = ("t", 0)


# Commits.


@pytest.mark.parametrize("version", range(11))
def test_an_outsider_commits_for_a_group_without_members(version: int) -> None:
    h = Harness()
    assert h.commit({PLACE: 7}, version=version, metadata="note", epoch=5) == {PLACE: OK}
    found = h.offset(*PLACE)
    assert (found.committed_offset, found.metadata) == (7, "note")
    assert found.committed_leader_epoch == 5
    assert h.state() == "Empty"
    assert h.shard.list()[0].protocol_type == ""


@pytest.mark.parametrize("version", range(11))
def test_a_member_commits_at_its_generation(version: int) -> None:
    h = Harness()
    (member,) = h.stable_group()
    assert h.commit({PLACE: 7, ("u", 0): 8}, member_id=member, generation=1, version=version) == {
        PLACE: OK,
        ("u", 0): OK,
    }
    assert h.offsets() == {PLACE: 7, ("u", 0): 8}


def test_what_is_committed_is_what_is_written() -> None:
    h = Harness()
    h.commit({PLACE: 7}, metadata="note", epoch=5)
    assert h.records() == [
        Record(
            OffsetCommitKey(group="g", topic="t", partition=0),
            OffsetCommitValue(
                offset=7,
                leader_epoch=5,
                metadata="note",
                commit_timestamp=h.now_ms,
                topic_id=h.topics.topic_id("t") or ZERO_UUID,
            ),
        )
    ]


def test_no_metadata_is_empty_metadata() -> None:
    h = Harness()
    h.commit({PLACE: 7}, metadata=None)
    assert h.offset(*PLACE).metadata == ""


def test_a_client_may_say_when_it_committed_and_for_how_long() -> None:
    h = Harness()
    h.commit({PLACE: 7}, version=1, timestamp=123)
    h.commit({("u", 0): 7}, version=2, retention_ms=1_000)
    first, second = (record.value for record in h.records())
    assert (first.commit_timestamp, first.expire_timestamp) == (123, -1)
    assert (second.commit_timestamp, second.expire_timestamp) == (h.now_ms, h.now_ms + 1_000)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"member_id": "ghost", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "", "generation": -1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 1, "instance": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_not_commit_for_a_group_with_members(options: dict[str, object], error: ErrorCode) -> None:
    h = Harness()
    (member,) = h.stable_group()
    assert h.commit({PLACE: 7}, **{"member_id": member, **options}) == {PLACE: error}  # type: ignore[arg-type]
    assert h.offsets() == {}


@pytest.mark.parametrize("version", range(1, 11))
def test_a_generation_of_a_group_that_is_not_there(version: int) -> None:
    h = Harness()
    expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
    assert h.commit({PLACE: 7}, member_id="m", generation=1, version=version) == {PLACE: expected}
    assert h.shard.list() == []


def test_a_member_cannot_commit_while_its_group_syncs_but_while_it_rebalances() -> None:
    h = Harness()
    member, token = h.new_member()
    h.pass_time()
    assert h.replies[token].generation_id == 1
    assert h.commit({PLACE: 1}, member_id=member, generation=1) == {PLACE: ErrorCode.REBALANCE_IN_PROGRESS}
    h.sync(member, 1, {member: b""})
    h.new_member()
    assert h.state() == "PreparingRebalance"
    assert h.commit({PLACE: 1}, member_id=member, generation=1) == {PLACE: OK}


def test_a_stale_member_of_a_group_that_is_empty_by_now_is_unknown() -> None:
    h = Harness()
    (member,) = h.stable_group()
    h.leave(member)
    assert h.commit({PLACE: 1}, member_id=member, generation=1) == {PLACE: ErrorCode.UNKNOWN_MEMBER_ID}
    assert h.commit({PLACE: 1}) == {PLACE: OK}


def test_metadata_has_a_limit_for_each_partition() -> None:
    h = Harness()
    assert h.commit({PLACE: 1}, metadata="x" * 4096) == {PLACE: OK}
    too_large = {("t", 1): ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert h.commit({("t", 1): 1}, metadata="x" * 4097) == too_large
    assert h.commit({("t", 1): 1}, metadata="\N{OWL}" * 2049) == too_large, "two places each, as Java counts"
    assert h.offsets() == {PLACE: 1}


def test_partitions_that_are_not_there_are_refused_one_by_one() -> None:
    h = Harness()
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked = {PLACE: 1, ("t", 3): 1, ("t", -1): 1, ("nowhere", 0): 1}
    assert list(h.commit(asked).values()) == [OK, unknown, unknown, unknown]
    assert list(h.commit(asked, version=10).values()) == [OK, unknown, unknown, ErrorCode.UNKNOWN_TOPIC_ID]


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_a_commit_that_cannot_be_written_is_refused(refused: ErrorCode, told: ErrorCode) -> None:
    h = Harness()
    h.commit({PLACE: 1})
    h.refuse_appends = refused
    assert h.commit({PLACE: 2}) == {PLACE: told}
    assert h.offsets() == {PLACE: 1}


# Reading.


def test_nothing_committed_is_minus_one_also_where_there_is_no_group() -> None:
    h = Harness()
    for group in ("nowhere", "g"):
        found = h.offset("t", 1, group=group)
        assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (-1, -1, "")
        assert found.error_code == OK
        h.commit({PLACE: 1})


def test_all_topics_means_those_with_offsets() -> None:
    h = Harness()
    h.commit({PLACE: 1, ("t", 2): 2, ("u", 0): 3})
    assert h.offsets() == {PLACE: 1, ("t", 2): 2, ("u", 0): 3}
    assert h.offsets("nowhere") == {}


def test_topics_are_asked_by_id_and_unknown_ids_are_said_to_be() -> None:
    h = Harness()
    h.commit({PLACE: 4})
    known, unknown = h.topics.topic_id("t"), UUID(int=5)
    assert known is not None
    answer = h.shard.fetch_offsets(
        OffsetFetchRequestGroup(
            group_id="g",
            topics=[
                OffsetFetchRequestTopics(topic_id=known, partition_indexes=[0]),
                OffsetFetchRequestTopics(topic_id=unknown, partition_indexes=[0, 1]),
            ],
        ),
        10,
    )
    assert [topic.topic_id for topic in answer.topics] == [known, unknown]
    assert answer.topics[0].partitions[0].committed_offset == 4
    assert [p.error_code for p in answer.topics[1].partitions] == [ErrorCode.UNKNOWN_TOPIC_ID] * 2


def test_an_offset_of_a_topic_that_was_made_anew_is_none_to_those_who_ask_by_id() -> None:
    h = Harness()
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    h.shard.replay(Record(key, OffsetCommitValue(offset=4, topic_id=UUID(int=5))))
    topic_id = h.topics.topic_id("t")
    assert topic_id is not None
    wanted = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])]
    answer = h.shard.fetch_offsets(OffsetFetchRequestGroup(group_id="g", topics=wanted), 10)
    assert answer.topics[0].partitions[0].committed_offset == -1
    assert h.offset("t", 0).committed_offset == 4


@pytest.mark.parametrize("version", range(8))
def test_old_requests_ask_for_one_group_in_a_form_of_their_own(version: int) -> None:
    h = Harness()
    h.commit({PLACE: 4})
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
    request = OffsetFetchRequest(group_id="g", topics=topics)
    parts = [h.shard.fetch_offsets(group, version) for group in groups_of(request, version)]
    response = response_of(parts, request, version)
    assert [p.committed_offset for p in response.topics[0].partitions] == [4, -1]
    refused = response_of(
        [OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.NOT_COORDINATOR)], request, version
    )
    if version >= 2:
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
    else:
        assert [p.error_code for p in refused.topics[0].partitions] == [ErrorCode.NOT_COORDINATOR] * 2


def test_offsets_of_open_transactions_make_the_committed_one_unstable() -> None:
    h = Harness()
    h.commit({PLACE: 1})
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    h.shard.replay(Record(key, OffsetCommitValue(offset=9)), producer_id=7)
    wanted = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    asked = OffsetFetchRequestGroup(group_id="g", topics=wanted)
    stable = h.shard.fetch_offsets(asked, 9, require_stable=True).topics[0].partitions[0]
    assert (stable.error_code, stable.committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert h.shard.fetch_offsets(asked, 9).topics[0].partitions[0].committed_offset == 1
    h.shard.end_transaction(7, committed=True)
    assert h.shard.fetch_offsets(asked, 9, require_stable=True).topics[0].partitions[0].committed_offset == 9


def test_an_aborted_transaction_commits_nothing_and_a_later_commit_overtakes_an_earlier_transaction() -> None:
    h = Harness()
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    h.shard.replay(Record(key, OffsetCommitValue(offset=9)), producer_id=7)
    h.shard.end_transaction(7, committed=False)
    assert h.offsets() == {}
    h.shard.replay(Record(key, OffsetCommitValue(offset=9)), producer_id=7)
    h.commit({PLACE: 12})
    h.shard.end_transaction(7, committed=True)
    assert h.offsets() == {PLACE: 12}


# Deleting.


def delete(h: Harness, *places: tuple[str, int], group: str = "g") -> tuple[ErrorCode, list[ErrorCode]]:
    topics = [
        OffsetDeleteRequestTopic(name=t, partitions=[OffsetDeleteRequestPartition(partition_index=p)])
        for t, p in places
    ]
    answer = h.call(OffsetDeleteRequest(group_id=group, topics=topics), 0)
    codes = [ErrorCode(p.error_code) for t in answer.topics for p in t.partitions]
    return ErrorCode(answer.error_code), codes


def test_offsets_of_an_empty_group_can_be_deleted() -> None:
    h = Harness()
    h.commit({PLACE: 1, ("t", 1): 2})
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    places = (PLACE, ("t", 2), ("t", 9), ("nowhere", 0))
    assert delete(h, *places) == (OK, [OK, OK, unknown, unknown])
    assert h.offsets() == {("t", 1): 2}
    assert h.reloaded().offsets() == {("t", 1): 2}


def test_offsets_of_topics_in_use_stay() -> None:
    h = Harness()
    (member,) = h.stable_group()
    h.commit({PLACE: 1, ("u", 0): 2}, member_id=member, generation=1)
    assert delete(h, PLACE, ("u", 0)) == (OK, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, OK])
    assert h.offsets() == {PLACE: 1}


def test_offsets_of_others_than_consumers_stay_while_there_are_members() -> None:
    h = Harness()
    member, _ = h.new_member(protocol_type="connect")
    h.pass_time()
    assert delete(h, PLACE) == (ErrorCode.NON_EMPTY_GROUP, [])
    h.leave(member)
    assert delete(h, PLACE) == (OK, [OK])


def test_a_group_that_is_not_there_has_no_offsets_to_delete() -> None:
    assert delete(Harness(), PLACE) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    h = Harness()
    h.commit({PLACE: 1, ("u", 0): 2})
    h.commit({PLACE: 3}, group="other")
    h.apply(h.shard.topic_deleted(["t", "nowhere"]))
    assert h.offsets() == {("u", 0): 2}
    assert h.offsets("other") == {}
    assert h.reloaded().offsets() == {("u", 0): 2}
