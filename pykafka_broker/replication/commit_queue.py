"""Who waits until an offset is committed, in the order of offsets."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pykafka_broker.replication.replica_state import LeaderState

Settled = Callable[[ErrorCode], None]
"""Told NONE when it is committed, else why it may never be."""


class CommitQueue:
    """Owner: a Partition that leads. Every call is told exactly once."""

    __slots__ = ("_count", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Settled]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, offset: int, call: Settled) -> None:
        """To be told when everything below `offset` is committed."""
        self._count += 1
        heapq.heappush(self._waiting, (offset, self._count, call))

    def release(self, state: LeaderState) -> None:
        """The high watermark moved."""
        waiting, high_watermark = self._waiting, state.high_watermark
        while waiting and waiting[0][0] <= high_watermark:
            heapq.heappop(waiting)[2](outcome(state))

    def settle_all(self, code: ErrorCode) -> None:
        """The partition is not led here any more and nobody can promise anything; or there are no followers left."""
        waiting, self._waiting = self._waiting, []
        for _, _, call in sorted(waiting, key=lambda entry: entry[:2]):
            call(code)


def outcome(state: LeaderState) -> ErrorCode:
    """What to say of a committed offset, should the ISR have shrunk below the minimum since it was appended."""
    if state.has_enough_after_append:
        return ErrorCode.NONE
    return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
