"""The way of one member through one request, whichever protocol it speaks: it subscribes, the group moves on if it
has to, a target is made if there is none, and the member takes one step towards it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.coordinator.assignors import NOTHING
from pykafka_broker.coordinator.classic_rebalance import session_key
from pykafka_broker.coordinator.consumer_group import ConsumerGroup
from pykafka_broker.coordinator.consumer_group_context import revoke_key
from pykafka_broker.coordinator.consumer_group_member import MemberState
from pykafka_broker.coordinator.consumer_group_reconcile import reconcile
from pykafka_broker.coordinator.consumer_group_records import (
    current_record,
    epoch_record,
    member_record,
    topics_tombstone,
)
from pykafka_broker.coordinator.consumer_group_regex import RegexChange, RegexResolver
from pykafka_broker.coordinator.consumer_group_target import is_target_due, make_target, present_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
    from pykafka_broker.coordinator.consumer_group_fence import Fence
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember
    from pykafka_broker.coordinator.consumer_group_reconcile import Owned
    from pykafka_broker.coordinator.consumer_group_target import Target
    from pykafka_broker.coordinator.effects import Record
    from pykafka_broker.coordinator.group import Decision


class Progress:
    """Leads members of a shard's consumer groups on. Owner of the regular expressions being resolved."""

    def __init__(self, context: ConsumerContext, fence: Fence) -> None:
        self._context = context
        self._fence = fence
        self._regexes = RegexResolver(context)

    def subscribe(
        self,
        group: ConsumerGroup,
        old: ConsumerMember,
        new: ConsumerMember,
        now_ms: int,
        records: list[Record],
    ) -> tuple[int, bool]:
        """A member becomes another. Gives the group's epoch then, and whether the member's subscription changed."""
        if new != old:
            records.append(member_record(group.group_id, new))
        renamed = new.topic_names != old.topic_names
        change = self._regexes.subscribe(group, old, new, now_ms, records)
        bump = renamed or change is RegexChange.RESOLVED
        if new.speaks_classic:
            bump = bump or change is not RegexChange.NONE
        epoch = group.epoch
        if bump or must_look_at_topics(group):
            epoch = self._move_on(group, [old], new, records, bump=bump)
        return epoch, renamed or change is not RegexChange.NONE

    def _move_on(
        self,
        group: ConsumerGroup,
        gone: Iterable[ConsumerMember],
        added: ConsumerMember | None,
        records: list[Record],
        *,
        bump: bool,
    ) -> int:
        """The group's next epoch, or the present one if neither members nor topics have changed."""
        epoch = group.epoch
        metadata_hash = self._context.metadata_hash(group.topic_names(gone, added))
        if bump or metadata_hash != group.metadata_hash:
            epoch += 1
            records.append(epoch_record(group.group_id, epoch, metadata_hash))
        group.checked_at_epoch = epoch
        if group.has_topics_record:
            records.append(topics_tombstone(group.group_id))
        return epoch

    def advance(
        self,
        group: ConsumerGroup,
        epoch: int,
        old: ConsumerMember,
        new: ConsumerMember,
        owned: Owned | None,
        now_ms: int,
        records: list[Record],
        *,
        resubscribed: bool,
    ) -> ConsumerMember:
        """The member after one step towards the target of this epoch."""
        if is_target_due(self._context, group, epoch, now_ms):
            target = make_target(self._context, group, epoch, now_ms, records, old, new)
        else:
            target = present_target(group, new)
        return self.step(group, new, target, owned, now_ms, records, resubscribed=resubscribed)

    def step(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        target: Target,
        owned: Owned | None,
        now_ms: int,
        records: list[Record],
        *,
        resubscribed: bool,
    ) -> ConsumerMember:
        """The member after one step towards this target."""
        if member.is_reconciled_to(target.epoch) and not resubscribed:
            return member
        stepped = reconcile(
            member,
            target_epoch=target.epoch,
            target=target.parts.get(member.member_id, NOTHING),
            held_in=group.held_in,
            subscribed=self._context.topic_ids(group.subscription_of(member)),
            resubscribed=resubscribed,
            owned=owned,
        )
        if stepped != member:
            records.append(current_record(group.group_id, stepped))
            if not stepped.speaks_classic:
                self._watch_revocation(group.group_id, stepped, now_ms)
        return stepped

    def _watch_revocation(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        key = revoke_key(group_id, member.member_id)
        if member.state is MemberState.UNREVOKED:
            action = partial(self._revocation_over, group_id, member.member_id, member.epoch)
            self._context.deadlines.set(key, now_ms + member.rebalance_timeout_ms, action)
        else:
            self._context.deadlines.cancel(key)

    def _revocation_over(
        self, group_id: str, member_id: str, epoch: int, now_ms: int, decision: Decision
    ) -> None:
        group = self._context.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if member is not None and member.epoch == epoch:
            self._fence.expired(group_id, member_id, now_ms, decision)

    def touch(self, group_id: str, member_id: str, timeout_ms: int, now_ms: int) -> None:
        """The member is alive: its session starts anew."""
        action = partial(self._fence.expired, group_id, member_id)
        self._context.deadlines.set(session_key(group_id, member_id), now_ms + timeout_ms, action)

    def loaded(self, group: ConsumerGroup, now_ms: int) -> None:
        """All members have a session from now on, whatever protocol they speak."""
        for member in group.members.values():
            timeout_ms = self._context.settings.group_consumer_session_timeout_ms
            self.touch(group.group_id, member.member_id, timeout_ms, now_ms)
            if member.state is MemberState.UNREVOKED:
                self._watch_revocation(group.group_id, member, now_ms)


def must_look_at_topics(group: ConsumerGroup) -> bool:
    """Whether topics may have changed since they were looked at, or what was decided then was not written."""
    return group.checked_at_epoch is None or group.epoch < group.checked_at_epoch
