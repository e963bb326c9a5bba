"""A client of the classic protocol with an eager assignor, at home in classic groups and in consumer groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.coordinator.consumer_protocol import (
    Subscription,
    read_assignment,
    read_subscription,
    write_assignment,
)
from pykafka_broker.protocol.codec import encode
from pykafka_broker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .consumers import Partition
    from .harness import Harness

SESSION_MS, REBALANCE_MS = 45_000, 60_000


class ClassicConsumer:
    """Gives up everything before it joins. What it waits for it looks at with its next `beat`."""

    instance: str | None = None
    group = "g"

    def __init__(self, h: Harness, topics: Iterable[str]) -> None:
        self.h = h
        self.topics = list(topics)
        self.member_id = ""
        self.generation = -1
        self.owned: set[Partition] = set()
        self.token: int | None = None
        self.phase = "out"
        self._told: list[str] | None = None
        self._assigned_for: dict[str, int] | None = None
        """The topics at the time it last assigned as the leader."""

    def __repr__(self) -> str:
        return f"<{self.member_id} {self.phase} at {self.generation} wants {self.topics} owns {sorted(self.owned)}>"

    def wants(self, counts: Mapping[str, int]) -> list[str]:
        return [topic for topic in self.topics if topic in counts]

    def subscribe(self, topics: Iterable[str]) -> None:
        """It joins again when it comes to it."""
        self.topics = list(topics)

    def beat(self, *, digest: bool = True) -> None:
        """The next thing to do. A slow member does not hear that it shall join again."""
        if self.phase == "in":
            error = self.h.heartbeat(self.member_id, self.generation)
            sees_news = self._assigned_for not in (None, self.h.topics.counts) or self._told != self.topics
            if error == ErrorCode.NONE and not sees_news:
                return
            if error == ErrorCode.REBALANCE_IN_PROGRESS and not digest:
                return
            self._lost(error)
        if self.phase == "out":
            self._join()
        self._look()

    def lost_coordinator(self) -> None:
        """Whatever it waits for will not come."""
        self.token = None
        if self.phase != "in":
            self.phase = "out"

    def leave(self) -> None:
        if self.member_id:
            self.h.leave(self.member_id)

    def _lost(self, error: ErrorCode) -> None:
        self.owned, self.phase, self._assigned_for = set(), "out", None
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    def _join(self) -> None:
        self._lost(ErrorCode.NONE)
        options: dict[str, Any] = {"session_ms": SESSION_MS, "rebalance_ms": REBALANCE_MS}
        subscription = b"\0\0" + b"".join(encode(Subscription(topics=self.topics), 0))
        options["protocols"] = {"range": subscription}
        self.token = self.h.join(self.member_id, **options)
        self._told = self.topics
        self.phase = "joining"
        if not self.member_id and not self.h.waits(self.token):
            required = self.h.replies[self.token]
            if required.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = required.member_id
                self.token = self.h.join(self.member_id, **options)

    def _look(self) -> None:
        """At the answer it waits for."""
        if self.phase == "joining" and self.token is not None and not self.h.waits(self.token):
            answer = self.h.replies[self.token]
            if answer.error_code:
                self._lost(answer.error_code)
                return
            self.member_id, self.generation = answer.member_id, answer.generation_id
            parts = self._assign(answer.members) if answer.members else {}
            self.token, self.phase = self.h.sync(self.member_id, self.generation, parts), "syncing"
        if self.phase == "syncing" and self.token is not None and not self.h.waits(self.token):
            answer = self.h.replies[self.token]
            if answer.error_code:
                self._lost(answer.error_code)
                return
            self.phase = "in"
            if answer.assignment:
                told = read_assignment(answer.assignment).assigned_partitions
                self.owned = {(topic.topic, p) for topic in told for p in topic.partitions}

    def _assign(self, members: Iterable[Any]) -> dict[str, bytes]:
        """As the leader: every partition to one of those who want it, in turns."""
        self._assigned_for = dict(self.h.topics.counts)
        parts: dict[str, dict[str, set[int]]] = {m.member_id: {} for m in members}
        wants = {m.member_id: read_subscription(bytes(m.metadata)).topics for m in members}
        for topic, count in self.h.topics.counts.items():
            takers = [member for member, topics in wants.items() if topic in topics]
            for partition in range(count if takers else 0):
                taker = takers[partition % len(takers)]
                parts[taker].setdefault(topic, set()).add(partition)
        return {member: write_assignment(part, 0) for member, part in parts.items()}
