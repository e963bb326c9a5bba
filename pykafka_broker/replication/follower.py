"""Follows one leader broker: fetches from it, in one session, for all partitions it leads and we hold a replica of.

What comes is appended as it is, one write a partition. What to do about differences and errors is decided in
`follower_state`; this is the thin loop that asks, carries out, and asks again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.follower_requests import (
    EARLIEST,
    LATEST,
    NEWEST_FETCH,
    fetch_request,
    offset_in,
    offset_request,
)
from pykafka_broker.replication.follower_session import FollowerSession
from pykafka_broker.replication.follower_state import (
    Next,
    Phase,
    Progress,
    begin,
    judge,
    pause_ms,
    start_after_begin,
    start_after_end,
    truncation_offset,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.clock import Clock
    from pykafka_broker.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
    from pykafka_broker.replication.follower_ports import Channel, FollowerSettings, Replica
    from pykafka_broker.replication.follower_session import PartitionKey

log = logging.getLogger(__name__)

_PATIENCE_S: Final = 0.02
"""A fetch that takes longer than this waits for records; then what is new is not kept waiting with it."""


class Fetcher:
    """Owner of the loop that follows one leader, and of the progress with each partition. Lives on the event loop.

    `add` and `remove` may come at any time, also while a fetch is under way: its answer about a partition that was
    removed, or added again under another epoch, is not listened to. A fetch that waits at the leader is given up for
    what is new: after a failover every acknowledgement would wait for it."""

    def __init__(self, leader_id: int, channel: Channel, settings: FollowerSettings, clock: Clock) -> None:
        self.leader_id = leader_id
        self._channel = channel
        self._settings = settings
        self._clock = clock
        self._session = FollowerSession()
        self._replicas: dict[PartitionKey, Replica] = {}
        self._progress: dict[PartitionKey, Progress] = {}
        self._truncating: dict[PartitionKey, None] = {}
        self._delayed: dict[PartitionKey, None] = {}
        self._failures = 0
        self._news = asyncio.Event()
        self._turns = 0
        self._under_way = False
        self._given_up = False
        self._hurry: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._progress)

    def progress(self, key: PartitionKey) -> Progress | None:
        return self._progress.get(key)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Nothing is appended once this returns; the channel is its owner's to close."""
        for key in tuple(self._progress):
            self.remove(key)
        if self._hurry is not None:
            self._hurry.cancel()
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        self.stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def add(self, replica: Replica) -> None:
        """Follow this partition, under its present leader epoch. Nothing changes if that is done already."""
        key = (replica.topic_id, replica.index)
        known = self._progress.get(key)
        if (
            known is not None
            and known.leader_epoch == replica.leader_epoch
            and self._replicas[key] is replica
        ):
            return
        self.remove(key)
        progress = begin(replica.topic, replica.index, replica.topic_id, replica.leader_epoch, replica)
        self._replicas[key] = replica
        self._progress[key] = progress
        if progress.phase is Phase.TRUNCATING:
            self._truncating[key] = None
        else:
            self._session.put(key)
        self._news.set()
        self._hasten(_PATIENCE_S)

    def remove(self, key: PartitionKey) -> None:
        if self._progress.pop(key, None) is not None:
            del self._replicas[key]
            self._truncating.pop(key, None)
            self._delayed.pop(key, None)
            self._session.drop(key)

    # The loop

    async def _run(self) -> None:
        while True:
            try:
                await self._step()
            except Exception:
                log.exception("following broker %d met what nobody foresaw, and goes on", self.leader_id)
                self._session.lost()
                await self._pause()

    async def _step(self) -> None:
        self._truncate_to_high_watermarks()
        self._end_delays()
        self._hold_back()
        if len(self._session):
            await self._fetch()
            return
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), self._until_delay_ends())

    def _truncate_to_high_watermarks(self) -> None:
        while self._truncating:
            key, _ = self._truncating.popitem()
            progress = self._progress[key]
            if self._carry_out(progress, self._replicas[key].truncate_to, progress.offset):
                self._go_on(progress)

    def _end_delays(self) -> None:
        if self._delayed:
            now = self._clock.monotonic() * 1000
            for key in tuple(self._delayed):
                progress = self._progress[key]
                assert progress.delayed_until_ms is not None
                if progress.delayed_until_ms <= now:
                    del self._delayed[key]
                    progress.delayed_until_ms = None
                    self._session.put(key)

    def _hold_back(self) -> None:
        """While more comes than throttled replicas may take, those that are not in sync are left alone."""
        throttle = self._settings.throttle
        if throttle is None or not throttle.is_on or not throttle.is_exceeded:
            return
        for progress in tuple(self._progress.values()):
            held = throttle.covers(progress.topic, progress.index) and not progress.is_in_sync
            if held and progress.is_fetching:
                self._leave_alone(progress, self._settings.backoff_ms)

    def _until_delay_ends(self) -> float | None:
        """Seconds until the first delayed partition goes on."""
        ends = [self._progress[key].delayed_until_ms or 0 for key in self._delayed]
        return max(min(ends) / 1000 - self._clock.monotonic(), 0) if ends else None

    async def _fetch(self) -> None:
        request = self._request()
        self._turns += 1
        self._under_way = True
        try:
            response: FetchResponse = await self._channel.call(
                request, newest=NEWEST_FETCH, timeout_ms=self._settings.socket_timeout_ms
            )
        except (OSError, KafkaError) as error:
            self._session.lost()
            if self._given_up:
                return
            log.warning("broker %d cannot be followed for now: %s", self.leader_id, error)
            await self._pause()
            return
        finally:
            self._under_way = self._given_up = False
        if not self._session.answered(response.error_code, response.session_id):
            log.info("broker %d wants a new fetch session: error %d", self.leader_id, response.error_code)
            await self._pause()
            return
        self._failures = 0
        out_of_range = []
        for topic in response.responses:
            for data in topic.partitions:
                progress = self._progress.get((topic.topic_id, data.partition_index))
                if progress is not None and self._is_current(progress):
                    if judge(data.error_code) is Next.LOOK_FOR_START:
                        out_of_range.append(progress)
                    else:
                        self._take(progress, data)
        for progress in out_of_range:
            await self._find_start(progress)

    def _hasten(self, after_s: float) -> None:
        """If the fetch under way is still out by then, it is given up for one that names what is new."""
        if self._hurry is None and self._task is not None:
            loop = asyncio.get_running_loop()
            self._hurry = loop.call_later(after_s, self._give_up, self._turns)

    def _give_up(self, turn: int) -> None:
        self._hurry = None
        if not self._under_way or not self._has_news():
            return
        if self._turns != turn:
            self._hasten(_PATIENCE_S)  # another fetch has gone out meanwhile, and it is given its time too
        else:
            self._given_up = True
            self._channel.interrupt()

    def _has_news(self) -> bool:
        """Whether the next fetch would say more than that it waits on."""
        now = self._clock.monotonic() * 1000
        return (
            self._session.has_unsaid
            or bool(self._truncating)
            or any((self._progress[key].delayed_until_ms or 0) <= now for key in self._delayed)
        )

    async def _pause(self) -> None:
        await asyncio.sleep(pause_ms(self._failures, self._settings.backoff_ms) / 1000)
        self._failures += 1

    def _request(self) -> FetchRequest:
        turn = self._session.turn()
        named = []
        for key in turn.named:
            progress = self._progress[key]
            progress.asked_offset = progress.offset
            progress.told_start = self._replicas[key].log_start_offset
            named.append(progress)
        return fetch_request(self._settings, turn, named)

    def _is_current(self, progress: Progress) -> bool:
        """Whether an answer about this partition is still of use."""
        replica = self._replicas[progress.key]
        return (
            progress.is_fetching
            and progress.asked_offset == progress.offset
            and progress.leader_epoch == replica.leader_epoch
        )

    # What an answer says

    def _take(self, progress: Progress, data: PartitionData) -> None:
        match judge(data.error_code):
            case Next.TAKE if data.diverging_epoch is not None:
                self._part_ways(progress, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            case Next.TAKE:
                self._append(progress, data)
            case Next.FAIL:
                log.info("%s-%d is led by somebody newer than we know", progress.topic, progress.index)
                self._fail(progress)
            case _:
                self._delay(progress, f"the leader says {data.error_code}")

    def _append(self, progress: Progress, data: PartitionData) -> None:
        replica = self._replicas[progress.key]
        records = data.records if data.records is not None else b""
        if self._carry_out(
            progress, replica.append_fetched, records, data.high_watermark, data.log_start_offset
        ):
            throttle = self._settings.throttle
            if throttle is not None and throttle.covers(progress.topic, progress.index):
                throttle.record(len(records))
            progress.failures = 0
            progress.lag = max(data.high_watermark - replica.log_end_offset, 0)
            if replica.log_end_offset != progress.offset or replica.log_start_offset != progress.told_start:
                self._go_on(progress)

    def _part_ways(self, progress: Progress, epoch: int, end_offset: int) -> None:
        replica = self._replicas[progress.key]
        offset = truncation_offset(replica, epoch, end_offset)
        log.info(
            "%s-%d is cut from %d to %d: the leader's epoch %d ends at %d",
            progress.topic,
            progress.index,
            replica.log_end_offset,
            offset,
            epoch,
            end_offset,
        )
        before = (progress.offset, progress.last_epoch)
        if self._carry_out(progress, replica.truncate_to, offset):
            self._go_on(progress)
            if before == (progress.offset, progress.last_epoch):
                self._delay(progress, "the leader finds a difference where there is nothing to cut")

    async def _find_start(self, progress: Progress) -> None:
        replica = self._replicas.get(progress.key)
        if replica is None:
            return
        try:
            start = start_after_end(replica.log_end_offset, await self._ask_offset(progress, LATEST))
            if start is None:
                leader_start = await self._ask_offset(progress, EARLIEST)
                start = start_after_begin(replica.log_end_offset, leader_start)
        except (OSError, KafkaError) as error:
            if self._progress.get(progress.key) is progress:
                if isinstance(error, KafkaError) and error.code == ErrorCode.FENCED_LEADER_EPOCH:
                    self._fail(progress)
                else:
                    self._delay(progress, f"where the leader's log begins and ends is not known: {error}")
            return
        if self._progress.get(progress.key) is not progress or not self._is_current(progress):
            return
        log.warning("%s-%d goes on at offset %d", progress.topic, progress.index, start.offset)
        done = True
        if start.cut:
            done = self._carry_out(progress, replica.truncate_to, start.offset)
        elif start.anew:
            done = self._carry_out(progress, replica.restart_at, start.offset)
        if done:
            self._go_on(progress)

    async def _ask_offset(self, progress: Progress, timestamp: int) -> int:
        request = offset_request(self._settings, progress, timestamp)
        return offset_in(await self._channel.call(request, timeout_ms=self._settings.socket_timeout_ms))

    def _carry_out(self, progress: Progress, change: Callable[..., None], *arguments: Any) -> bool:
        """Changes the log; a partition whose log cannot be changed is delayed, or given up until it is led anew."""
        try:
            change(*arguments)
        except KafkaError as error:
            if error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD):
                self._delay(progress, f"what the leader sent is damaged: {error}")
            else:
                log.exception("%s-%d cannot be followed", progress.topic, progress.index)
                self._fail(progress)
            return False
        except Exception:
            log.exception("%s-%d cannot be followed", progress.topic, progress.index)
            self._fail(progress)
            return False
        return True

    # Where a partition stands

    def _go_on(self, progress: Progress) -> None:
        """From the end of the log, as it is now."""
        replica = self._replicas[progress.key]
        progress.offset = replica.log_end_offset
        progress.last_epoch = replica.latest_epoch
        progress.phase = Phase.FETCHING
        self._session.put(progress.key)

    def _delay(self, progress: Progress, why: str) -> None:
        log.info("%s-%d waits: %s", progress.topic, progress.index, why)
        pause = pause_ms(progress.failures, self._settings.backoff_ms)
        progress.failures += 1
        self._leave_alone(progress, pause)

    def _leave_alone(self, progress: Progress, pause: float) -> None:
        progress.delayed_until_ms = self._clock.monotonic() * 1000 + pause
        self._delayed[progress.key] = None
        self._session.drop(progress.key)
        asyncio.get_running_loop().call_later(pause / 1000, self._delay_ended, progress)

    def _delay_ended(self, progress: Progress) -> None:
        if self._progress.get(progress.key) is progress and progress.delayed_until_ms is not None:
            self._news.set()
            self._hasten(_PATIENCE_S)

    def _fail(self, progress: Progress) -> None:
        progress.phase = Phase.FAILED
        self._session.drop(progress.key)
