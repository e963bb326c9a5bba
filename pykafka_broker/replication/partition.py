"""One partition as this broker serves it: its log, its role, and those who wait for it to change.

A partition is led here, follows a leader elsewhere, or rests until the controller says which. Led here as the only
replica, everything written is committed at once and nothing below costs time; with followers, `replica_state` knows
how much is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.cluster.view import INTERNAL_TOPICS
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import HEADER_SIZE, read_header
from pykafka_broker.replication.commit_queue import CommitQueue, Settled, outcome
from pykafka_broker.replication.replica_state import LeaderState

if TYPE_CHECKING:
    from uuid import UUID

    from pykafka_broker.clock import Clock
    from pykafka_broker.log.partition_log import Appended, PartitionLog, Slice
    from pykafka_broker.protocol.types import Buffer
    from pykafka_broker.replication.replica_state import Accepted, Decision, Leadership, Proposal, Pulse
    from pykafka_broker.replication.throttle import Throttle

log = logging.getLogger(__name__)

Wake = Callable[[], None]

ANY_EPOCH = -1
NO_EPOCH = -1
"""Before the controller has spoken."""
ALL_IN_SYNC = -1
"""acks=all"""


@dataclass(frozen=True, slots=True)
class ReplicationContext:
    """What a replicated partition needs of its broker."""

    broker_id: int
    clock: Clock
    lag_ms: int
    """replica.lag.time.max.ms"""
    is_alive: Callable[[int], bool]
    """Whether a broker is part of the cluster."""
    propose: Callable[[Partition, Proposal], None]
    """Takes an ISR to the controller; the answer goes to `Partition.isr_answered`."""
    lost_logs: Callable[[], None] = lambda: None
    """Tells the controller that a disk failed a log."""
    throttle: Throttle | None = None
    """Of what followers are sent."""
    is_offline: Callable[[str, int, int], bool] = lambda *_: False
    """Whether the controller calls the replica of (topic, index) on a broker offline."""


class Partition:
    """Owner of one PartitionLog; lives on the event loop.

    Without a context it is the only replica, and led here from the start."""

    __slots__ = (
        "_appended",
        "_context",
        "_flushing",
        "_high_watermark",
        "_partition_epoch",
        "_state",
        "_uncommitted",
        "_waiters",
        "index",
        "is_internal",
        "is_leader",
        "is_serving",
        "leader_epoch",
        "leader_id",
        "log",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: UUID,
        log: PartitionLog,
        leader_epoch: int,
        context: ReplicationContext | None = None,
        high_watermark: int = 0,
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self.is_internal = topic in INTERNAL_TOPICS
        self.is_leader = self.is_serving = context is None
        self.leader_id: int | None = None
        self._context = context
        self._state: LeaderState | None = None
        self._partition_epoch = -1
        self._high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)
        self._uncommitted = CommitQueue()
        self._waiters: set[Wake] = set()
        self._appended: set[Wake] = set()
        self._flushing: asyncio.Future[None] | None = None

    # What holds now

    @property
    def high_watermark(self) -> int:
        """Everything below is committed, as far as this replica knows."""
        state = self._state
        if state is not None:
            return state.high_watermark
        return self.log.log_end_offset if self.is_leader else self._high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset(self.high_watermark)

    @property
    def is_replicated(self) -> bool:
        """Whether it is led here and has followers: then an append is not a commit."""
        return self._state is not None

    @property
    def replica_state(self) -> LeaderState | None:
        """What is known of the followers, to be looked at; None unless there are any to lead."""
        return self._state

    @property
    def partition_epoch(self) -> int:
        return self._state.partition_epoch if self._state is not None else self._partition_epoch

    @property
    def knows_what_is_committed(self) -> bool:
        """A new leader does not before all that it found in its log is committed."""
        state = self._state
        return state is None or state.high_watermark >= state.epoch_start

    def check_epoch(self, epoch: int) -> None:
        """A client that knows an older leader is fenced; one that knows a newer one must wait for us to learn of it."""
        if epoch in (ANY_EPOCH, self.leader_epoch):
            return
        if epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    # Roles

    def become_leader(self, leadership: Leadership) -> bool:
        """The controller says so; whether it is a new leader epoch. Old word is not listened to."""
        if leadership.partition_epoch < self.partition_epoch:
            return False
        context = self._replication
        now = context.clock.monotonic() * 1000
        end = self.log.log_end_offset
        high_watermark = self.high_watermark
        new = leadership.leader_epoch > self.leader_epoch
        self.leader_epoch = leadership.leader_epoch
        self.leader_id = context.broker_id
        self._partition_epoch = leadership.partition_epoch
        self.is_leader = self.is_serving = True
        if len(leadership.replicas) == 1:
            self._state = None
            self._uncommitted.settle_all(ErrorCode.NONE)  # nobody is left to wait for: all is committed
        elif self._state is not None:
            self._state.changed(leadership, end, now)
            self._uncommitted.release(self._state)
        else:
            self._state = LeaderState(
                context.broker_id,
                leadership,
                end=end,
                high_watermark=high_watermark,
                now_ms=now,
                lag_ms=context.lag_ms,
                min_isr=self.log.config.min_insync_replicas,
                is_alive=context.is_alive,
                is_offline=partial(context.is_offline, self.topic, self.index),
            )
        self.wake()
        return new

    def become_follower(self, leader_id: int, leader_epoch: int, partition_epoch: int) -> bool:
        """The controller says so; whether it is a new leader epoch, so that following begins anew."""
        if partition_epoch < self.partition_epoch:
            return False
        new = leader_epoch > self.leader_epoch
        self._step_down(partition_epoch)
        self.leader_epoch = leader_epoch
        self.leader_id = leader_id
        self.is_serving = True
        self.wake()
        return new

    def rest(self) -> None:
        """Neither leads nor follows: the replica is stopped, or about to be removed."""
        self._step_down(self.partition_epoch)
        self.leader_id = None
        self.wake()

    def _step_down(self, partition_epoch: int) -> None:
        self._high_watermark = min(self.high_watermark, self.log.log_end_offset)
        self._state = None
        self._partition_epoch = partition_epoch
        self.is_leader = self.is_serving = False
        self._uncommitted.settle_all(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    @property
    def _replication(self) -> ReplicationContext:
        assert self._context is not None, "a partition of a broker alone has one role for ever"
        return self._context

    # Leading

    def append(self, records: Buffer, *, from_client: bool = True, acks: int = ALL_IN_SYNC) -> Appended:
        """KafkaError if the batch is refused, be it because too few replicas are in sync to ever commit it."""
        state = self._state
        if state is not None:
            return self._append_replicated(state, records, from_client, acks)
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        appended = self.log.append_as_leader(records, self.leader_epoch, from_client=from_client)
        self.wake()
        return appended

    def _append_replicated(
        self, state: LeaderState, records: Buffer, from_client: bool, acks: int
    ) -> Appended:
        partition_log = self.log
        state.min_isr = partition_log.config.min_insync_replicas
        if acks == ALL_IN_SYNC and state.is_under_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The in-sync replicas {list(state.isr)} are fewer than the {state.effective_min_isr} needed.",
            )
        appended = partition_log.append_as_leader(records, self.leader_epoch, from_client=from_client)
        moved = state.appended(partition_log.log_end_offset, self._replication.clock.monotonic() * 1000)
        for wake in tuple(self._appended):
            wake()
        if moved:
            self._committed_more(state)
        return appended

    def _committed_more(self, state: LeaderState) -> None:
        self._uncommitted.release(state)
        for wake in tuple(self._waiters):
            wake()

    def check_follower(self, replica_id: int, epoch: int) -> None:
        """Whether this broker may fetch as a replica. One we do not know may be of an assignment yet to be heard of."""
        state = self._state
        if state is None or state.follower(replica_id) is None:
            known = self.is_leader and epoch != ANY_EPOCH
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def follower_fetched(
        self, replica_id: int, offset: int, log_start: int, broker_epoch: int, pulse: Pulse | None
    ) -> None:
        """A follower has everything below `offset`, which lies in the log."""
        state = self._state
        assert state is not None, "check_follower comes first"
        follower = state.follower(replica_id)
        let_go = follower is not None and follower.start_offset < log_start
        state.min_isr = self.log.config.min_insync_replicas
        now = self._replication.clock.monotonic() * 1000
        decision = state.fetched(
            replica_id, offset, now, start_offset=log_start, broker_epoch=broker_epoch, pulse=pulse
        )
        self._carry_out(state, decision)
        if let_go:
            self.wake()  # whoever deletes records waits for that

    def is_withheld(self, replica_id: int) -> bool:
        """Whether a follower gets nothing for now: it is being brought into sync, and more slowly than it could be."""
        throttle, state = self._replication.throttle, self._state
        return (
            throttle is not None
            and throttle.covers(self.topic, self.index)
            and state is not None
            and replica_id not in state.isr
            and throttle.is_exceeded
        )

    def sent_to_follower(self, size: int) -> None:
        throttle = self._replication.throttle
        if throttle is not None and throttle.covers(self.topic, self.index):
            throttle.record(size)

    def check_isr(self) -> None:
        """To be called now and then: who lags is proposed to leave."""
        state = self._state
        if state is not None:
            decision = state.time_passed(self._replication.clock.monotonic() * 1000)
            if decision.proposal is not None:
                shrunk = decision.proposal.isr
                log.info("%s-%d: shrinking the ISR from %s to %s", self.topic, self.index, state.isr, shrunk)
            self._carry_out(state, decision)

    def replicas_went(self) -> None:
        """To be called when brokers may have gone, or replicas gone offline: nobody waits for them any more."""
        state = self._state
        if (
            state is not None
            and state.high_watermark < self.log.log_end_offset
            and state.replicas_went(self._replication.clock.monotonic() * 1000)
        ):
            self._committed_more(state)

    def isr_answered(self, proposal: Proposal, answer: Accepted | ErrorCode) -> None:
        """The controller's word on what was proposed; some refusals are taken to it again."""
        state = self._state
        if state is not None:
            now = self._replication.clock.monotonic() * 1000
            self._carry_out(state, state.answered(proposal, answer, now))

    def _carry_out(self, state: LeaderState, decision: Decision) -> None:
        if decision.proposal is not None:
            self._replication.propose(self, decision.proposal)
        if decision.moved:
            self._committed_more(state)

    def when_settled(self, offset: int, call: Settled) -> None:
        """Calls back once, when everything below `offset` is committed, or when this broker cannot say any more."""
        state = self._state
        if state is None:
            call(ErrorCode.NONE if self.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif offset <= state.high_watermark:
            call(outcome(state))
        else:
            self._uncommitted.add(offset, call)

    def when_committed(self, offset: int, call: Callable[[], None]) -> None:
        """Calls back when everything below `offset` is committed: with a single replica, now. A partition that is not
        led here any more calls nobody."""
        if self._state is None and self.is_leader:
            call()
            return

        def settled(code: ErrorCode) -> None:
            if code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
                call()

        self.when_settled(offset, settled)

    # Following (see follower_ports.Replica)

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def latest_epoch(self) -> int:
        return self.log.leader_epochs.latest

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        return self.log.leader_epochs.end_offset_for(epoch, self.log.log_end_offset)

    def truncate_to(self, offset: int) -> None:
        if offset < self._high_watermark:
            log.warning(
                "%s-%d is cut to %d, below its high watermark %d: was a leader elected uncleanly?",
                self.topic,
                self.index,
                offset,
                self._high_watermark,
            )
        self.log.truncate_to(offset)
        self._high_watermark = min(self._high_watermark, self.log.log_end_offset)
        self.wake()

    def restart_at(self, offset: int) -> None:
        self.log.truncate_fully(offset)
        self._high_watermark = offset
        self.wake()

    def append_fetched(self, records: Buffer, high_watermark: int, log_start_offset: int) -> None:
        partition_log = self.log
        if len(records):
            self._append_as_follower(records)
        end, start = partition_log.log_end_offset, partition_log.log_start_offset
        committed = max(min(high_watermark, end), self._high_watermark)
        if start < log_start_offset <= end:
            partition_log.advance_start(log_start_offset)
        elif committed == self._high_watermark:
            return
        self._high_watermark = max(committed, partition_log.log_start_offset)
        for wake in tuple(self._waiters):
            wake()

    def _append_as_follower(self, records: Buffer) -> None:
        partition_log = self.log
        if partition_log.log_start_offset == partition_log.log_end_offset:
            # The leader's log may begin inside of a batch, and then its first batch begins before its log.
            first = read_header(records).base_offset if len(records) >= HEADER_SIZE else 0
            if first < partition_log.log_end_offset:
                self.restart_at(first)
        partition_log.append_as_follower(records)

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, committed: bool, at_least_one: bool, as_replica: bool = False
    ) -> Slice:
        """What consumers may see; a replica gets all there is."""
        if as_replica:
            return self.log.read(offset, max_bytes, self.log.log_end_offset, at_least_one)
        upto = self.last_stable_offset if committed else self.high_watermark
        return self.log.read(offset, max_bytes, upto, at_least_one)

    # Durability

    @property
    def flush_due(self) -> bool:
        """Whether the next acknowledgement has to wait for the disk (`log.flush.interval.messages`)."""
        partition_log = self.log
        return (
            partition_log.log_end_offset - partition_log.recovery_point >= partition_log.config.flush_messages
        )

    async def flushed(self) -> None:
        """Group commit: everybody who asks while one sync runs shares the next one."""
        target = self.log.log_end_offset
        while self.log.recovery_point < min(target, self.log.log_end_offset):  # the log may be cut meanwhile
            if self._flushing is None or self._flushing.done():
                self._flushing = asyncio.ensure_future(asyncio.to_thread(self.log.flush))
            await asyncio.shield(self._flushing)

    # Those who wait

    def subscribe(self, wake: Wake, appended: Wake | None = None) -> None:
        """Call `wake` whenever more is committed, a start moves, here or on a follower, and at the partition's end or
        change of role, until unsubscribed; and `appended`, if there is one, at each append on a leader with followers.
        """
        self._waiters.add(wake)
        if appended is not None:
            self._appended.add(appended)

    def unsubscribe(self, wake: Wake, appended: Wake | None = None) -> None:
        self._waiters.discard(wake)
        if appended is not None:
            self._appended.discard(appended)

    def wake(self) -> None:
        for wake in tuple(self._waiters):
            wake()
        if self._appended:
            for wake in tuple(self._appended):
                wake()

    @property
    def low_watermark(self) -> int:
        """Below this no living replica has records, as far as a leader knows."""
        start = self.log.log_start_offset
        return start if self._state is None else self._state.low_watermark(start)

    def delete_records(self, before: int) -> int:
        """Moves the log's start; -1 means everything committed. Gives the offset that was meant; followers get there
        when they fetch."""
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        offset = self.high_watermark if before == -1 else before
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log.advance_start(offset)
        self.wake()
        return offset
