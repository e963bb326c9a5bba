"""Finds the topics that members subscribe to by regular expressions.

The matching is done apart from the request that asks for it, a slice at a time, so that many topics or a costly
expression keep nobody waiting. What was found is written, and the group moves on with it.
"""

from __future__ import annotations

import enum
from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.coordinator.consumer_group import ConsumerGroup, Resolved
from pykafka_broker.coordinator.consumer_group_records import epoch_record, regex_record, regex_tombstone
from pykafka_broker.coordinator.regex import TopicRegex
from pykafka_broker.coordinator.regex_syntax import InvalidRegex
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection

    from pykafka_broker.coordinator.consumer_group_context import ConsumerContext
    from pykafka_broker.coordinator.consumer_group_member import ConsumerMember
    from pykafka_broker.coordinator.effects import Record
    from pykafka_broker.coordinator.group import Decision

_NOT_AGAIN_WITHIN_MS = 10_000
_TOPICS_A_SLICE = 1_000
_WORK_A_SLICE = 50_000
"""In states visited: about 10 ms."""


class RegexChange(enum.Enum):
    """What a member's new subscription means for the regular expressions of its group."""

    NONE = enum.auto()
    UNRESOLVED = enum.auto()
    """It subscribes with another one, whose topics are not known yet."""
    RESOLVED = enum.auto()
    """It subscribes with another one whose topics are known, or with none."""


class RegexResolver:
    """Resolves the regular expressions of a shard's groups. Owner of the resolutions under way."""

    def __init__(self, context: ConsumerContext) -> None:
        self._context = context
        self._under_way: dict[str, _Resolution] = {}

    def subscribe(
        self,
        group: ConsumerGroup,
        old: ConsumerMember,
        new: ConsumerMember,
        now_ms: int,
        records: list[Record],
    ) -> RegexChange:
        """A member of a group becomes another. INVALID_REGULAR_EXPRESSION if its expression is none."""
        change, is_first = RegexChange.NONE, False
        if old.topic_regex != new.topic_regex:
            if old.topic_regex and group.regexes.get(old.topic_regex) == 1:
                records.append(regex_tombstone(group.group_id, old.topic_regex))
            is_first = bool(new.topic_regex) and new.topic_regex not in group.regexes
            if is_first:
                _check(new.topic_regex)
            is_known = not new.topic_regex or (not is_first and new.topic_regex in group.resolved)
            change = RegexChange.RESOLVED if is_known else RegexChange.UNRESOLVED
        if (is_first or group.regexes) and group.group_id not in self._under_way:
            self._refresh(group, old, new, now_ms, is_first=is_first)
        return change

    def _refresh(
        self, group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember, now_ms: int, *, is_first: bool
    ) -> None:
        """Resolves again where something may have changed, but not all the time."""
        last = next(iter(group.resolved.values()), None)
        if last is not None and now_ms <= last.timestamp + _NOT_AGAIN_WITHIN_MS:
            return
        regexes = {regex for regex, count in group.regexes.items() if count > (regex == old.topic_regex)}
        if new.topic_regex:
            regexes.add(new.topic_regex)
        interval = self._context.settings.group_consumer_regex_refresh_interval_ms
        is_due = (
            is_first
            or len(regexes) != len(group.resolved)
            or last is None
            or last.version < self._context.topics_version
            or now_ms > last.timestamp + interval
        )
        if is_due and regexes:
            self._under_way[group.group_id] = _Resolution(self._context, regexes)
            self._go_on(group.group_id, now_ms)

    def _go_on(self, group_id: str, now_ms: int) -> None:
        self._context.deadlines.set(("regex", group_id), now_ms, partial(self._slice, group_id))

    def _slice(self, group_id: str, now_ms: int, decision: Decision) -> None:
        group = self._context.groups.get(group_id)
        resolution = self._under_way[group_id]
        if not isinstance(group, ConsumerGroup):
            del self._under_way[group_id]
        elif not resolution.go_on() or group.decided_in is decision:
            self._go_on(group_id, now_ms)
        else:
            del self._under_way[group_id]
            self._resolved(group, resolution, now_ms, decision)

    def _resolved(
        self, group: ConsumerGroup, resolution: _Resolution, now_ms: int, decision: Decision
    ) -> None:
        found = {regex: topics for regex, topics in resolution.found.items() if regex in group.regexes}
        bump = False
        for regex, topics in found.items():
            resolved = Resolved(frozenset(topics), resolution.version, now_ms)
            bump = bump or resolved.topics != group.resolved.get(regex, Resolved()).topics
            decision.records.append(regex_record(group.group_id, regex, resolved))
        # What matched before and still exists matches again, so nothing has to be taken out.
        names = group.topic_names().union(*found.values())
        metadata_hash = self._context.metadata_hash(names)
        if bump or metadata_hash != group.metadata_hash:
            decision.records.append(epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        group.decided_in = decision


class _Resolution:
    """The regular expressions of one group being matched against all topics. Owned by the resolver."""

    def __init__(self, context: ConsumerContext, regexes: Collection[str]) -> None:
        self.version = context.topics_version
        self.found: dict[str, set[str]] = {regex: set() for regex in regexes}
        self._regexes = [TopicRegex(regex) for regex in regexes if _is_valid(regex)]
        self._names = tuple(context.topics.names())
        self._done = 0

    def go_on(self) -> bool:
        """Matches some more topics; whether all are done."""
        enough = self._work() + _WORK_A_SLICE
        for name in self._names[self._done : self._done + _TOPICS_A_SLICE]:
            for regex in self._regexes:
                if regex.matches(name):
                    self.found[regex.text].add(name)
            self._done += 1
            if self._work() > enough:
                break
        return self._done == len(self._names)

    def _work(self) -> int:
        return sum(regex.work for regex in self._regexes)


def _check(regex: str) -> None:
    try:
        TopicRegex(regex)
    except InvalidRegex as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{regex!r}: {error}") from None


def _is_valid(regex: str) -> bool:
    """One that another broker let in may be more than we do; it then matches nothing."""
    try:
        _check(regex)
    except KafkaError:
        return False
    return True
