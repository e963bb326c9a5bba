"""The uniform assignor: members get equally many partitions, and keep as much of what they have as that allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.assignors_mixed import assign_mixed

if TYPE_CHECKING:
    from collections.abc import Collection
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from pykafka_broker.coordinator.assignors import Assignment, Wishes


def assign_uniform(wishes: Wishes) -> dict[str, Assignment]:
    """Counts differ by one at most where all want the same; else as little as the wishes allow."""
    if not wishes.members:
        return {}
    return _assign_alike(wishes) if wishes.alike else assign_mixed(wishes)


def _assign_alike(wishes: Wishes) -> dict[str, Assignment]:
    """First every member gives back what is above its share, then the unfilled ones are filled up."""
    topics = next(iter(wishes.members.values())).topics
    if not topics:
        return {}
    total = sum(wishes.partition_counts[topic] for topic in topics)
    least, extras = divmod(total, len(wishes.members))
    free = _never_assigned(wishes)
    assignments: dict[str, Assignment] = {}
    unfilled: list[tuple[str, int]] = []
    members_left = len(wishes.members)
    known = {id(topic) for topic in topics}  # the same ids are the same objects, but for a few
    for member_id, wish in wishes.members.items():
        takes_extra = extras > 0
        assigned = wish.assigned
        room = least + takes_extra - sum(map(len, assigned.values()))
        if room >= 0 and known.issuperset(map(id, assigned)):
            assignments[member_id] = assigned
        else:
            assignments[member_id], room, given_back = _cap(assigned, topics, least + takes_extra)
            free += given_back
            known.update(map(id, assignments[member_id]))
        if room and takes_extra and members_left > extras:
            # It does not need the extra one to keep what it has: leave it to a member that might.
            room -= 1
            takes_extra = False
        if room:
            unfilled.append((member_id, room))
        extras -= takes_extra
        members_left -= 1
    _fill(assignments, unfilled, free)
    return assignments


def _never_assigned(wishes: Wishes) -> list[tuple[UUID, int]]:
    # By identity first, because hashing a UUID costs more than all the rest and there are far more members than topics.
    taken_by: dict[int, tuple[UUID, set[int]]] = {}
    for wish in wishes.members.values():
        for topic, partitions in wish.assigned.items():
            found = taken_by.get(id(topic))
            if found is None:
                found = taken_by[id(topic)] = (topic, set())
            found[1].update(partitions)
    taken: dict[UUID, set[int]] = {}
    for topic, partitions_taken in taken_by.values():
        taken.setdefault(topic, set()).update(partitions_taken)
    return [
        (topic, partition)
        for topic in next(iter(wishes.members.values())).topics
        for partition in _without(wishes.partition_counts[topic], taken.get(topic, ()))
    ]


def _without(count: int, taken: Collection[int]) -> list[int]:
    return [partition for partition in range(count) if partition not in taken]


def _cap(
    assigned: Assignment, topics: AbstractSet[UUID], room: int
) -> tuple[Assignment, int, list[tuple[UUID, int]]]:
    """What a member keeps, how many more it may take, and what it gives back."""
    kept: dict[UUID, frozenset[int]] = {}
    given_back: list[tuple[UUID, int]] = []
    for topic, partitions in assigned.items():
        if topic not in topics:
            continue
        if len(partitions) > room:
            ordered = sorted(partitions)
            partitions, surplus = frozenset(ordered[:room]), ordered[room:]
            given_back += [(topic, partition) for partition in surplus]
        if partitions:
            kept[topic] = partitions
        room -= len(partitions)
    unchanged = len(kept) == len(assigned) and not given_back
    return (assigned if unchanged else kept), room, given_back


def _fill(
    assignments: dict[str, Assignment], unfilled: list[tuple[str, int]], free: list[tuple[UUID, int]]
) -> None:
    start = 0
    for member_id, room in unfilled:
        added: dict[UUID, list[int]] = {}
        for topic, partition in free[start : start + room]:
            added.setdefault(topic, []).append(partition)
        start += room
        if added:
            grown = dict(assignments[member_id])
            for topic, partitions in added.items():
                grown[topic] = grown.get(topic, frozenset()) | frozenset(partitions)
            assignments[member_id] = grown
