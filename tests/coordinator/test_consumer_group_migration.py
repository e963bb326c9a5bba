"""Groups on their way from the classic protocol to the new one and back, while their members go on reading."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pykafka_broker.coordinator.consumer_protocol import (
    Subscription,
    TopicPartitionList,
    read_assignment,
    write_assignment,
)
from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.protocol.codec import encode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.leave_group import MemberIdentity

from .consumers import Consumer, Partition, described, image, settle
from .harness import Harness

SETTINGS = GroupSettings(group_initial_rebalance_delay_ms=0, group_consumer_assignment_interval_ms=0)
ALL_OF_T = {("t", 0), ("t", 1), ("t", 2)}


class ClassicConsumer:
    """A client of the classic protocol with a cooperative assignor. In a classic group of its own it assigns all to
    itself; in a consumer group it does what it is told."""

    def __init__(self, h: Harness, *, group: str = "g", instance: str | None = None) -> None:
        self.h = h
        self.group = group
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.owned: set[Partition] = set()
        self.joined = False

    def beat(self) -> None:
        """One round: a heartbeat, and if that says so, join and sync."""
        if self.joined:
            error = self.h.heartbeat(
                self.member_id, self.generation, group=self.group, instance=self.instance
            )
            if error == ErrorCode.NONE:
                return
            if error != ErrorCode.REBALANCE_IN_PROGRESS:
                self.owned, self.joined = set(), False
            if error == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        self.join()

    def join(self) -> None:
        options: dict[str, Any] = {"group": self.group, "instance": self.instance, "session_ms": 45_000}
        options["protocols"] = {"cooperative-sticky": self.subscription()}
        if not self.member_id and self.instance is None:
            self.member_id, token = self.h.new_member(**options)
        else:
            token = self.h.join(self.member_id, **options)
        self.h.pass_time()
        answer = self.h.replies[token]
        assert answer.error_code == ErrorCode.NONE
        self.member_id, self.generation, self.joined = answer.member_id, answer.generation_id, True
        parts = {m.member_id: write_assignment({"t": {0, 1, 2}}, 1) for m in answer.members}
        synced = self.h.replies[
            self.h.sync(
                self.member_id,
                self.generation,
                parts,
                group=self.group,
                instance=self.instance,
                protocol_name="cooperative-sticky",
            )
        ]
        if synced.error_code == ErrorCode.NONE:
            told = read_assignment(synced.assignment).assigned_partitions
            self.owned = {(topic.topic, p) for topic in told for p in topic.partitions}

    def subscription(self) -> bytes:
        owned = sorted(p for _, p in self.owned)
        lists = [TopicPartitionList(topic="t", partitions=owned)] if owned else []
        return b"\0\1" + b"".join(encode(Subscription(topics=["t"], owned_partitions=lists), 1))

    def leave(self) -> None:
        self.h.leave(self.member_id, group=self.group)


def classic_group(h: Harness) -> ClassicConsumer:
    member = ClassicConsumer(h)
    member.beat()
    assert member.owned == ALL_OF_T
    assert h.state() == "Stable"
    return member


def rounds(h: Harness, *members: Any, count: int = 12) -> None:
    for _ in range(count):
        for member in members:
            member.beat()
        assert len({p for m in members for p in m.owned}) == sum(len(m.owned) for m in members)
        h.pass_time(3_000)


def test_a_classic_group_becomes_a_consumer_group_when_a_new_member_joins_and_nothing_is_read_twice() -> None:
    h = Harness(SETTINGS)
    old, new = classic_group(h), Consumer(h, "new")
    new.beat()
    group = described(h)
    assert group.group_state == "Reconciling"
    assert [member.member_type for member in group.members] == [0, 1]
    assert new.owned == set(), "the old one holds everything"
    assert h.heartbeat(old.member_id, old.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    rounds(h, old, new)
    assert old.owned | new.owned == ALL_OF_T
    assert old.owned
    assert new.owned
    assert described(h).group_state == "Stable"


def test_a_rolling_upgrade_ends_with_a_consumer_group_of_new_members() -> None:
    h = Harness(SETTINGS)
    olds = [classic_group(h)]
    news = [Consumer(h, f"new{n}") for n in range(2)]
    rounds(h, *olds, news[0])
    olds.pop().leave()
    rounds(h, *news)
    assert [member.member_type for member in described(h).members] == [1, 1]
    assert news[0].owned | news[1].owned == ALL_OF_T


def test_the_group_becomes_classic_again_when_the_last_new_member_leaves() -> None:
    h = Harness(SETTINGS)
    old, new = classic_group(h), Consumer(h, "new")
    rounds(h, old, new)
    new.leave()
    assert described(h).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert h.describe().group_state != "Dead"
    rounds(h, old)
    assert old.owned == ALL_OF_T
    assert h.state() == "Stable"


def test_the_group_becomes_classic_again_when_the_last_new_member_is_given_up() -> None:
    h = Harness(SETTINGS)
    old, new = classic_group(h), Consumer(h, "new")
    rounds(h, old, new)
    for _ in range(20):
        h.pass_time(3_000)
        old.beat()
    assert h.state() == "Stable"
    assert old.owned == ALL_OF_T


def test_a_static_member_goes_over_and_back_with_what_it_has() -> None:
    h = Harness(SETTINGS)
    old = ClassicConsumer(h, instance="i")
    old.beat()
    new = Consumer(h, "new", instance="i")
    new.beat()
    assert new.owned == ALL_OF_T
    assert [member.member_id for member in described(h).members] == ["new"]
    assert h.heartbeat(old.member_id, old.generation, instance="i") == ErrorCode.FENCED_INSTANCE_ID
    back = ClassicConsumer(h, instance="i")
    rounds(h, back)
    assert h.state() == "Stable"
    assert back.owned == ALL_OF_T


def test_an_empty_classic_group_is_simply_replaced_and_keeps_its_offsets() -> None:
    h = Harness(SETTINGS)
    h.commit({("t", 0): 7})
    a = Consumer(h, "a")
    settle(h, a)
    assert h.offsets() == {("t", 0): 7}
    assert described(h).group_state == "Stable"


def test_an_empty_consumer_group_is_simply_replaced_and_keeps_its_offsets() -> None:
    h = Harness(SETTINGS)
    a = Consumer(h, "a")
    settle(h, a)
    h.commit({("t", 0): 7}, member_id="a", generation=a.epoch)
    a.leave()
    classic_group(h)
    assert h.offsets() == {("t", 0): 7}
    assert image(h.reloaded()) == {}
    assert h.reloaded().state() == "Stable"


def test_an_empty_consumer_group_is_still_there_if_its_successor_cannot_be_written() -> None:
    h = Harness(SETTINGS)
    a = Consumer(h, "a")
    settle(h, a)
    a.leave()
    h.refuse_appends = ErrorCode.NOT_ENOUGH_REPLICAS
    assert h.replies[h.join()].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    h.refuse_appends = None
    assert described(h).group_state == "Empty"
    assert h.replies[h.join("somebody")].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_those_who_wait_for_a_classic_rebalance_are_sent_to_join_again() -> None:
    h = Harness(SETTINGS)
    classic_group(h)
    _, token = h.new_member(protocols={"cooperative-sticky": ClassicConsumer(h).subscription()})
    assert h.waits(token)
    Consumer(h, "new").beat()
    assert h.replies[token].error_code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_upgrades_can_be_switched_off(policy: str) -> None:
    h = Harness(replace(SETTINGS, group_consumer_migration_policy=policy))
    classic_group(h)
    assert Consumer(h, "new").beat().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert h.state() == "Stable"


def test_where_upgrades_are_one_way_the_group_stays_a_consumer_group() -> None:
    h = Harness(replace(SETTINGS, group_consumer_migration_policy="Upgrade"))
    old, new = classic_group(h), Consumer(h, "new")
    rounds(h, old, new)
    new.leave()
    rounds(h, old)
    assert [member.member_type for member in described(h).members] == [0]
    assert old.owned == ALL_OF_T


def test_where_migration_is_off_classic_members_cannot_join_consumer_groups() -> None:
    h = Harness(replace(SETTINGS, group_consumer_migration_policy="disabled"))
    settle(h, Consumer(h, "a"))
    assert h.replies[h.join()].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_groups_of_other_kinds_or_unreadable_ones_are_not_upgraded() -> None:
    h = Harness(SETTINGS)
    worker, token = h.new_member(group="connect", protocol_type="connect")
    h.pass_time()
    generation = h.replies[token].generation_id
    h.sync(worker, generation, {worker: b""}, group="connect", protocol_type="connect")
    h.stable_group(group="odd", protocols={"range": b"?"})
    h.stable_group(group="strange")  # its assignments are no assignments
    for group in ("connect", "odd", "strange"):
        assert Consumer(h, "a", group=group).beat().error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert h.state(group) == "Stable"


def test_a_group_with_an_assignor_that_keeps_data_is_not_upgraded() -> None:
    h = Harness(SETTINGS)
    member, token = h.new_member()
    h.pass_time()
    generation = h.replies[token].generation_id
    h.sync(member, generation, {member: bytes.fromhex("0000 00000000 00000001 ff")})
    assert Consumer(h, "a").beat().error_code == ErrorCode.GROUP_ID_NOT_FOUND


# Classic members inside a consumer group.


def mixed() -> tuple[Harness, ClassicConsumer, Consumer]:
    h = Harness(SETTINGS)
    new, old = Consumer(h, "new"), ClassicConsumer(h)
    settle(h, new)
    rounds(h, new, old)
    return h, old, new


def test_classic_members_can_join_a_consumer_group() -> None:
    h, old, new = mixed()
    assert old.owned | new.owned == ALL_OF_T
    assert [member.member_type for member in described(h).members] == [1, 0]
    assert image(h.reloaded()) == image(h)


def test_classic_members_are_checked_as_ever() -> None:
    h, old, new = mixed()
    assert h.heartbeat("x", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.heartbeat("new", new.epoch) == ErrorCode.UNKNOWN_MEMBER_ID, (
        "it does not speak the classic protocol"
    )
    assert h.heartbeat(old.member_id, old.generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert h.heartbeat(old.member_id, old.generation, instance="i") == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.replies[h.sync("x", 1)].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.replies[h.sync(old.member_id, 1)].error_code == ErrorCode.ILLEGAL_GENERATION
    wrong = h.sync(old.member_id, old.generation, protocol_name="range")
    assert h.replies[wrong].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    unlike = h.join(protocol_type="connect")
    assert h.replies[unlike].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    hasty = h.join(session_ms=1)
    assert h.replies[hasty].error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    place = min(old.owned)
    stale = h.commit({place: 1}, member_id=old.member_id, generation=old.generation + 1)
    assert stale == {place: ErrorCode.ILLEGAL_GENERATION}
    assert h.commit({place: 1}, member_id=old.member_id, generation=old.generation, version=7) == {
        place: ErrorCode.NONE
    }


def test_a_classic_member_that_does_not_join_again_in_time_is_given_up() -> None:
    h, old, new = mixed()
    late = Consumer(h, "late")
    late.beat()
    late.beat()
    old_id = old.member_id
    for _ in range(20):
        h.heartbeat(old_id, old.generation)
        new.beat()
        late.beat()
        h.pass_time(3_000)
    assert h.heartbeat(old_id, old.generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_joins_and_does_not_sync_is_given_up() -> None:
    h = Harness(SETTINGS)
    new, old = Consumer(h, "new"), ClassicConsumer(h)
    settle(h, new)
    member_id, token = h.new_member(protocols={"cooperative-sticky": old.subscription()}, rebalance_ms=10_000)
    generation = h.replies[token].generation_id
    for _ in range(4):
        h.pass_time(3_000)
        h.heartbeat(member_id, generation)
        new.beat()
    assert h.heartbeat(member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_by_the_classic_request_works_for_all_members_and_says_who_is_unknown() -> None:
    h, old, _new = mixed()
    third = Consumer(h, "third", instance="i")
    third.beat()
    answer = h.leave(old.member_id, "x", MemberIdentity(member_id="", group_instance_id="i"))
    assert [member.error_code for member in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert [member.member_id for member in described(h).members] == ["new"]


@pytest.mark.parametrize("version", [0, 2])
def test_leaving_by_the_oldest_classic_request(version: int) -> None:
    h, old, _ = mixed()
    assert h.leave(old.member_id, version=version).error_code == ErrorCode.NONE
    assert h.leave(old.member_id, version=version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
