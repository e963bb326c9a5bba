"""Members that go: they leave, or are given up. The group moves on without them; if only classic members are left, it
becomes a classic group again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.coordinator.classic_rebalance import session_key
from pykafka_broker.coordinator.consumer_group import ConsumerGroup
from pykafka_broker.coordinator.consumer_group_context import join_key, revoke_key, sync_key
from pykafka_broker.coordinator.consumer_group_records import epoch_record, member_tombstones, regex_tombstone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
    from pykafka_broker.coordinator.consumer_group_downgrade import Downgrade
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember
    from pykafka_broker.coordinator.group import Decision


class Fence:
    """Removes members from the consumer groups of a shard. Owns nothing."""

    def __init__(self, context: ConsumerContext, downgrade: Downgrade) -> None:
        self._context = context
        self._downgrade = downgrade

    def remove(
        self, group: ConsumerGroup, members: Sequence[ConsumerMember], now_ms: int, decision: Decision
    ) -> None:
        """They are not members any more."""
        if not members:
            return
        for member in members:
            for key in (session_key, revoke_key, join_key, sync_key):
                self._context.deadlines.cancel(key(group.group_id, member.member_id))
        group.decided_in = decision
        if self._downgrade.is_due_without(group, members):
            self._downgrade.without(group, members, now_ms, decision)
            return
        for member in members:
            decision.records += member_tombstones(group.group_id, member.member_id)
        for regex in {member.topic_regex for member in members if member.topic_regex}:
            if group.regexes[regex] == sum(member.topic_regex == regex for member in members):
                decision.records.append(regex_tombstone(group.group_id, regex))
        metadata_hash = self._context.metadata_hash(group.topic_names(members))
        decision.records.append(epoch_record(group.group_id, group.epoch + 1, metadata_hash))

    def expired(self, group_id: str, member_id: str, now_ms: int, decision: Decision) -> None:
        """The member was given its time; if it is still there, it goes."""
        group = self._context.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if not isinstance(group, ConsumerGroup) or member is None:
            return
        if group.decided_in is decision:
            # What was decided a moment ago for this group is not replayed yet: one after the other.
            action = partial(self.expired, group_id, member_id)
            self._context.deadlines.set(session_key(group_id, member_id), now_ms, action)
        else:
            self.remove(group, [member], now_ms, decision)
