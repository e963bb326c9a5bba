"""Leads one member one step towards its part of the target.

A member first gives back what is not meant for it any more and says so by no longer owning it; then it moves to the
target's epoch and gets what nobody else holds; what others still hold it gets later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pykafka_broker.coordinator.consumer_group_member import NOTHING_HELD, MemberState
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from pykafka_broker.coordinator.assignors import Assignment
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember, Held

    Owned = Mapping[UUID, AbstractSet[int]]
    """What a member says it owns."""


def reconcile(
    member: ConsumerMember,
    *,
    target_epoch: int,
    target: Assignment,
    held_in: Callable[[UUID, int], int | None],
    subscribed: AbstractSet[UUID],
    resubscribed: bool,
    owned: Owned | None,
) -> ConsumerMember:
    """The member after one step, itself if there is none to take.

    `owned` is None if the member did not say. FENCED_MEMBER_EPOCH if its state is not known and it may own something.
    """
    step = _Step(member, target_epoch, target, held_in, subscribed, owned)
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return step.give_up_unsubscribed() if resubscribed else member
        case MemberState.UNREVOKED if step.still_owns(member.revoking):
            return step.give_up_unsubscribed() if resubscribed else member
        case MemberState.UNKNOWN:
            if owned is None or owned:
                raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, "give up all partitions and join again")
            return step.next(target_epoch)
        case _:
            return step.next(member.epoch)


class _Step:
    """What is needed to decide one step. Lives within one."""

    def __init__(
        self,
        member: ConsumerMember,
        target_epoch: int,
        target: Assignment,
        held_in: Callable[[UUID, int], int | None],
        subscribed: AbstractSet[UUID],
        owned: Owned | None,
    ) -> None:
        self._member = member
        self._target_epoch = target_epoch
        self._target = target
        self._held_in = held_in
        self._subscribed = subscribed
        self._owned = owned

    def still_owns(self, held: Held) -> bool:
        """A member that does not say owns what it owned."""
        if self._owned is None:
            return True
        return any(
            not partitions.isdisjoint(held[topic])
            for topic, partitions in self._owned.items()
            if topic in held
        )

    def give_up_unsubscribed(self) -> ConsumerMember:
        """Takes topics away that the member does not want any more, without waiting for another target."""
        member = self._member
        unwanted = {topic: held for topic, held in member.assigned.items() if topic not in self._subscribed}
        if not unwanted:
            return member
        assigned = {topic: held for topic, held in member.assigned.items() if topic in self._subscribed}
        revoking = dict(member.revoking)
        for topic, held in unwanted.items():
            revoking[topic] = {**revoking.get(topic, {}), **held}
        if self.still_owns(revoking):
            return member.moved_to(member.epoch, MemberState.UNREVOKED, assigned, revoking)
        return replace(member, previous_epoch=member.epoch, assigned=assigned)

    def next(self, epoch: int) -> ConsumerMember:
        """Keeps what is meant for the member. If it owns more, that is to be given back in `epoch`; else the member
        moves on and gets what is free."""
        member = self._member
        kept: dict[UUID, dict[int, int]] = {}
        surplus: dict[UUID, dict[int, int]] = {}
        gained: dict[UUID, dict[int, int]] = {}
        awaits_others = False
        for topic in {**self._target, **member.assigned}:
            wanted = self._target.get(topic, frozenset()) if topic in self._subscribed else frozenset()
            held = member.assigned.get(topic, {})
            free = self._free(topic, wanted.difference(held))
            awaits_others = awaits_others or len(free) < len(wanted.difference(held))
            _put(kept, topic, {p: since for p, since in held.items() if p in wanted})
            _put(surplus, topic, {p: since for p, since in held.items() if p not in wanted})
            _put(gained, topic, dict.fromkeys(free, self._target_epoch))
        if surplus and self.still_owns(surplus):
            return member.moved_to(epoch, MemberState.UNREVOKED, kept, surplus)
        for topic, partitions in gained.items():
            kept[topic] = {**kept.get(topic, {}), **partitions}
        state = MemberState.UNRELEASED if awaits_others else MemberState.STABLE
        return member.moved_to(self._target_epoch, state, kept, NOTHING_HELD)

    def _free(self, topic: UUID, partitions: AbstractSet[int]) -> list[int]:
        """Those nobody holds, or only the member itself, which was to give them back."""
        revoking = self._member.revoking.get(topic, {})
        return [p for p in sorted(partitions) if self._held_in(topic, p) is None or p in revoking]


def _put(held: dict[UUID, dict[int, int]], topic: UUID, partitions: dict[int, int]) -> None:
    if partitions:
        held[topic] = partitions
