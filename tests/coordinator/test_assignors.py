"""What the assignors promise: everything wanted is given out once, evenly, and members keep what they have."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.coordinator.assignors import ASSIGNORS, MemberWish, Wishes

if TYPE_CHECKING:
    from pykafka_broker.coordinator.assignors import Assignment

A, B, C = UUID(int=2), UUID(int=3), UUID(int=4)


def topics(*ids: UUID) -> frozenset[UUID]:
    return frozenset(ids)


def counts(assignments: dict[str, Assignment]) -> dict[str, int]:
    return {member: sum(map(len, mine.values())) for member, mine in assignments.items()}


def given_out(assignments: dict[str, Assignment]) -> list[tuple[UUID, int]]:
    return [(t, p) for mine in assignments.values() for t, parts in mine.items() for p in parts]


@st.composite
def wishes(draw: st.DrawFn) -> Wishes:
    sizes = draw(
        st.dictionaries(st.integers(2, 9).map(lambda n: UUID(int=n)), st.integers(1, 12), min_size=1)
    )
    alike = draw(st.booleans())
    some = st.frozensets(st.sampled_from(sorted(sizes)), min_size=1)
    shared = draw(some)
    names = draw(st.lists(st.text("abcdef", min_size=1, max_size=4), min_size=1, max_size=8, unique=True))
    owners = {
        (topic, partition): draw(st.sampled_from([None, *names]))
        for topic, n in sizes.items()
        for partition in range(n)
    }
    members = {}
    for name in names:
        mine: dict[UUID, set[int]] = {}
        for (topic, partition), owner in owners.items():
            if owner == name:
                mine.setdefault(topic, set()).add(partition)
        instance = f"i{name}" if draw(st.booleans()) else None
        assigned = {topic: frozenset(partitions) for topic, partitions in mine.items()}
        members[name] = MemberWish(shared if alike else draw(some), assigned, instance)
    return Wishes(members, sizes, alike)


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(wishes=wishes())
def test_everything_wanted_is_given_once_to_somebody_who_wants_it(name: str, wishes: Wishes) -> None:
    assignments = ASSIGNORS[name](wishes)
    wanted = {t for wish in wishes.members.values() for t in wish.topics}
    assert sorted(given_out(assignments)) == sorted(
        (t, p) for t in wanted for p in range(wishes.partition_counts[t])
    )
    for member, mine in assignments.items():
        assert mine.keys() <= wishes.members[member].topics
        assert all(mine.values())


@given(wishes=wishes().filter(lambda wishes: wishes.alike))
def test_uniform_counts_differ_by_one_at_most_and_nothing_moves_without_need(wishes: Wishes) -> None:
    assignments = ASSIGNORS["uniform"](wishes)
    loads = counts(assignments)
    assert max(loads.values()) - min(loads.values()) <= 1
    for member, wish in wishes.members.items():
        had = {(t, p) for t, parts in wish.assigned.items() for p in parts if t in wish.topics}
        kept = had & {(t, p) for t, parts in assignments[member].items() for p in parts}
        assert len(kept) >= min(len(had), *loads.values())


@given(wishes=wishes())
def test_uniform_is_settled_by_its_own_outcome(wishes: Wishes) -> None:
    once = ASSIGNORS["uniform"](wishes)
    again = Wishes(
        {m: MemberWish(w.topics, once[m], w.instance_id) for m, w in wishes.members.items()},
        wishes.partition_counts,
        wishes.alike,
    )
    assert ASSIGNORS["uniform"](again) == once


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_nobody_gets_nothing(name: str) -> None:
    assert ASSIGNORS[name](Wishes({}, {}, alike=True)) == {}


def test_uniform_gives_a_newcomer_its_share_and_leaves_the_rest_in_place() -> None:
    first = ASSIGNORS["uniform"](Wishes({"m1": MemberWish(topics(A))}, {A: 6}, alike=True))
    members = {"m1": MemberWish(topics(A), first["m1"]), "m2": MemberWish(topics(A))}
    second = ASSIGNORS["uniform"](Wishes(members, {A: 6}, alike=True))
    assert counts(second) == {"m1": 3, "m2": 3}
    assert second["m1"][A] < first["m1"][A]


@given(wishes=wishes())
def test_uniform_leaves_no_partition_with_a_member_that_has_two_more_than_another_subscriber(
    wishes: Wishes,
) -> None:
    assignments = ASSIGNORS["uniform"](wishes)
    loads = counts(assignments)
    for holder, mine in assignments.items():
        for topic in mine:
            subscribers = [m for m, wish in wishes.members.items() if topic in wish.topics]
            assert all(loads[holder] - loads[other] <= 1 for other in subscribers)


def test_range_puts_the_same_partitions_of_alike_topics_together() -> None:
    members = {f"m{n}": MemberWish(topics(A, B)) for n in range(3)}
    assignments = ASSIGNORS["range"](Wishes(members, {A: 7, B: 7}, alike=True))
    assert all(mine[A] == mine[B] for mine in assignments.values())
    assert [sorted(assignments[f"m{n}"][A]) for n in range(3)] == [[0, 1, 2], [3, 4], [5, 6]]


def test_range_orders_static_members_by_instance_so_that_a_restart_moves_nothing() -> None:
    def partitions_of(member_id: str) -> dict[str | None, frozenset[int]]:
        members = {
            member_id: MemberWish(topics(A), instance_id="i1"),
            "x": MemberWish(topics(A), instance_id="i0"),
            "dynamic": MemberWish(topics(A)),
        }
        told = ASSIGNORS["range"](Wishes(members, {A: 3}, alike=True))
        return {members[m].instance_id: mine[A] for m, mine in told.items()}

    assert partitions_of("aaa") == partitions_of("zzz")


def test_a_hundred_members_with_a_thousand_partitions_are_assigned_quickly() -> None:
    members = {f"m{n}": MemberWish(topics(A)) for n in range(100)}
    told = ASSIGNORS["uniform"](Wishes(members, {A: 1000}, alike=True))
    assert set(counts(told).values()) == {10}
