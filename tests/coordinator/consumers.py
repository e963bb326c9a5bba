"""Clients of consumer groups that follow the protocol, and a look into a group's state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pykafka_broker.coordinator.consumer_group import ConsumerGroup
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatTopicPartitions,
)
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequestGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from .harness import Harness

Partition = tuple[str, int]

HEARTBEAT_MS = 5_000
SESSION_MS = 45_000
REBALANCE_MS = 60_000


class Consumer:
    """One client. What it was told it takes over with `digest`, at once unless a test wants it otherwise."""

    def __init__(
        self,
        h: Harness,
        member_id: str,
        topics: Iterable[str] | None = ("t",),
        *,
        group: str = "g",
        regex: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        version: int = 1,
    ) -> None:
        self.h = h
        self.member_id = member_id
        self.topics = None if topics is None else list(topics)
        self.group = group
        self.regex = regex
        self.instance = instance
        self.assignor = assignor
        self.version = version
        self.epoch = 0
        self.owned: set[Partition] = set()
        self.told: set[Partition] | None = None
        self._tell_owned = True
        self._tell_topics = True

    def __repr__(self) -> str:
        return (
            f"<{self.member_id} at {self.epoch} wants {self.topics} {self.regex} owns {sorted(self.owned)}>"
        )

    def request(self) -> ConsumerGroupHeartbeatRequest:
        first = self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, instance_id=self.instance
        )
        if first or (self._tell_topics and self._tell_owned):
            request.rebalance_timeout_ms = REBALANCE_MS
            request.server_assignor = self.assignor
        if first or self._tell_topics:
            request.subscribed_topic_names = self.topics
            request.subscribed_topic_regex = self.regex
        if first or self._tell_owned:
            request.topic_partitions = partitions_by_id(self.h, self.owned)
        return request

    def beat(self, *, digest: bool = True) -> Any:
        """One heartbeat. A member that is fenced gives up everything, and joins with its next."""
        return self.hear(self.h.call(self.request(), self.version), digest=digest)

    def ask(self) -> int:
        """One heartbeat, sent. Gives its token."""
        return self.h.send(self.request(), self.version)

    def hear(self, response: Any, *, digest: bool = True) -> Any:
        """The answer to a heartbeat. After an error the next one tells everything."""
        if response.error_code:
            self._tell_owned = self._tell_topics = True
            if response.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
                self.abandon()
            return response
        self.member_id, self.epoch = response.member_id, response.member_epoch
        self._tell_owned = self._tell_topics = False
        if response.assignment is not None:
            self.told = partitions_by_name(self.h, response.assignment.topic_partitions)
        if digest:
            self.digest()
        return response

    def beat_in_vain(self) -> None:
        """One heartbeat whose answer is lost; so the next one tells everything."""
        self.h.call(self.request(), self.version)
        self._tell_owned = self._tell_topics = True

    def digest(self) -> None:
        """Gives back what is not meant for it any more, takes what is, and will say so. To take something it must know
        where to go on; if the broker does not tell it, what it was told is old news."""
        if self.told is None:
            return
        if not self.told <= self.owned and self._fetch_offsets() != ErrorCode.NONE:
            self.told &= self.owned
        self._tell_owned = self._tell_owned or self.told != self.owned
        self.owned, self.told = self.told, None

    def _fetch_offsets(self) -> int:
        request = OffsetFetchRequestGroup(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, topics=None
        )
        return self.h.shard.fetch_offsets(request, 9).error_code

    def abandon(self) -> None:
        self.owned, self.told, self.epoch = set(), None, 0

    def subscribe(self, topics: Iterable[str]) -> None:
        self.topics, self._tell_topics = list(topics), True

    def wants(self, counts: Mapping[str, int]) -> list[str]:
        named = [topic for topic in counts if topic in (self.topics or ())]
        matched = [topic for topic in counts if self.regex is not None and re.fullmatch(self.regex, topic)]
        return [*named, *(topic for topic in matched if topic not in named)]

    def leave(self, epoch: int = -1) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance
        )
        self.abandon()
        return self.h.call(request, self.version)


def partitions_by_id(h: Harness, partitions: Iterable[Partition]) -> list[HeartbeatTopicPartitions]:
    by_topic: dict[UUID, list[int]] = {}
    for topic, partition in sorted(partitions):
        topic_id = h.topics.topic_id(topic)
        if topic_id is not None:
            by_topic.setdefault(topic_id, []).append(partition)
    return [HeartbeatTopicPartitions(topic_id=t, partitions=p) for t, p in by_topic.items()]


def partitions_by_name(h: Harness, topics: Iterable[HeartbeatTopicPartitions]) -> set[Partition]:
    return {(h.topics.name(t.topic_id) or str(t.topic_id), p) for t in topics for p in t.partitions}


def settle(h: Harness, *consumers: Any, rounds: int = 40) -> None:
    """Lets members beat until the group is stable and nobody has news."""
    for _ in range(rounds):
        for consumer in consumers:
            consumer.beat()
        h.pass_time(HEARTBEAT_MS)
        groups = {consumer.group for consumer in consumers}
        if all(described(h, group).group_state == "Stable" for group in groups):
            for consumer in consumers:
                consumer.beat()
            return
    raise AssertionError(f"not settled: {[described(h, c.group) for c in consumers]}")


def described(h: Harness, group: str = "g") -> Any:
    return h.shard.describe_consumer([group])[0]


def group_of(h: Harness, group: str = "g") -> ConsumerGroup:
    found = h.shard._groups[group]
    assert isinstance(found, ConsumerGroup)
    return found


def image(h: Harness) -> dict[str, Any]:
    """Everything that must survive a reload."""
    soft = {"checked_at_epoch", "decided_in"}
    images: dict[str, Any] = {}
    for group_id, group in h.shard._groups.items():
        if isinstance(group, ConsumerGroup):
            images[group_id] = {name: value for name, value in vars(group).items() if name not in soft}
    return images
