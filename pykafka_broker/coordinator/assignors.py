"""Who shall read which partition: the assignors a consumer group can choose from.

They are functions of what members want and what they have; the order of members and topics decides ties. The racks of
members have no say, as in Apache Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from pykafka_broker.coordinator.assignors_range import assign_range
from pykafka_broker.coordinator.assignors_uniform import assign_uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    Assignment = Mapping[UUID, frozenset[int]]
    """By topic, partitions. A topic without partitions is not in it. Never changed once it is made."""

    Assignor = Callable[["Wishes"], dict[str, Assignment]]
    """Gives every member its assignment; together they hold each wanted partition exactly once."""

NOTHING: Final[Assignment] = MappingProxyType({})


class MemberWish(NamedTuple):
    """What a member wants to read, and what it was told to read until now.

    A tuple, because each member that joins makes one for every other."""

    topics: AbstractSet[UUID]
    assigned: Assignment = NOTHING
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """The members of a group by their ids, and the size of every topic any of them wants."""

    members: Mapping[str, MemberWish]
    partition_counts: Mapping[UUID, int]
    alike: bool
    """Whether all members want the same topics."""


ASSIGNORS: Final[Mapping[str, Assignor]] = MappingProxyType(
    {"uniform": assign_uniform, "range": assign_range}
)
"""Every assignor there is; settings say which of them a broker offers, the first being its default."""
