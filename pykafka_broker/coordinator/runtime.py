"""Runs one shard: its state comes from a partition, its decisions go there, its replies wait until they are committed.

The shard is pure and single-threaded; this is the thin loop around it. Whoever waits for a reply waits on a future kept
here under the request's token. A client that went away leaves its token behind, and its reply is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pykafka_broker.coordinator.effects import Caller, Effects, Reply
from pykafka_broker.coordinator.failures import failed_replies, told
from pykafka_broker.coordinator.loading import replay_batches
from pykafka_broker.coordinator.shard_clock import ShardClock
from pykafka_broker.coordinator.writing import ShardWriter
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.turn import Soon, Turn

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence

    from pykafka_broker.clock import Clock
    from pykafka_broker.coordinator.shard import GroupShard
    from pykafka_broker.coordinator.writing import ShardLog

log = logging.getLogger(__name__)

_HELD_RECORDS: Final = 1_000
"""Records written in one batch, unless one request brings more: far from what a batch may hold."""

_Held = tuple["Effects", Soon | None]
"""Effects that are not written yet, and the promise that was made of their reply; without one somebody waits for it."""


class _Uncommitted(NamedTuple):
    """Replies that wait for records to be committed, and until when they do (`offsets.commit.timeout.ms`)."""

    deadline: float
    replies: Sequence[Reply]


class ShardRuntime:
    """Owner of one shard, its timers and those who wait for its replies. Lives on the event loop."""

    def __init__(
        self,
        shard: GroupShard,
        log: ShardLog,
        clock: Clock,
        turn: Turn | None = None,
        commit_timeout_ms: int = 5_000,
    ) -> None:
        self._shard = shard
        self._log = log
        self._clock = clock
        self._turn = turn or Turn()
        self._commit_timeout_s = commit_timeout_ms / 1000
        self._held: list[_Held] = []
        self._held_records = 0
        self._tokens = count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for: int | None = None
        self._writer = ShardWriter(shard, log, clock)
        self._uncommitted: dict[int, _Uncommitted] = {}  # in the order of their deadlines
        self._patience: asyncio.TimerHandle | None = None
        self._effects = count()
        self._not_serving = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        """Why it does not, if so."""
        self._shown_end = 0
        """Behind all that was loaded: a new leader may not know yet that it is committed."""
        self._time = ShardClock(clock, shard.clock_set)
        self._loading = asyncio.get_running_loop().create_task(self._load())

    @property
    def shard(self) -> GroupShard:
        """For questions that change nothing. COORDINATOR_LOAD_IN_PROGRESS while it does not know yet."""
        self._require_serving()
        self.write_held()
        return self._shard

    async def _load(self) -> None:
        started = self._clock.monotonic()
        records = 0
        try:
            async for batches in self._log.committed():
                more, self._shown_end = await replay_batches(self._shard, memoryview(batches))
                records += more
        except Exception:
            log.exception("a coordinator cannot be loaded")
            self._not_serving = ErrorCode.NOT_COORDINATOR
            return
        self._not_serving = ErrorCode.NONE
        self.apply(self._shard.loaded(self._time.now()))
        if records:
            log.info("loaded %d records in %.3f s", records, self._clock.monotonic() - started)

    def handle(
        self, request: object, version: int, client_id: str, host: str
    ) -> Any | Coroutine[Any, Any, Any]:
        """The response, `Soon`, or a coroutine that ends in it when the shard has made up its mind."""
        self._require_serving()
        if self._held and self._shard.looks_at_offsets(request):
            self.write_held()
        token, now = next(self._tokens), self._time.now()
        effects = self._shard.handle(request, Caller(token, version, client_id, host), now)
        if effects.can_wait and self._log.commits_at_once:
            soon = Soon(self._turn)
            self._hold(effects, soon)
            return soon
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[token] = reply
        if effects.can_wait:
            self._hold(effects, None)
        else:
            self.apply(effects)
        return reply.result() if reply.done() else self._later(token, reply)

    def topics_changed(self, deleted: Iterable[str]) -> None:
        """What is being loaded learns of it by `loaded`."""
        if not self._not_serving:
            self.write_held()
            self.apply(self._shard.topic_deleted(deleted))
            self._shard.topics_changed()
            self._arm()

    def settling(self) -> Coroutine[Any, Any, None] | None:
        """Ends when all that questions are answered from is committed; None if it is. If that does not come about in
        time, whoever asks is told to ask again, as while this loads."""
        self._require_serving()
        self.write_held()
        if self._log.commits_at_once:
            return None
        token = next(self._tokens)
        settled = self._waiting[token] = asyncio.get_running_loop().create_future()
        self._log.when_committed(
            max(self._writer.end, self._shown_end), lambda: self._give([Reply(token, None)])
        )
        return None if settled.done() else self._settled(token, settled)

    async def _settled(self, token: int, settled: asyncio.Future[Any]) -> None:
        try:
            async with asyncio.timeout(self._commit_timeout_s):
                await settled
        except TimeoutError:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from None
        finally:
            self._waiting.pop(token, None)

    def _require_serving(self) -> None:
        if self._not_serving:
            raise KafkaError(self._not_serving)

    async def _later(self, token: int, reply: asyncio.Future[Any]) -> Any:
        try:
            return await reply
        finally:
            self._waiting.pop(token, None)

    def _hold(self, effects: Effects, soon: Soon | None) -> None:
        """Writes it at the end of this turn of the loop, in one batch with what else comes until then."""
        count = len(effects.records)
        if self._held and self._held_records + count > _HELD_RECORDS:
            self.write_held()
        if not self._held:
            self._turn.put_off(self.write_held)
            self._held_records = 0
        self._held.append((effects, soon))
        self._held_records += count

    def write_held(self) -> None:
        """Append, replay and reply to everything that is held. What is held does not depend on each other."""
        held, self._held = self._held, []
        if not held:
            return
        try:
            self._write(held)
        except Exception:
            log.exception("commits failed unexpectedly")  # what stays without a response is answered as such
            for effects, soon in held:
                if soon is None:
                    self._give(failed_replies(effects.replies, ErrorCode.UNKNOWN_SERVER_ERROR))

    def _write(self, held: Sequence[_Held]) -> None:
        try:
            self._writer.append([effects.records for effects, _ in held])
        except KafkaError as error:
            if len(held) > 1:  # it may be for their number, or for one of them
                for one in held:
                    self._write([one])
            else:
                self._refuse(*held[0], error)
            return
        replies: list[Reply] = []
        for effects, soon in held:
            self._shard.replay_all(effects.records)
            if soon is None:
                replies += effects.replies
            else:
                soon.response = effects.replies[0].response
        self._reply(replies)

    def _refuse(self, effects: Effects, soon: Soon | None, error: KafkaError) -> None:
        """What could not be written is answered at once: it tells of nothing that is yet to be committed, and while too
        few replicas are in sync nothing is."""
        log.warning("a coordinator's records were refused: %s", error.text)
        undone = self._shard.failed(effects.records, effects.replies, error.code, self._time.now())
        replies = undone.replies
        if soon is not None:
            soon.response, replies = replies[0].response, replies[1:]
        self._give(replies)
        self.apply(Effects(undone.records))

    def apply(self, effects: Effects) -> None:
        """Append, replay, and reply once it is committed."""
        try:
            if effects.is_divisible:
                self._writer.write_divided(effects.records)
            elif effects.records:
                self._writer.write(effects.records)
        except KafkaError as error:
            self._refuse(effects, None, error)
            return
        self._reply(effects.replies)

    def _reply(self, replies: Sequence[Reply]) -> None:
        if replies:
            # Also without records of its own a reply may tell of state that is not committed yet.
            number = next(self._effects)
            deadline = self._clock.monotonic() + self._commit_timeout_s
            self._uncommitted[number] = _Uncommitted(deadline, replies)
            self._log.when_committed(self._writer.end, lambda: self._committed(number))
            if self._uncommitted and self._patience is None:
                self._be_patient()
        self._arm()

    def _committed(self, number: int) -> None:
        found = self._uncommitted.pop(number, None)
        if found is not None:  # else its time was over
            self._give(found.replies)

    def _be_patient(self) -> None:
        """One timer, for whoever has waited longest; it may find that nobody waits any more."""
        oldest = next(iter(self._uncommitted.values()))
        delay = max(oldest.deadline - self._clock.monotonic(), 0)
        self._patience = asyncio.get_running_loop().call_later(delay, self._lose_patience)

    def _lose_patience(self) -> None:
        """The records stay in the log, and may be committed yet; who asked for them may ask again."""
        self._patience = None
        now = self._clock.monotonic()
        late = [number for number, waiting in self._uncommitted.items() if waiting.deadline <= now]
        for number in late:
            replies = self._uncommitted.pop(number).replies
            self._give(failed_replies(replies, told(ErrorCode.REQUEST_TIMED_OUT)))
        if self._uncommitted:
            self._be_patient()

    def _give(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            waiting = self._waiting.pop(reply.token, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(reply.response)

    def _arm(self) -> None:
        """One timer, for whatever is due first."""
        if self._shard.next_deadline() == self._armed_for:
            return
        now = self._time.now()
        deadline = self._shard.next_deadline()
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = deadline
        self._timer = None
        if deadline is not None:
            delay = max(deadline - now, 0) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = self._armed_for = None
        self.write_held()
        for decide in self._shard.due(self._time.now()):
            try:
                self.apply(decide())
            except Exception:
                log.exception("something that was due failed unexpectedly")
        self._arm()

    def stop(self) -> asyncio.Task[None]:
        """Answers nothing more; whoever still waits is sent to the next coordinator. Gives a task to be awaited."""
        self._loading.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._not_serving:
            self.write_held()
            self._not_serving = ErrorCode.NOT_COORDINATOR
            self._give(self._shard.unload().replies)
        if self._patience is not None:
            self._patience.cancel()
        # Whether they will be committed, only the next leader can say.
        for waiting in self._uncommitted.values():
            self._give(failed_replies(waiting.replies, ErrorCode.NOT_COORDINATOR))
        self._uncommitted.clear()
        # Cancelled they would leave their connections without an answer.
        for asked in self._waiting.values():
            if not asked.done():
                asked.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))
        self._waiting.clear()
        return self._loading
