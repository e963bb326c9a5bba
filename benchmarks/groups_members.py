"""A hundred group members in one event loop: as prompt as real ones, and so cheap that the broker sets the pace.

They do what the protocols ask of a member and no more. A classic member gives everything up when it hears of a
rebalance; a member of the new protocol confirms what it was given at once, as the Java client does.
"""

from __future__ import annotations

import asyncio
import socket
import time
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass

import uvloop

from benchmarks import groups_wire as wire
from benchmarks.wire import WireError

REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 27, 79
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Setting:
    """What a crowd of members is told: where to join, and how its time runs."""

    host: str
    port: int
    group: str
    topic: str
    partitions: int
    members: int
    killed: int
    session_ms: int
    beat_seconds: float
    rebalance_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds until all members held their share, and until the survivors held what the killed ones had."""

    joined: float
    reassigned: float


def join_and_lose(kind: type[Member], setting: Setting) -> Times:
    """All members join at once; when all have settled, some are gone without a word."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_join_and_lose(kind, setting))


async def _join_and_lose(kind: type[Member], setting: Setting) -> Times:
    crowd = Crowd(setting.partitions)
    members = [kind(number, setting, crowd) for number in range(setting.members)]
    crowd.living = set(members)
    await asyncio.gather(*(member.connect() for member in members))
    try:
        started = time.perf_counter()
        for member in members:
            member.start()
        await crowd.settle(members)
        joined = time.perf_counter() - started
        # A round of heartbeats finds the group at rest.
        await asyncio.sleep(2 * setting.beat_seconds)
        reassigned = await _lose(members[: setting.killed], members[setting.killed :], crowd)
    finally:
        await asyncio.gather(*(member.end() for member in members), return_exceptions=True)
    return Times(joined, reassigned)


async def _lose(victims: list[Member], survivors: list[Member], crowd: Crowd) -> float:
    """Cut the victims off as kill -9 does, each just after a heartbeat: its session has all its time before it."""
    await asyncio.gather(*(victim.last_beat() for victim in victims))
    killed = time.perf_counter()
    for victim in victims:
        victim.kill()
    crowd.lose(victims)
    await crowd.settle(survivors)
    return time.perf_counter() - killed


class Crowd:
    """Who holds what. It has settled when everybody holds something, and together everything once."""

    def __init__(self, partitions: int) -> None:
        self.living: set[Member] = set()
        self._partitions = partitions
        self._held: dict[Member, list[int]] = {}
        self._settled = asyncio.Event()

    def hold(self, member: Member, partitions: list[int]) -> None:
        """A member has this now instead of what it had."""
        if member in self.living:
            self._held[member] = partitions
            self._judge()

    def lose(self, members: list[Member]) -> None:
        """These hold nothing and are not expected to."""
        for member in members:
            self.living.discard(member)
            self._held.pop(member, None)
        self._judge()

    async def settle(self, members: list[Member]) -> None:
        """Wait until it has settled. A member that fails fails this too."""
        waiting = asyncio.ensure_future(self._settled.wait())
        tasks = [member.task for member in members if member.task]
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            for task in tasks:
                if task.done():
                    task.result()

    def _judge(self) -> None:
        held = [partition for partitions in self._held.values() for partition in partitions]
        whole = len(held) == self._partitions == len(set(held))
        if whole and all(self._held.get(member) for member in self.living):
            self._settled.set()
        else:
            self._settled.clear()


class Member(ABC):
    """One member: a connection and the task that speaks on it."""

    def __init__(self, number: int, setting: Setting, crowd: Crowd) -> None:
        self.task: asyncio.Task[None] | None = None
        self._phase = setting.beat_seconds * number / setting.members
        self._setting = setting
        self._crowd = crowd

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._setting.host, self._setting.port)
        link = self._writer.get_extra_info("socket")
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self._live())

    async def last_beat(self) -> None:
        """Say nothing any more after one last heartbeat."""
        await self._silence()
        await self._ask(self._heartbeat())

    def kill(self) -> None:
        """Hang up."""
        self._writer.transport.abort()

    async def end(self) -> None:
        await self._silence()
        self.kill()

    @abstractmethod
    async def _live(self) -> None: ...

    @abstractmethod
    def _heartbeat(self) -> bytes: ...

    async def _silence(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])

    async def _until_next_beat(self) -> None:
        """Members beat one after another, evenly spread over the interval: no luck decides who hears first."""
        interval = self._setting.beat_seconds
        wait = (self._phase - time.perf_counter()) % interval
        await asyncio.sleep(wait or interval)

    async def _ask(self, frame: bytes) -> bytes:
        self._writer.write(frame)
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return await self._reader.readexactly(size)


class ClassicMember(Member):
    """JoinGroup, SyncGroup, Heartbeat. The leader deals partitions out in turn."""

    _id = ""
    _generation = -1

    async def _live(self) -> None:
        while True:
            joined = await self._join()
            error, partitions = wire.synced(await self._ask(self._sync(joined)))
            if error == REBALANCE_IN_PROGRESS:
                continue
            _check(error)
            self._crowd.hold(self, partitions)
            while not error:
                await self._until_next_beat()
                error = wire.beaten(await self._ask(self._heartbeat()))
            _check(error, REBALANCE_IN_PROGRESS)
            self._crowd.hold(self, [])

    async def _join(self) -> wire.Joined:
        at = self._setting
        while True:
            request = wire.join_group(at.group, self._id, at.topic, at.session_ms, at.rebalance_ms)
            joined = wire.joined(await self._ask(request))
            self._id, self._generation = joined.member_id, joined.generation
            if not joined.error:
                return joined
            _check(joined.error, MEMBER_ID_REQUIRED)

    def _sync(self, joined: wire.Joined) -> bytes:
        at, shares = self._setting, {}
        if joined.leader == self._id:
            count = len(joined.members)
            shares = {
                member: list(range(place, at.partitions, count))
                for place, member in enumerate(joined.members)
            }
        return wire.sync_group(at.group, self._generation, self._id, at.topic, shares)

    def _heartbeat(self) -> bytes:
        return wire.heartbeat(self._setting.group, self._generation, self._id)


class ConsumerMember(Member):
    """ConsumerGroupHeartbeat: the broker assigns, the member confirms."""

    _epoch = 0

    async def _live(self) -> None:
        at = self._setting
        self._id = str(uuid.uuid4())
        topic_id = b""
        beat = await self._beat(wire.join_consumer_group(at.group, self._id, at.topic, at.rebalance_ms))
        while True:
            if beat.partitions is None:
                await self._until_next_beat()
                beat = await self._beat(self._heartbeat())
            else:
                topic_id = beat.topic_id or topic_id
                self._crowd.hold(self, beat.partitions)
                owned = (topic_id, beat.partitions)
                beat = await self._beat(wire.consumer_heartbeat(at.group, self._id, self._epoch, owned))

    async def _beat(self, frame: bytes) -> wire.Beat:
        beat = wire.consumer_beat(await self._ask(frame))
        _check(beat.error)
        self._epoch = beat.epoch
        return beat

    def _heartbeat(self) -> bytes:
        return wire.consumer_heartbeat(self._setting.group, self._id, self._epoch)


def _check(error: int, expected: int = 0) -> None:
    if error and error != expected:
        raise WireError(f"the broker answered error code {error}")
