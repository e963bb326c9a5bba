"""What the rest of a coordinator asks of a group, whatever protocol its members speak."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pykafka_broker.coordinator.effects import Effects, Record, Reply

if TYPE_CHECKING:
    from uuid import UUID

    from pykafka_broker.coordinator.effects import Token
    from pykafka_broker.coordinator.records import CommittedOffsets

CLASSIC = "classic"
CONSUMER = "consumer"
CONSUMER_PROTOCOL = "consumer"
"""The protocol type of consumers, as against that of Connect workers and others."""


PartitionCheck = Callable[["UUID", int], None]
"""Whether a member may commit for this partition of this topic; raises KafkaError if not."""


@dataclass(slots=True)
class Decision:
    """Effects in the making. Owned by the call that makes them."""

    records: list[Record] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    committed: CommittedOffsets | None = None
    """Offsets, instead of other records: who commits does nothing else."""

    can_wait: bool = False
    """See `Effects.can_wait`."""
    is_divisible: bool = False
    """See `Effects.is_divisible`."""

    def reply(self, token: Token, response: Any) -> None:
        self.replies.append(Reply(token, response))

    def effects(self) -> Effects:
        if self.committed is None:
            return Effects(self.records, self.replies, is_divisible=self.is_divisible)
        assert not self.records
        return Effects(self.committed, self.replies, self.can_wait)


class Group(Protocol):
    """A group of either kind. The checks raise KafkaError."""

    @property
    def group_id(self) -> str: ...

    @property
    def kind(self) -> str:
        """CLASSIC or CONSUMER."""

    @property
    def state_name(self) -> str:
        """As Kafka writes it in listings."""

    @property
    def listed_protocol_type(self) -> str:
        """As Kafka writes it in listings; a simple group has none."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members; only such a group can be deleted."""

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int, *, transactional: bool
    ) -> PartitionCheck | None:
        """Whether this member may commit, at this generation or epoch; it may depend on the partition."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Whether this member may read the group's offsets."""

    def check_offset_delete(self) -> None:
        """Whether offsets of the group may be deleted."""

    def check_delete(self) -> None:
        """Whether the group may be deleted."""

    def subscribes_to(self, topic: str) -> bool:
        """Whether some member reads the topic, so that its offsets are in use."""

    def retained_since(self, commit_timestamp: int) -> int | None:
        """From when the retention of an offset committed then counts; None while it does not count at all."""

    def tombstones(self) -> list[Record]:
        """What deletes the group, its offsets apart."""
