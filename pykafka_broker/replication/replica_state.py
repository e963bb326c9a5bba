"""What the leader of a partition knows of its replicas, and what follows from it: the high watermark and the ISR.

Pure: events go in with their time, decisions come out. The rules are those of Apache Kafka 3.9:

| event | what may follow |
|---|---|
| the leader appended | the high watermark moves, if no follower holds it back |
| a follower fetched from an offset: it has all below | the high watermark moves; the follower is proposed for the ISR |
| time passed | members that were not caught up for `replica.lag.time.max.ms` are proposed to leave the ISR |
| time passed, or a replica went | the high watermark moves: who is outside the ISR is not waited for any more |
| the controller accepted or refused a proposal | the ISR and the high watermark change; or it is asked again |

Only the controller changes the ISR. While a proposal is under way no other is made, and the high watermark counts
with the larger of the two sets (the maximal ISR): whichever of them holds in the end, nothing was promised too early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pykafka_broker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNKNOWN_OFFSET: Final = -1
ANY_BROKER_EPOCH: Final = -1
_LONG_AGO: Final = float("-inf")

_NOT_APPLIED: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The controller says that nothing was changed and that our partition epoch is right."""
_OUT_OF_DATE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""What holds now is not known here; it comes with the next LeaderAndIsr, and until then the proposal stays open."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """What the controller says when it makes this broker the leader, or changes something about it."""

    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    controller_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """The ISR a leader asks the controller for. Each is its own: an answer counts only while its proposal is open."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    joining: int | None = None
    leaving: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Accepted:
    """The ISR as the controller has it now, be it the proposed one or another."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


class Decision(NamedTuple):
    """What an event led to: whether more is committed now, and what to ask the controller for."""

    moved: bool
    proposal: Proposal | None = None


NOTHING: Final = Decision(False)


class Pulse(Protocol):
    """Where a follower was last heard from, for partitions so quiet that its fetches do not mention them."""

    @property
    def asked_ms(self) -> float:
        """When it last fetched, with this partition among those it fetches from its known position."""


class Follower:
    """What the leader knows of one follower. Owner: LeaderState."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "end_at_fetch",
        "end_offset",
        "fetched_ms",
        "id",
        "pulse",
        "start_offset",
    )

    def __init__(self, broker_id: int, caught_up_ms: float) -> None:
        self.id = broker_id
        self.end_offset = UNKNOWN_OFFSET
        self.start_offset = UNKNOWN_OFFSET
        self.caught_up_ms = caught_up_ms
        self.end_at_fetch = UNKNOWN_OFFSET
        self.fetched_ms = _LONG_AGO
        self.broker_epoch = ANY_BROKER_EPOCH
        self.pulse: Pulse | None = None


