"""The range assignor: every topic is cut into runs, and members take theirs in one order for all topics.

So topics of equal size that are wanted by the same members are co-partitioned: partition n of each goes to one member.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

    from pykafka_broker.coordinator.assignors import Assignment, MemberWish, Wishes


@dataclass(slots=True)
class _Cut:
    """How far a topic is given away. Lives within one assignment."""

    size: int
    least: int
    extras: int
    """How many of the members to come get one partition more."""
    start: int = 0

    def take(self) -> frozenset[int]:
        length = self.least
        if self.extras:
            length += 1
            self.extras -= 1
        first, self.start = self.start, min(self.start + length, self.size)
        return frozenset(range(first, self.start))


def assign_range(wishes: Wishes) -> dict[str, Assignment]:
    """Members in the order of their instance ids, then those without one in the order of their member ids."""
    cuts = _cuts(wishes)
    assignments: dict[str, Assignment] = {}
    for member_id, wish in sorted(wishes.members.items(), key=_order):
        taken = {topic: cuts[topic].take() for topic in wish.topics}
        assignments[member_id] = {topic: partitions for topic, partitions in taken.items() if partitions}
    return assignments


def _order(member: tuple[str, MemberWish]) -> tuple[bool, str]:
    member_id, wish = member
    return (wish.instance_id is None, wish.instance_id or member_id)


def _cuts(wishes: Wishes) -> dict[UUID, _Cut]:
    wanted_by: dict[UUID, int] = {}
    for wish in wishes.members.values():
        for topic in wish.topics:
            wanted_by[topic] = wanted_by.get(topic, 0) + 1
    cuts = {}
    for topic, members in wanted_by.items():
        size = wishes.partition_counts[topic]
        cuts[topic] = _Cut(size, *divmod(size, members))
    return cuts
