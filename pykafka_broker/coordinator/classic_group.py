"""A classic group: who is in it, who waits for what, and which protocol they agree on.

Empty ──────────────► PreparingRebalance ──► CompletingRebalance ──► Stable
  ▲  a member joins        │    ▲  all have joined, or    │    leader's assignment
  │                        │    │  time is up             │    is written
  └────────────────────────┘    └──────────────◄──────────┴─────────◄── a member joins, leaves or is lost
    nobody is left
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykafka_broker.coordinator.classic_subscription import subscribed_topics
from pykafka_broker.coordinator.effects import Record
from pykafka_broker.coordinator.group import CLASSIC, CONSUMER_PROTOCOL
from pykafka_broker.coordinator.records import GroupMetadataKey
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafka_broker.coordinator.effects import Caller, Token

Protocols = tuple[tuple[str, bytes], ...]
"""Names of protocols in a member's order of preference, and its metadata under each."""


class State(enum.Enum):
    """Valued as Kafka names them."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(slots=True)
class ClassicMember:
    """A member of one classic group, which owns it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    joining: Caller | None = None
    """Who sent the JoinGroup request that waits for the others."""
    syncing: Token | None = None
    """The SyncGroup request that waits for the leader."""
    is_new: bool = False
    """Has not been told its id yet, so it cannot send heartbeats."""

    def metadata(self, protocol: str | None) -> bytes:
        return next((data for name, data in self.protocols if name == protocol), b"")

    @property
    def is_excused(self) -> bool:
        """Whether silence is no sign of death: it waits for an answer."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)


class ClassicGroup:
    """State of one group. Owned by its shard; changed by `classic_join`, `classic_rebalance` and their kin."""

    def __init__(self, group_id: str, state_timestamp: int | None = None) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.previous_state: State | None = None
        self.state_timestamp = state_timestamp
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_joins: set[str] = set()
        """Ids given out with MEMBER_ID_REQUIRED whose owners have not come back yet."""
        self.pending_syncs: set[str] = set()
        """Members of this generation that have not asked for their assignment yet."""
        self.joined_late = False
        """Whether somebody joined while the first rebalance was being delayed."""
        self.subscribed_topics: frozenset[str] | None = None
        self._supporters: dict[str, int] = {}
        self._joining = 0

    # What a group is to the rest of the coordinator.

    @property
    def kind(self) -> str:
        return CLASSIC

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def listed_protocol_type(self) -> str:
        return self.protocol_type or ""

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    @property
    def is_simple(self) -> bool:
        """Whether it is a group only in that somebody commits offsets under its name."""
        return self.protocol_type is None and self.is_empty and not self.pending_joins

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        if instance_id is not None:
            owner = self.static_members.get(instance_id)
            if owner is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if owner != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int, *, transactional: bool
    ) -> None:
        del version
        if generation < 0 and self.state is State.EMPTY:
            return
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional and self.state is not State.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is State.COMPLETING:
            # The member knows the generation but not its part of it: it should not have committed yet.
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may."""

    def check_offset_delete(self) -> None:
        if self.state is not State.EMPTY and not self.is_of_consumers:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if self.state is not State.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def subscribes_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.is_of_consumers
        return topic in self.subscribed_topics

    def retained_since(self, commit_timestamp: int) -> int | None:
        if self.protocol_type is None:
            return commit_timestamp
        if self.state is State.EMPTY:
            return commit_timestamp if self.state_timestamp is None else self.state_timestamp
        if self.is_of_consumers and self.subscribed_topics is not None and self.state is State.STABLE:
            return commit_timestamp
        return None

    def tombstones(self) -> list[Record]:
        return [Record(GroupMetadataKey(group=self.group_id), None)]

    # Members.

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member, 1)
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Forgets a member, or an id given out for one. Gives the member, whose waiting requests are the caller's."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, -1)
            if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
                del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)
        return member

    def replace_static(self, old_id: str, new_id: str) -> tuple[ClassicMember, ClassicMember]:
        """Lets a static member live on under a new id. Gives the old one, whose waiting requests are the caller's,
        and the new."""
        old = self.members.pop(old_id)
        new = ClassicMember(
            new_id,
            old.instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocols,
            old.assignment,
        )
        self._joining -= old.joining is not None
        self.members[new_id] = new
        if self.leader == old_id:
            self.leader = new_id
        if old.instance_id is not None:
            self.static_members[old.instance_id] = new_id
        if old_id in self.pending_syncs:
            self.pending_syncs.remove(old_id)
            self.pending_syncs.add(new_id)
        return old, new

    def update(
        self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        self._count_protocols(member.protocols, -1)
        member.protocols = protocols
        self._count_protocols(protocols, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def set_joining(self, member: ClassicMember, caller: Caller | None) -> Caller | None:
        """Notes who waits for the join to complete. Gives the one that waited before."""
        before, member.joining = member.joining, caller
        self._joining += (caller is not None) - (before is not None)
        return before

    @property
    def joining_count(self) -> int:
        return self._joining

    @property
    def all_have_joined(self) -> bool:
        return len(self.members) == self._joining and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # Protocols.

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these could be part of the group."""
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and any(
            self._supporters.get(name, 0) == len(self.members) for name, _ in protocols
        )

    def select_protocol(self, instead: ClassicMember | None = None, protocols: Protocols = ()) -> str | None:
        """The protocol all can do and most prefer, if `instead` had those protocols. At a tie the one that the
        member who has been here longest prefers."""
        preferences = [
            protocols if member is instead else member.protocols for member in self.members.values()
        ]
        supporters: dict[str, int] = {}
        for preference in preferences:
            for name in {name for name, _ in preference}:
                supporters[name] = supporters.get(name, 0) + 1
        votes: dict[str, int] = {}
        for preference in preferences:
            vote = next((name for name, _ in preference if supporters[name] == len(preferences)), None)
            if vote is not None:
                votes[vote] = votes.get(vote, 0) + 1
        return max(votes, key=votes.__getitem__, default=None)

    # States.

    def transition(self, state: State, now_ms: int) -> None:
        self.previous_state, self.state = self.state, state
        self.state_timestamp = now_ms

    def next_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.note_subscriptions()
        self.transition(State.COMPLETING if self.members else State.EMPTY, now_ms)
        self.pending_syncs.clear()

    def note_subscriptions(self) -> None:
        self.subscribed_topics = None
        if self.is_of_consumers and (not self.members or self.protocol_name is not None):
            self.subscribed_topics = subscribed_topics(
                member.metadata(self.protocol_name) for member in self.members.values()
            )

    def _count(self, member: ClassicMember, by: int) -> None:
        self._count_protocols(member.protocols, by)
        if member.joining is not None:
            self._joining += by

    def _count_protocols(self, protocols: Iterable[tuple[str, bytes]], by: int) -> None:
        for name in {name for name, _ in protocols}:
            self._supporters[name] = self._supporters.get(name, 0) + by