class LeaderState:
    """The leader's view of one partition with followers. Owner: the Partition that leads it.

    `min_isr` is `min.insync.replicas` and may be set at any time. `is_alive` says whether a broker is part of the
    cluster: others neither join the ISR nor are waited for. `is_offline` says whether the controller calls the replica
    on a broker offline, because the broker shuts down or the disk failed: outside the ISR it is not waited for.
    (Whether it may join is for the controller to say, who is the first to know when it may again.)"""

    __slots__ = (
        "_broker_id",
        "_committed",
        "_end",
        "_epoch_start",
        "_followers",
        "_is_alive",
        "_is_offline",
        "_is_settled_elsewhere",
        "_lag_ms",
        "_maximal",
        "_pending",
        "high_watermark",
        "leadership",
        "min_isr",
        "partition_epoch",
    )

    def __init__(
        self,
        broker_id: int,
        leadership: Leadership,
        *,
        end: int,
        high_watermark: int,
        now_ms: float,
        lag_ms: int,
        min_isr: int = 1,
        is_alive: Callable[[int], bool] = lambda _: True,
        is_offline: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self._broker_id = broker_id
        self._lag_ms = lag_ms
        self._is_alive = is_alive
        self._is_offline = is_offline
        self._end = end
        self._epoch_start = end
        self.min_isr = min_isr
        self.high_watermark = high_watermark
        self.leadership = leadership
        self.partition_epoch = leadership.partition_epoch
        self._pending: Proposal | None = None
        self._is_settled_elsewhere = False
        self._commit(leadership.isr)
        self._followers = {
            replica: Follower(replica, now_ms if replica in self._committed else _LONG_AGO)
            for replica in leadership.replicas
            if replica != broker_id
        }
        self._advance(now_ms)

    # What is known

    @property
    def isr(self) -> tuple[int, ...]:
        """As the controller last confirmed it."""
        return self._committed

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Everybody who may be in the ISR, whatever becomes of the proposal under way."""
        return self._maximal

    @property
    def pending(self) -> Proposal | None:
        return self._pending

    @property
    def epoch_start(self) -> int:
        """Where the log ended when this leader epoch began."""
        return self._epoch_start

    @property
    def followers(self) -> Iterator[Follower]:
        return iter(self._followers.values())

    def follower(self, broker_id: int) -> Follower | None:
        return self._followers.get(broker_id)

    @property
    def effective_min_isr(self) -> int:
        """More replicas than there are cannot be asked for."""
        return min(self.min_isr, len(self._followers) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        return len(self._committed) < self.effective_min_isr

    @property
    def has_enough_after_append(self) -> bool:
        """Whether what is committed may be acknowledged, now that the ISR may have changed since the append."""
        return len(self._maximal) >= self.effective_min_isr

    def low_watermark(self, log_start: int) -> int:
        """Below this no living replica has records any more."""
        starts = [f.start_offset for f in self._followers.values() if self._is_alive(f.id)]
        return min((log_start, *starts))

    # Events

    def appended(self, end: int, now_ms: float) -> bool:
        """The log ends at `end` now; whether that committed anything."""
        old_end, self._end = self._end, end
        for follower in self._followers.values():
            # It had everything until this moment, as far as its last fetch can tell.
            if follower.end_offset == old_end and follower.pulse is not None:
                follower.caught_up_ms = max(follower.caught_up_ms, follower.pulse.asked_ms)
        return self._advance(now_ms)

    def fetched(
        self,
        broker_id: int,
        offset: int,
        now_ms: float,
        *,
        start_offset: int = UNKNOWN_OFFSET,
        broker_epoch: int = ANY_BROKER_EPOCH,
        pulse: Pulse | None = None,
    ) -> Decision:
        """A follower asks for what comes at `offset`: it has everything below. It must be one of the replicas."""
        follower = self._followers[broker_id]
        if offset >= self._end:
            follower.caught_up_ms = max(follower.caught_up_ms, now_ms)
        elif offset >= follower.end_at_fetch:
            follower.caught_up_ms = max(follower.caught_up_ms, follower.fetched_ms)
        changed = offset != follower.end_offset
        follower.end_offset = offset
        follower.start_offset = start_offset
        follower.end_at_fetch = max(self._end, follower.end_at_fetch)
        follower.fetched_ms = now_ms
        follower.broker_epoch = broker_epoch
        follower.pulse = pulse
        # First the proposal: the high watermark waits for whoever is about to join.
        proposal = self._expand(follower)
        moved = changed and self._advance(now_ms)
        return Decision(moved, proposal) if moved or proposal is not None else NOTHING

    def time_passed(self, now_ms: float) -> Decision:
        """Looks for members that lag. (Who could join is seen when it fetches: an old position proves nothing.)"""
        moved = self._advance(now_ms)
        proposal = self._shrink(now_ms) if self._pending is None else None
        return Decision(moved, proposal) if moved or proposal is not None else NOTHING

    def replicas_went(self, now_ms: float) -> bool:
        """`is_alive` or `is_offline` may say other than before; whether that committed anything."""
        return self._advance(now_ms)

    def answered(self, proposal: Proposal, answer: Accepted | ErrorCode, now_ms: float) -> Decision:
        """The controller's word on a proposal. A decision that names the same proposal says: ask again."""
        if proposal is not self._pending:
            return NOTHING  # a LeaderAndIsr request was faster
        if isinstance(answer, ErrorCode):
            if answer in _NOT_APPLIED:
                self._pending = None
                self._commit(self._committed)
                return Decision(self._advance(now_ms))
            self._is_settled_elsewhere = answer in _OUT_OF_DATE
            return NOTHING if self._is_settled_elsewhere else Decision(False, proposal)
        if (
            answer.leader_epoch != self.leadership.leader_epoch
            or answer.partition_epoch < self.partition_epoch
        ):
            return NOTHING
        self._pending = None
        self.partition_epoch = answer.partition_epoch
        self._commit(answer.isr)
        return Decision(self._advance(now_ms))

    def changed(self, leadership: Leadership, end: int, now_ms: float) -> bool:
        """The controller spoke again to the same leader; whether that committed anything.

        Word from before what is known is not listened to. What is known already, as a new controller repeats it, says
        nothing of a proposal under way: it may be carried out the next moment, and whoever it lets in counts."""
        if leadership.partition_epoch < self.partition_epoch:
            return False
        new_epoch = leadership.leader_epoch > self.leadership.leader_epoch
        repeated = leadership.partition_epoch == self.partition_epoch and not new_epoch
        self.leadership = leadership
        self.partition_epoch = leadership.partition_epoch
        self._end = end
        if not repeated or self._is_settled_elsewhere:
            self._pending = None
        if self._pending is None:
            self._commit(leadership.isr)
        known = self._followers
        self._followers = {
            replica: known.get(replica) or Follower(replica, _LONG_AGO)
            for replica in leadership.replicas
            if replica != self._broker_id
        }
        if new_epoch:
            self._epoch_start = end
            for follower in self._followers.values():
                in_sync = follower.id in self._committed
                follower.end_at_fetch = end
                follower.caught_up_ms = follower.fetched_ms = now_ms if in_sync else _LONG_AGO
        return self._advance(now_ms)

    # Rules

    def _advance(self, now_ms: float) -> bool:
        """The high watermark is where the last of those in the maximal ISR is, or of those about to join it: a follower
        that keeps up by time is waited for, else it might run behind for ever. But that is a favour, and ends when
        nothing can be expected of it: whatever may end it has to be followed by a look at the high watermark."""
        if self.is_under_min_isr:
            return False
        lowest = self._end
        for follower in self._followers.values():
            if follower.end_offset < lowest and (
                follower.id in self._maximal or self._is_about_to_join(follower, now_ms)
            ):
                lowest = follower.end_offset
        if lowest <= self.high_watermark:
            return False
        self.high_watermark = lowest
        return True

    def _is_about_to_join(self, follower: Follower, now_ms: float) -> bool:
        return (
            self._is_caught_up(follower, now_ms)
            and self._is_alive(follower.id)
            and not self._is_offline(follower.id)
        )

    def _is_caught_up(self, follower: Follower, now_ms: float) -> bool:
        return follower.end_offset == self._end or now_ms - follower.caught_up_ms <= self._lag_ms

    def _expand(self, follower: Follower) -> Proposal | None:
        """To join, a follower must have all that is committed, and all that former leaders left behind."""
        if (
            self._pending is not None
            or follower.id in self._committed
            or follower.end_offset < self.high_watermark
            or follower.end_offset < self._epoch_start
            or not self._is_alive(follower.id)
        ):
            return None
        return self._propose((*self._committed, follower.id), joining=follower.id)

    def _shrink(self, now_ms: float) -> Proposal | None:
        followers = self._followers
        lagging = frozenset(
            member
            for member in self._committed
            if member != self._broker_id
            and (member not in followers or not self._is_caught_up(followers[member], now_ms))
        )
        if not lagging:
            return None
        isr = tuple(member for member in self._committed if member not in lagging)
        return self._propose(isr, leaving=lagging)

    def _propose(
        self, isr: tuple[int, ...], *, joining: int | None = None, leaving: frozenset[int] = frozenset()
    ) -> Proposal:
        self._is_settled_elsewhere = False
        self._pending = Proposal(
            isr, self.leadership.leader_epoch, self.partition_epoch, joining=joining, leaving=leaving
        )
        if joining is not None:
            self._maximal = isr
        return self._pending

    def _commit(self, isr: tuple[int, ...]) -> None:
        self._committed = self._maximal = isr
