"""How far a follower is with one partition, and what it does next. Pure: the loop in `follower` carries it out.

| phase | means | leaves it |
|---|---|---|
| TRUNCATING | the log has no epochs to compare, so what is above the high watermark is cut off first | at once |
| FETCHING | the leader is asked for what comes next; it says so where the logs part | by a failure, or never |
| FAILED | the disk or the leader's epoch forbids to go on | when the controller names a leader again |

In the first two a partition may also be delayed: after an error it is left alone for a while.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pykafka_broker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from uuid import UUID

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
_FIRST_PAUSE_MS: Final = 50


class Phase(enum.Enum):
    TRUNCATING = enum.auto()
    FETCHING = enum.auto()
    FAILED = enum.auto()


class LocalLog(Protocol):
    """What decisions are made from."""

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def latest_epoch(self) -> int:
        """Of the last record; -1 if it is not known."""

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The greatest known epoch not above `epoch`, and where it ended here; (-1, -1) if that is not known."""


@dataclass(slots=True)
class Progress:
    """Where a follower is with one partition under one leader epoch. Owner: the Fetcher of that leader."""

    topic: str
    index: int
    topic_id: UUID
    leader_epoch: int
    offset: int
    last_epoch: int
    phase: Phase
    delayed_until_ms: float | None = None
    asked_offset: int | None = None
    """Where the fetch under way reads; an answer to any other question is not listened to."""
    told_start: int = NO_OFFSET
    """Where the log began when the leader was last told."""
    failures: int = 0
    """In a row: the pauses after them grow."""
    lag: int | None = None
    """How far behind the leader's high watermark; None before the first answer."""

    @property
    def key(self) -> tuple[UUID, int]:
        return self.topic_id, self.index

    @property
    def is_fetching(self) -> bool:
        return self.phase is Phase.FETCHING and self.delayed_until_ms is None

    @property
    def is_in_sync(self) -> bool:
        return self.lag is not None and self.lag <= 0


def begin(topic: str, index: int, topic_id: UUID, leader_epoch: int, log: LocalLog) -> Progress:
    """With epochs in the log the leader finds where it parts from its own; without, only what is committed is kept."""
    last_epoch = log.latest_epoch
    if last_epoch == NO_EPOCH:
        return Progress(
            topic, index, topic_id, leader_epoch, log.high_watermark, last_epoch, Phase.TRUNCATING
        )
    return Progress(topic, index, topic_id, leader_epoch, log.log_end_offset, last_epoch, Phase.FETCHING)


def pause_ms(failures: int, longest_ms: int) -> int:
    """How long to wait after so many failures: most often the leader learns in a moment what we know already."""
    return min(_FIRST_PAUSE_MS << min(failures, 16), longest_ms)


class Next(enum.Enum):
    """What an answer about one partition calls for."""

    TAKE = enum.auto()
    LOOK_FOR_START = enum.auto()
    """The offset is out of the leader's range: ask where its log begins and ends."""
    DELAY = enum.auto()
    FAIL = enum.auto()


def judge(code: int) -> Next:
    """What the leader's error code means. Everything may pass, except that a newer leader has been elected: the
    controller will say who, and until then there is nobody to ask."""
    if code == ErrorCode.NONE:
        return Next.TAKE
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return Next.LOOK_FOR_START
    return Next.FAIL if code == ErrorCode.FENCED_LEADER_EPOCH else Next.DELAY


def truncation_offset(log: LocalLog, epoch: int, end_offset: int) -> int:
    """Where to cut, when the leader says that the newest epoch it shares with us is at most `epoch`, and ends there at
    `end_offset`. It may take several such answers until both agree."""
    log_end = log.log_end_offset
    if end_offset == NO_OFFSET:
        return min(log.high_watermark, log_end)
    if epoch == NO_EPOCH:
        return min(end_offset, log_end)
    known, ended = log.epoch_end(epoch)
    if ended == NO_OFFSET:  # our epochs begin later, or we have none
        return min(end_offset, log_end)
    if known != epoch:
        return min(ended, log_end)
    return min(ended, end_offset, log_end)


class Start(NamedTuple):
    """Where to go on after the offset was out of range, and what becomes of the log until there."""

    offset: int
    cut: bool = False
    """The log is longer than the leader's: it ends at `offset` now."""
    anew: bool = False
    """The leader has nothing any more that would join on: the log begins again, empty, at `offset`."""


def start_after_end(log_end: int, leader_end: int) -> Start | None:
    """A leader whose log is shorter than ours (an unclean election) is followed; None if it is not shorter."""
    return Start(leader_end, cut=True) if leader_end < log_end else None


def start_after_begin(log_end: int, leader_start: int) -> Start:
    """The leader goes on beyond our end: does it still have what comes next?"""
    if leader_start > log_end:
        return Start(leader_start, anew=True)
    return Start(log_end)
