"""A consumer group becomes a classic group, when the last member that speaks the new protocol goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.assignors import NOTHING
from pykafka_broker.coordinator.classic_group import ClassicGroup, ClassicMember, State
from pykafka_broker.coordinator.classic_image import record_of
from pykafka_broker.coordinator.consumer_group_records import group_tombstones
from pykafka_broker.coordinator.consumer_protocol import version_of, write_assignment
from pykafka_broker.coordinator.group import CONSUMER_PROTOCOL
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, MalformedError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pykafka_broker.coordinator.assignors import Assignment
    from pykafka_broker.coordinator.consumer_group import ConsumerGroup
    from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember
    from pykafka_broker.coordinator.effects import Record
    from pykafka_broker.coordinator.group import Decision


class Downgrade:
    """Turns consumer groups of a shard into classic groups. Owns nothing."""

    def __init__(self, context: ConsumerContext) -> None:
        self._context = context

    def is_due_without(self, group: ConsumerGroup, gone: Sequence[ConsumerMember]) -> bool:
        """Whether without these members there are members, and all of them classic."""
        left = len(group.members) - len(gone)
        classic = group.classic_members - sum(member.speaks_classic for member in gone)
        return 0 < left == classic and self._may(left)

    def is_due_when_replaced(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Whether all members are classic once a classic member has taken the place of this one."""
        others = len(group.members) - 1
        return not replaced.speaks_classic and group.classic_members == others and self._may(others + 1)

    def _may(self, size: int) -> bool:
        policy = self._context.settings.group_consumer_migration_policy.lower()
        return policy in ("bidirectional", "downgrade") and size <= self._context.settings.group_max_size

    def without(
        self, group: ConsumerGroup, gone: Collection[ConsumerMember], now_ms: int, decision: Decision
    ) -> None:
        """The group goes on as a classic one of those who are left."""
        ids = {member.member_id for member in gone}
        left = [member for member in group.members.values() if member.member_id not in ids]
        parts = {member.member_id: group.target.get(member.member_id, NOTHING) for member in left}
        decision.records += group.tombstones()
        decision.records.append(self._record(group, left, parts, now_ms))

    def with_replaced(
        self,
        group: ConsumerGroup,
        replaced: ConsumerMember,
        joining: ConsumerMember,
        now_ms: int,
        records: list[Record],
    ) -> None:
        """The group goes on as a classic one, with a static member in the place of one that spoke the new protocol."""
        others = [member for member in group.members.values() if member is not replaced]
        parts = {member.member_id: group.target.get(member.member_id, NOTHING) for member in others}
        parts[joining.member_id] = group.target.get(replaced.member_id, NOTHING)
        members = [*others, joining]
        records += group_tombstones(group.group_id, parts, group.resolved)
        records.append(self._record(group, members, parts, now_ms))

    def _record(
        self,
        group: ConsumerGroup,
        members: Sequence[ConsumerMember],
        parts: dict[str, Assignment],
        now_ms: int,
    ) -> Record:
        classic = ClassicGroup(group.group_id, now_ms)
        classic.generation = group.epoch
        classic.state = State.STABLE
        for member in members:
            classic.add(_classic_member(member), CONSUMER_PROTOCOL)
        classic.protocol_name = classic.select_protocol()
        try:
            assignments = {
                member.member_id: self._assignment(
                    parts[member.member_id], version_of(member.metadata(classic.protocol_name))
                )
                for member in classic.members.values()
            }
        except MalformedError as error:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"{group.group_id!r} cannot become a classic group: {error}"
            ) from None
        return record_of(classic, assignments)

    def _assignment(self, part: Assignment, version: int) -> bytes:
        named = ((self._context.topics.name(topic_id), partitions) for topic_id, partitions in part.items())
        return write_assignment({name: held for name, held in named if name is not None}, version)


def _classic_member(member: ConsumerMember) -> ClassicMember:
    classic = member.classic
    assert classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        classic.session_timeout_ms,
        tuple((protocol.name, protocol.metadata) for protocol in classic.supported_protocols),
    )
