"""A group of the consumer protocol (KIP-848), where the broker assigns partitions.

The group's epoch grows whenever what members want, or the topics, change. For an epoch the broker makes a target; each
member is led to its part of it in its own time, with its own epoch. A partition is given to a member only when no
other member holds it any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykafka_broker.coordinator import consumer_group_records as records
from pykafka_broker.coordinator.assignors import NOTHING
from pykafka_broker.coordinator.group import CONSUMER, CONSUMER_PROTOCOL
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from typing import TypeVar
    from uuid import UUID

    from pykafka_broker.coordinator.assignors import Assignment
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember, Held
    from pykafka_broker.coordinator.effects import Record
    from pykafka_broker.coordinator.group import Decision

    K = TypeVar("K", bound=Hashable)
    PartitionCheck = Callable[[UUID | None, int], None]
    """Raises KafkaError if an offset of this partition may not be committed."""

NO_TARGET = -1
FIRST_EPOCH = 1
"""Of a group and of its target before anybody joined; so the first member that wants something makes it 2."""
FIRST_COMMIT_WITH_EPOCHS = 9


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a regular expression matched, of which version of the topics, and when."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    timestamp: int = 0


class ConsumerGroup:
    """State of one group, all of it from its records but for what is said to be soft. Owned by its shard, changed by
    `consumer_group_replay` alone."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = FIRST_EPOCH
        self.target_timestamp = 0
        self.members: dict[str, ConsumerMember] = {}
        self.target: dict[str, Assignment] = {}
        self.static_members: dict[str, str] = {}
        self.resolved: dict[str, Resolved] = {}
        """By regular expression, the topics that matched."""
        self.regexes: dict[str, int] = {}
        """By regular expression, how many members subscribe with it."""
        self.classic_members = 0
        self.has_topics_record = False
        """Whether releases before 4.1 left a record that nobody needs any more."""

        self.checked_at_epoch: int | None = None
        """Soft: the epoch at which the topics were last looked at; None if they must be looked at."""
        self.decided_in: Decision | None = None
        """Soft: the decision that last changed the group; until its records are replayed, nothing else may."""

        self._subscriptions: dict[frozenset[str], int] = {}
        self._assignors: dict[str, int] = {}
        self._classic_protocols: dict[str, int] = {}
        self._held: dict[UUID, dict[int, int]] = {}

    # What a group is to the rest of the coordinator.

    @property
    def kind(self) -> str:
        return CONSUMER

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def listed_protocol_type(self) -> str:
        return CONSUMER_PROTOCOL

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int, *, transactional: bool
    ) -> PartitionCheck | None:
        """A member may commit at its own epoch; at an older one only for what it held then and still holds, which the
        check that is given back decides for each partition."""
        if generation < 0 and not self.members:
            return None
        if transactional and generation == -1 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and not member.speaks_classic and version < FIRST_COMMIT_WITH_EPOCHS:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, "members of consumer groups commit with version 9 or later"
            )
        if generation == member.epoch:
            return None
        if generation > member.epoch:
            raise stale(member)

        def check(topic: UUID | None, partition: int) -> None:
            for held in (member.assigned, member.revoking):
                since = None if topic is None else held.get(topic, {}).get(partition)
                if since is not None and since <= generation:
                    return
            raise stale(member)

        return check

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise stale(member)

    def check_offset_delete(self) -> None:
        """Offsets of topics nobody reads may go at any time."""

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def subscribes_to(self, topic: str) -> bool:
        return topic in self.topic_names()

    def retained_since(self, commit_timestamp: int) -> int | None:
        return commit_timestamp

    def tombstones(self) -> list[Record]:
        return records.group_tombstones(self.group_id, self.members, self.resolved)

    # Questions.

    def member(self, member_id: str) -> ConsumerMember:
        """UNKNOWN_MEMBER_ID if there is none of this id."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id!r} is not a member of {self.group_id!r}"
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member_id: str, instance_id: str | None) -> Assignment:
        """The part of the target a member has; of a static member the one that its instance has."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, "")
        return self.target.get(member_id, NOTHING)

    def held_in(self, topic: UUID, partition: int) -> int | None:
        """The epoch of the member that holds the partition; None if nobody does."""
        return self._held.get(topic, {}).get(partition)

    def topic_names(
        self, without: Iterable[ConsumerMember] = (), added: ConsumerMember | None = None
    ) -> set[str]:
        """Every topic somebody is subscribed to, if some members were gone and one were added."""
        subscriptions = self._subscriptions
        regexes = self.regexes
        gone = list(without)
        if gone:
            subscriptions = _subtract(subscriptions, (member.topic_names for member in gone))
            regexes = _subtract(regexes, (member.topic_regex for member in gone if member.topic_regex))
        names: set[str] = set().union(*subscriptions)
        for regex in regexes:
            if (resolved := self.resolved.get(regex)) is not None:
                names |= resolved.topics
        if added is not None:
            names |= self.subscription_of(added)
        return names

    def subscription_of(self, member: ConsumerMember) -> frozenset[str]:
        """The topics a member wants, by name or because its regular expression matched."""
        resolved = self.resolved.get(member.topic_regex) if member.topic_regex else None
        if resolved is None or not resolved.topics:
            return member.topic_names
        return member.topic_names | resolved.topics if member.topic_names else resolved.topics

    def preferred_assignor(
        self, old: ConsumerMember | None = None, new: ConsumerMember | None = None
    ) -> str | None:
        """The assignor most members ask for, if one of them were another; None if nobody asks for one."""
        votes = self._assignors
        if old is not new:
            votes = dict(votes)
            if old is not None:
                _count(votes, old.assignor, -1)
            if new is not None:
                _count(votes, new.assignor, 1)
        return max(votes, key=lambda name: (votes[name], name), default=None)

    def supports_classic(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Whether a classic member with these protocols could be one of the classic members here."""
        return protocol_type == CONSUMER_PROTOCOL and any(
            not self.members or self._classic_protocols.get(name, 0) == self.classic_members
            for name in protocols
        )

    def awaits_others(self, member: ConsumerMember) -> bool:
        """Whether a partition meant for the member is still held by another."""
        return any(
            self.held_in(topic, partition) is not None
            for topic, partitions in self.target.get(member.member_id, NOTHING).items()
            for partition in partitions
            if partition not in member.assigned.get(topic, ())
        )

    # Changes, made by replay.

    def put(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is not None:
            self._forget(old)
        self._hold(member.assigned, member.epoch)
        self._hold(member.revoking, member.epoch)
        self._tally(member, 1)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._forget(member)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]

    def _forget(self, member: ConsumerMember) -> None:
        self._release(member.assigned, member.epoch)
        self._release(member.revoking, member.epoch)
        self._tally(member, -1)

    def _tally(self, member: ConsumerMember, by: int) -> None:
        _count(self._subscriptions, member.topic_names, by)
        _count(self.regexes, member.topic_regex or None, by)
        _count(self._assignors, member.assignor, by)
        if member.classic is not None:
            self.classic_members += by
            for name in {protocol.name for protocol in member.classic.supported_protocols}:
                _count(self._classic_protocols, name, by)

    def _hold(self, held: Held, epoch: int) -> None:
        for topic, partitions in held.items():
            self._held.setdefault(topic, {}).update(dict.fromkeys(partitions, epoch))

    def _release(self, held: Held, epoch: int) -> None:
        """Only what is held in this epoch: another member may have been given it in a later record already."""
        for topic, partitions in held.items():
            epochs = self._held.get(topic, {})
            for partition in partitions:
                if epochs.get(partition) == epoch:
                    del epochs[partition]
            if not epochs:
                self._held.pop(topic, None)


def stale(member: ConsumerMember) -> KafkaError:
    """A classic member knows its epoch as its generation."""
    code = ErrorCode.ILLEGAL_GENERATION if member.speaks_classic else ErrorCode.STALE_MEMBER_EPOCH
    return KafkaError(code, f"{member.member_id!r} is at epoch {member.epoch}")


def _count(counts: dict[K, int], key: K | None, by: int) -> None:
    """Counts a key; what is counted down to nothing is gone. None is not counted."""
    if key is None:
        return
    count = counts.get(key, 0) + by
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)


def _subtract(counts: Mapping[K, int], keys: Iterable[K]) -> dict[K, int]:
    left = dict(counts)
    for key in keys:
        _count(left, key, -1)
    return left
