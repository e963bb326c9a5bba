"""Members that need a new target, which is made once for all who ask at about the same time.

Of many members that start together each would else be given more than its share, to be asked to give it back when the
next one comes. So who needs a new target waits until nobody else has come for a moment; then all get their shares of
one target. Nobody waits longer than the appends of a few milliseconds that Kafka's coordinator gathers too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from pykafka_broker.coordinator.consumer_group import ConsumerGroup
from pykafka_broker.coordinator.consumer_group_answer import answer, refusal
from pykafka_broker.coordinator.consumer_group_replay import is_consumer_group_record
from pykafka_broker.coordinator.consumer_group_target import Target, is_target_due, make_target
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
    from pykafka_broker.coordinator.consumer_group_member import Held
    from pykafka_broker.coordinator.consumer_group_progress import Progress
    from pykafka_broker.coordinator.consumer_group_reconcile import Owned
    from pykafka_broker.coordinator.effects import Record, Token
    from pykafka_broker.coordinator.group import Decision
    from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

QUIET_MS: Final = 2
LONGEST_MS: Final = 20


@dataclass(slots=True)
class Asking:
    """A member that waits for its share. One that asks again meanwhile gets the same answer to both."""

    tokens: list[Token]
    held: Held
    """What it was known to hold; it is told what it is to hold if that is something else."""
    owned: Owned | None
    is_told_all: bool
    resubscribed: bool

    def after(self, earlier: Asking) -> Asking:
        return Asking(
            earlier.tokens + self.tokens,
            earlier.held,
            self.owned,
            earlier.is_told_all or self.is_told_all,
            earlier.resubscribed or self.resubscribed,
        )


@dataclass(slots=True)
class _Gathered:
    """Those of one group, from the first who asked on."""

    since_ms: int
    members: dict[str, Asking] = field(default_factory=dict)

    @property
    def tokens(self) -> Iterable[Token]:
        return (token for asking in self.members.values() for token in asking.tokens)


class Gathering:
    """Owner of those who wait for a target, in all consumer groups of a shard."""

    def __init__(self, context: ConsumerContext, progress: Progress) -> None:
        self._context = context
        self._progress = progress
        self._groups: dict[str, _Gathered] = {}

    def ask(self, group_id: str, member_id: str, asking: Asking, now_ms: int) -> None:
        """It is answered by a later event, when what has just been decided for it is written."""
        gathered = self._groups.get(group_id)
        if gathered is None:
            gathered = self._groups[group_id] = _Gathered(now_ms)
        earlier = gathered.members.get(member_id)
        gathered.members[member_id] = asking.after(earlier) if earlier else asking
        self._answer_at(group_id, min(now_ms + QUIET_MS, gathered.since_ms + LONGEST_MS))

    def failed(self, records: Sequence[Record], error: ErrorCode, decision: Decision) -> None:
        """These records were not written: whoever waits in their groups is to ask again."""
        for group_id in {record.key.group_id for record in records if is_consumer_group_record(record)}:
            gathered = self._groups.pop(group_id, None)
            if gathered is not None:
                _refuse(gathered, KafkaError(error), decision)

    def unload(self, decision: Decision) -> None:
        """Another broker takes over."""
        for gathered in self._groups.values():
            _refuse(gathered, KafkaError(ErrorCode.NOT_COORDINATOR), decision)
        self._groups.clear()

    def _answer_at(self, group_id: str, at_ms: int) -> None:
        action = partial(self._answer, group_id)
        self._context.deadlines.set(("consumer target", group_id), at_ms, action)

    def _answer(self, group_id: str, now_ms: int, decision: Decision) -> None:
        gathered = self._groups.pop(group_id, None)
        if gathered is None:
            return
        group = self._context.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            error = KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id!r}")
            _refuse(gathered, error, decision)
        elif group.decided_in is decision:  # what it is now is not replayed yet
            self._groups[group_id] = gathered
            self._answer_at(group_id, now_ms)
        else:
            group.decided_in = decision
            self._answer_all(group, gathered, now_ms, decision)

    def _answer_all(self, group: ConsumerGroup, gathered: _Gathered, now_ms: int, decision: Decision) -> None:
        target = Target(group.target_epoch, group.target)
        if is_target_due(self._context, group, group.epoch, now_ms):
            target = make_target(self._context, group, group.epoch, now_ms, decision.records)
        for member_id, asking in gathered.members.items():
            try:
                response = self._step(group, member_id, asking, target, now_ms, decision.records)
            except KafkaError as error:
                response = refusal(error)
            for token in asking.tokens:
                decision.reply(token, response)

    def _step(
        self,
        group: ConsumerGroup,
        member_id: str,
        asking: Asking,
        target: Target,
        now_ms: int,
        records: list[Record],
    ) -> ConsumerGroupHeartbeatResponse:
        """Parts of one target are apart from each other, so no two steps get the same partition."""
        stepped = self._progress.step(
            group,
            group.member(member_id),
            target,
            asking.owned,
            now_ms,
            records,
            resubscribed=asking.resubscribed,
        )
        is_told = asking.is_told_all or stepped.assigned != asking.held
        return answer(self._context.settings, stepped, with_assignment=is_told)


def _refuse(gathered: _Gathered, error: KafkaError, decision: Decision) -> None:
    for token in gathered.tokens:
        decision.reply(token, refusal(error))
