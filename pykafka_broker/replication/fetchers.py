"""Everybody this broker follows: one Fetcher for each leader that leads any of its replicas."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pykafka_broker.replication.follower import Fetcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.clock import Clock
    from pykafka_broker.replication.follower_ports import Channel, FollowerSettings
    from pykafka_broker.replication.follower_session import PartitionKey
    from pykafka_broker.replication.partition import Partition


class Fetchers:
    """Owner of the fetchers and of their channels. `connect` makes a way to a broker by its id.

    A partition is followed by one fetcher at most: following another leader ends following the one before."""

    def __init__(self, connect: Callable[[int], Channel], settings: FollowerSettings, clock: Clock) -> None:
        self._connect = connect
        self._settings = settings
        self._clock = clock
        self._fetchers: dict[int, Fetcher] = {}
        self._channels: dict[int, Channel] = {}
        self._followed: dict[PartitionKey, tuple[Partition, int]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many leaders are followed."""
        return len(self._fetchers)

    def fetcher(self, leader_id: int) -> Fetcher | None:
        return self._fetchers.get(leader_id)

    def follows(self, partition: Partition) -> bool:
        return (partition.topic_id, partition.index) in self._followed

    def follow(self, partition: Partition) -> None:
        """From its leader, under its epoch, as the partition now knows them."""
        assert partition.leader_id is not None
        key = (partition.topic_id, partition.index)
        known = self._followed.get(key)
        if known is not None and known[1] != partition.leader_id:
            self.unfollow(partition)
        self._followed[key] = (partition, partition.leader_id)
        fetcher = self._fetchers.get(partition.leader_id)
        if fetcher is None:
            fetcher = self._start(partition.leader_id)
        fetcher.add(partition)

    def unfollow(self, partition: Partition) -> None:
        """It is led here now, or rests, or goes. Nothing is appended to it by a fetcher once this returns."""
        key = (partition.topic_id, partition.index)
        known = self._followed.pop(key, None)
        if known is not None:
            fetcher = self._fetchers.get(known[1])
            if fetcher is not None:
                fetcher.remove(key)

    def reconnect(self, leader_id: int) -> None:
        """The leader is to be found elsewhere now."""
        if leader_id in self._fetchers:
            self._end(leader_id)
            for partition, leader in tuple(self._followed.values()):
                if leader == leader_id:
                    self.follow(partition)

    def end_idle(self) -> None:
        """Lets go of leaders that lead nothing of ours any more; to be called after a round of changes."""
        for leader_id, fetcher in tuple(self._fetchers.items()):
            if not len(fetcher):
                self._end(leader_id)

    async def close(self) -> None:
        self._followed.clear()
        for leader_id in tuple(self._fetchers):
            self._end(leader_id)
        await asyncio.gather(*self._ending)

    def _start(self, leader_id: int) -> Fetcher:
        channel = self._channels[leader_id] = self._connect(leader_id)
        fetcher = self._fetchers[leader_id] = Fetcher(leader_id, channel, self._settings, self._clock)
        fetcher.start()
        return fetcher

    def _end(self, leader_id: int) -> None:
        fetcher, channel = self._fetchers.pop(leader_id), self._channels.pop(leader_id)
        fetcher.stop()
        channel.close()
        ending = asyncio.get_running_loop().create_task(fetcher.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
