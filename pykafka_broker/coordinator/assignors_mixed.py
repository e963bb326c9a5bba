"""The uniform assignor where members want different topics.

Members keep what they have and still want. Free partitions go to the least loaded subscriber, one topic after the
other. Then partitions move from most to least loaded subscribers of a topic, until a whole round moves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from pykafka_broker.coordinator.assignors import Assignment, Wishes

_ROUNDS = 16
"""Balancing settles long before; the bound is for inputs nobody thought of."""
_NOBODY = -1


def assign_mixed(wishes: Wishes) -> dict[str, Assignment]:
    """Every wanted partition goes to one subscriber, counts as close as the wishes allow."""
    table = _Table(wishes)
    if not table.subscribers:
        return {}
    table.keep_what_is_wanted()
    table.give_out_free()
    table.balance()
    return table.assignments()


class _Table:
    """Members by number, the owner of each partition, the load of each member. Lives within one assignment."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes
        self.subscribers: dict[UUID, list[int]] = {}
        for number, wish in enumerate(wishes.members.values()):
            for topic in wish.topics:
                self.subscribers.setdefault(topic, []).append(number)
        self._owners = {topic: [_NOBODY] * wishes.partition_counts[topic] for topic in self.subscribers}
        self._loads = [0] * len(wishes.members)

    def keep_what_is_wanted(self) -> None:
        for number, wish in enumerate(self._wishes.members.values()):
            for topic, partitions in wish.assigned.items():
                if topic in wish.topics:
                    owners = self._owners[topic]
                    for partition in partitions:
                        owners[partition] = number
                    self._loads[number] += len(partitions)

    def give_out_free(self) -> None:
        free = {
            topic: [p for p, owner in enumerate(owners) if owner == _NOBODY]
            for topic, owners in self._owners.items()
        }
        for topic in self._hardest_first(topic for topic, partitions in free.items() if partitions):
            scale = _Scale(self.subscribers[topic], self._loads)
            for partition in free[topic]:
                self._move(topic, partition, scale.next_lightest())

    def balance(self) -> None:
        topics = self._hardest_first(t for t, members in self.subscribers.items() if len(members) > 1)
        last_moved: int | None = None
        for _ in range(_ROUNDS):
            for index, topic in enumerate(topics):
                if index == last_moved:
                    return
                if self._balance_topic(topic) or last_moved is None:
                    last_moved = index

    def assignments(self) -> dict[str, Assignment]:
        """Members whose assignment did not change get the very object they had."""
        gathered: list[dict[UUID, list[int]]] = [{} for _ in self._loads]
        for topic, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                gathered[owner].setdefault(topic, []).append(partition)
        assignments: dict[str, Assignment] = {}
        for (member_id, wish), topics in zip(self._wishes.members.items(), gathered, strict=True):
            mine = {topic: frozenset(partitions) for topic, partitions in topics.items()}
            assignments[member_id] = wish.assigned if wish.assigned == mine else mine
        return assignments

    def _hardest_first(self, topics: Iterable[UUID]) -> list[UUID]:
        """Topics with many partitions for a subscriber first, and of those the ones with few subscribers."""

        def hardness(topic: UUID) -> tuple[float, int, int]:
            subscribers = len(self.subscribers[topic])
            return (-self._wishes.partition_counts[topic] / subscribers, subscribers, topic.int)

        return sorted(topics, key=hardness)

    def _balance_topic(self, topic: UUID) -> int:
        """Moves partitions from heavy to light subscribers; how many were moved."""
        scale = _Scale(self.subscribers[topic], self._loads)
        if scale.spread() <= 1:
            return 0
        held: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic]):
            held.setdefault(owner, []).append(partition)
        moved = 0
        while not scale.is_even():
            heaviest = scale.next_heaviest(held)
            if heaviest is None:
                break
            partition = held[heaviest].pop()
            lightest = scale.next_lightest()
            if scale.is_even():
                break
            self._move(topic, partition, lightest)
            moved += 1
        return moved

    def _move(self, topic: UUID, partition: int, member: int) -> None:
        owners = self._owners[topic]
        if owners[partition] != _NOBODY:
            self._loads[owners[partition]] -= 1
        owners[partition] = member
        self._loads[member] += 1


class _Scale:
    """Hands out the lightest and the heaviest subscribers of a topic in turn, each turn one level on.

    The lightest stand at the front, all raised to `_low`; the heaviest stand between `_heavy_start` and `_heavy_end`,
    all lowered to `_high`. Whoever has nothing left to give is put behind `_heavy_end`.
    """

    def __init__(self, members: list[int], loads: list[int]) -> None:
        self._loads = loads
        self._members = sorted(members, key=lambda member: (loads[member], member))
        self._low = loads[self._members[0]] - 1
        self._light_end = 0
        self._next_light = 0
        self._high = loads[self._members[-1]] + 1
        self._heavy_start = self._heavy_end = len(self._members)
        self._next_heavy = self._heavy_end - 1

    def spread(self) -> int:
        return self._loads[self._members[-1]] - self._loads[self._members[0]]

    def is_even(self) -> bool:
        return self._high - self._low <= 1

    def next_lightest(self) -> int:
        members, loads = self._members, self._loads
        if self._next_light >= self._light_end:
            self._low += 1
            while self._light_end < len(members) and loads[members[self._light_end]] == self._low:
                self._light_end += 1
            self._next_light = 0
        member = members[self._next_light]
        self._next_light += 1
        return member

    def next_heaviest(self, held: dict[int, list[int]]) -> int | None:
        """The next heavy member that still holds something; None if there is none."""
        while (member := self._next_heaviest()) is not None and not held.get(member):
            self._set_aside()
        return member

    def _next_heaviest(self) -> int | None:
        members, loads = self._members, self._loads
        if self._next_heavy < self._heavy_start:
            if self._heavy_end <= self._heavy_start and self._heavy_start > 0:
                self._high = loads[members[self._heavy_start - 1]]
            else:
                self._high -= 1
            while self._heavy_start > 0 and loads[members[self._heavy_start - 1]] == self._high:
                self._heavy_start -= 1
            self._next_heavy = self._heavy_end - 1
        if self._next_heavy < 0:
            return None
        member = members[self._next_heavy]
        self._next_heavy -= 1
        return member

    def _set_aside(self) -> None:
        members, at, last = self._members, self._next_heavy + 1, self._heavy_end - 1
        members[at], members[last] = members[last], members[at]
        self._heavy_end -= 1
