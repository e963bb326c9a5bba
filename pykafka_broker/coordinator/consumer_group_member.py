"""A member of a consumer group: who it is, what it wants, what it holds, and how far it has come.

STABLE ─────────────► UNREVOKED ─────────────► UNRELEASED ──────────► STABLE
   │  it must give back   it gave them back,       the others gave back    ▲
   │  partitions          but awaits others'       all that it awaits      │
   └───────────────────────────────────────────────────────────────────────┘
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from pykafka_broker.coordinator.assignors import Assignment
    from pykafka_broker.coordinator.records import (
        ClassicMemberMetadata,
        ConsumerGroupCurrentMemberAssignmentValue,
        ConsumerGroupMemberMetadataValue,
        TopicPartitions,
    )

    Held = Mapping[UUID, Mapping[int, int]]
    """By topic and partition, the epoch in which the member was given it. Never changed once it is made."""

NOTHING_HELD: Final[Held] = MappingProxyType({})

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_FOR_NOW: Final = -2
"""The epoch of a static member that said it will come back."""


class MemberState(enum.IntEnum):
    """Valued as in the records."""

    STABLE = 0
    UNREVOKED = 1
    UNRELEASED = 2
    UNKNOWN = 127
    """Written by a later release: the member must start over."""

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        del value
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member. A change of it is another one."""

    member_id: str
    epoch: int = JOINING
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    assignor: str | None = None
    assigned: Held = field(default_factory=lambda: NOTHING_HELD)
    revoking: Held = field(default_factory=lambda: NOTHING_HELD)
    """What it was asked to give back and may still use."""
    classic: ClassicMemberMetadata | None = None
    """Set if it speaks the classic protocol."""

    @property
    def speaks_classic(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def moved_to(
        self, epoch: int, state: MemberState, assigned: Held, revoking: Held = NOTHING_HELD
    ) -> ConsumerMember:
        """The member one step on; it remembers the epoch it comes from."""
        return replace(
            self, epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking
        )

    def described_by(self, value: ConsumerGroupMemberMetadataValue, names: frozenset[str]) -> ConsumerMember:
        """With what the record says of it; `names` are the topics in the record."""
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=names,
            topic_regex=value.subscribed_topic_regex or "",
            assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def holding(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        """With the assignment the record says it has."""
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=_held(value.assigned_partitions, value.member_epoch),
            revoking=_held(value.partitions_pending_revocation, value.member_epoch),
        )


def _held(topics: Iterable[TopicPartitions], epoch: int) -> Held:
    """Records from before 4.3 do not say since when; the member's epoch is the latest it can be."""
    held: dict[UUID, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(epoch, 0)] * len(topic.partitions)
        held[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return held


def held_since(assignment: Assignment, epoch: int) -> Held:
    """All of it given in one epoch."""
    return {topic: dict.fromkeys(partitions, epoch) for topic, partitions in assignment.items()}
