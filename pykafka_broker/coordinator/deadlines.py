"""Things that happen when their time has come, cheap to put off: members do that with every heartbeat."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykafka_broker.coordinator.group import Decision

Action = Callable[[int, "Decision"], None]
"""Called with the time and a decision to add to."""


class Deadlines:
    """Owner of what a shard has to do later, at most one thing under a key.

    A deadline that is put off stays where it is in the heap and is looked at again when the old time comes."""

    def __init__(self) -> None:
        self._due: dict[Hashable, tuple[int, Action]] = {}
        self._queued: dict[Hashable, int] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._sequence = 0

    def set(self, key: Hashable, at_ms: int, action: Action) -> None:
        """Does `action` at `at_ms` instead of whatever was to be done under this key."""
        self._due[key] = (at_ms, action)
        queued = self._queued.get(key)
        if queued is None or queued > at_ms:
            self._push(key, at_ms)

    def cancel(self, key: Hashable) -> None:
        self._due.pop(key, None)

    def is_set(self, key: Hashable) -> bool:
        return key in self._due

    def next(self) -> int | None:
        """Not later than the earliest deadline."""
        while self._heap:
            at_ms, _, key = self._heap[0]
            if key in self._due and self._queued.get(key) == at_ms:
                return at_ms
            self._pop()
        return None

    def due(self, now_ms: int) -> list[Callable[[Decision], None]]:
        """Everything due by now, in the order of its time, to be done one after another: what one does may cancel
        another. What it sets for now waits for the next time."""
        ready: list[tuple[Hashable, tuple[int, Action]]] = []
        while self._heap and self._heap[0][0] <= now_ms:
            key = self._pop()
            due = self._due.get(key) if key is not None else None
            if due is None:
                continue
            if due[0] > now_ms:
                self._push(key, due[0])
            else:
                ready.append((key, due))
        return [partial(self._do, key, due, now_ms) for key, due in ready]

    def shift(self, by_ms: int) -> None:
        """The clock that deadlines are told in was set: all of them go along."""
        self._due = {key: (at_ms + by_ms, action) for key, (at_ms, action) in self._due.items()}
        self._queued = {key: at_ms + by_ms for key, at_ms in self._queued.items()}
        self._heap = [(at_ms + by_ms, sequence, key) for at_ms, sequence, key in self._heap]

    def _do(self, key: Hashable, due: tuple[int, Action], now_ms: int, decision: Decision) -> None:
        # An action before this one may have cancelled it or set it anew.
        if self._due.get(key) is due:
            del self._due[key]
            due[1](now_ms, decision)

    def _push(self, key: Hashable, at_ms: int) -> None:
        self._sequence += 1
        self._queued[key] = at_ms
        heapq.heappush(self._heap, (at_ms, self._sequence, key))

    def _pop(self) -> Hashable | None:
        """The key of the earliest entry, or None if another entry of the heap stands for it by now."""
        at_ms, _, key = heapq.heappop(self._heap)
        if self._queued.get(key) != at_ms:
            return None
        del self._queued[key]
        return key
