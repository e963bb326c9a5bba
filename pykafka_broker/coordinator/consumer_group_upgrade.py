"""A classic group becomes a consumer group, when the first member that speaks the new protocol joins it.

Its members go on as classic members of the consumer group, with what they hold, and their generation as their epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.classic_group import State
from pykafka_broker.coordinator.consumer_group import ConsumerGroup
from pykafka_broker.coordinator.consumer_group_member import ConsumerMember, held_since
from pykafka_broker.coordinator.consumer_group_records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from pykafka_broker.coordinator.consumer_group_replay import apply
from pykafka_broker.coordinator.consumer_protocol import read_assignment, read_subscription
from pykafka_broker.coordinator.records import ClassicMemberMetadata, ClassicProtocol
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, MalformedError

if TYPE_CHECKING:
    from pykafka_broker.coordinator.assignors import Assignment
    from pykafka_broker.coordinator.classic_group import ClassicGroup, ClassicMember
    from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
    from pykafka_broker.coordinator.consumer_group_progress import Progress
    from pykafka_broker.coordinator.effects import Record
    from pykafka_broker.coordinator.group import Decision


class Upgrade:
    """Turns classic groups of a shard into consumer groups. Owns nothing."""

    def __init__(self, context: ConsumerContext, progress: Progress) -> None:
        self._context = context
        self._progress = progress

    def convert(self, classic: ClassicGroup, records: list[Record]) -> ConsumerGroup:
        """The group as it will be once the records are written. GROUP_ID_NOT_FOUND if it cannot be."""
        self._check(classic)
        try:
            members = [self._member(classic, member) for member in classic.members.values()]
        except MalformedError as error:
            raise _refused(classic, f"its members' subscriptions cannot be read: {error}") from None
        names = {name for member, _ in members for name in member.topic_names}
        group_id, epoch = classic.group_id, classic.generation
        made = [member_record(group_id, member) for member, _ in members]
        # In the middle of a rebalance what members hold is not what they should: then a target is to be made at once.
        next_epoch = epoch if classic.state is State.STABLE else epoch + 1
        made.append(epoch_record(group_id, next_epoch, self._context.metadata_hash(names)))
        made += [target_record(group_id, member.member_id, assignment) for member, assignment in members]
        made.append(target_epoch_record(group_id, epoch, 0))
        made += [current_record(group_id, member) for member, _ in members]
        records += classic.tombstones()
        records += made
        group = ConsumerGroup(group_id)
        for record in made:
            apply(group, record)
        return group

    def upgraded(self, classic: ClassicGroup, now_ms: int, decision: Decision) -> None:
        """The classic group is no more: whoever waits for its rebalance is sent to join again."""
        self._context.rebalances.refuse_all(classic, ErrorCode.REBALANCE_IN_PROGRESS, decision)
        for member in classic.members.values():
            self._progress.touch(classic.group_id, member.member_id, member.session_timeout_ms, now_ms)

    def _check(self, classic: ClassicGroup) -> None:
        if self._context.settings.group_consumer_migration_policy.lower() not in ("bidirectional", "upgrade"):
            raise _refused(classic, "upgrades are switched off")
        if not classic.is_of_consumers:
            raise _refused(classic, "its members are not consumers")
        if len(classic.members) > self._context.settings.group_consumer_max_size:
            raise _refused(classic, "it has more members than a consumer group may have")

    def _member(self, classic: ClassicGroup, member: ClassicMember) -> tuple[ConsumerMember, Assignment]:
        protocol = classic.protocol_name or member.protocols[0][0]
        subscription = read_subscription(member.metadata(protocol))
        assignment = self._assignment(classic, member)
        upgraded = ConsumerMember(
            member.member_id,
            epoch=classic.generation,
            previous_epoch=classic.generation,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=frozenset(subscription.topics),
            assigned=held_since(assignment, classic.generation),
            classic=ClassicMemberMetadata(
                session_timeout_ms=member.session_timeout_ms,
                supported_protocols=[
                    ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols
                ],
            ),
        )
        return upgraded, assignment

    def _assignment(self, classic: ClassicGroup, member: ClassicMember) -> Assignment:
        if not member.assignment:
            return {}
        told = read_assignment(member.assignment)
        if told.user_data:
            raise _refused(classic, "its assignor keeps data of its own in assignments, which would be lost")
        ids = ((self._context.topics.topic_id(topic.topic), topic) for topic in told.assigned_partitions)
        return {
            topic_id: frozenset(topic.partitions)
            for topic_id, topic in ids
            if topic_id is not None and topic.partitions
        }


def _refused(classic: ClassicGroup, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"the classic group {classic.group_id!r} cannot be upgraded: {reason}"
    )
