"""All groups that this broker coordinates: a group belongs to one partition of the offsets topic, by its name."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pykafka_broker.coordinator.runtime import ShardRuntime
from pykafka_broker.coordinator.shard import GroupShard
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Iterator

    from pykafka_broker.clock import Clock
    from pykafka_broker.coordinator.settings import GroupSettings
    from pykafka_broker.coordinator.topics import Topics
    from pykafka_broker.coordinator.writing import ShardLog

OFFSETS_TOPIC = "__consumer_offsets"
_INT_MIN = -(2**31)


# A group is named in every one of its requests.
@lru_cache(maxsize=8192)
def partition_for(key: str, partitions: int) -> int:
    """Where Kafka puts a key: by the hash Java gives the string."""
    code = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    signed = code - 2**32 if code >= 2**31 else code
    return 0 if signed == _INT_MIN else abs(signed) % partitions


class GroupCoordinator:
    """Owner of the shards this broker leads; its owner is the broker."""

    def __init__(self, settings: GroupSettings, topics: Topics, clock: Clock) -> None:
        self._settings = settings
        self._topics = topics
        self._clock = clock
        self._turn = Turn()
        self._shards: dict[int, ShardRuntime] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def lead(self, partition: int, log: ShardLog) -> None:
        """This broker leads the partition now: load it and answer for its groups."""
        shard = GroupShard(self._settings, self._topics)
        self._shards[partition] = ShardRuntime(
            shard, log, self._clock, self._turn, self._settings.offsets_commit_timeout_ms
        )

    def resign(self, partition: int) -> None:
        """This broker does not lead the partition any more."""
        ending = self._shards.pop(partition).stop()
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        for partition in tuple(self._shards):
            self.resign(partition)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def runtime(self, group_id: str) -> ShardRuntime:
        """The runtime of the shard that holds the group. NOT_COORDINATOR if another broker has it, or none."""
        count = self._topics.partition_count(OFFSETS_TOPIC)
        if count is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        runtime = self._shards.get(partition_for(group_id, count))
        if runtime is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return runtime

    def handle(
        self, group_id: str, request: object, version: int, client_id: str | None, host: str
    ) -> Any | Coroutine[Any, Any, Any]:
        """The response of the group's shard, `Soon`, or a coroutine that ends in it."""
        return self.runtime(group_id).handle(
            request, version, client_id or "", f"/{host}"
        )  # as Java prints it

    def settling(self, group_id: str) -> Coroutine[Any, Any, None] | None:
        """Ends when what `shard` says of the group's offsets is committed; None if it is."""
        return self.runtime(group_id).settling()

    def shard(self, group_id: str) -> GroupShard:
        """The shard that holds the group, for questions."""
        return self.runtime(group_id).shard

    def topics_changed(self, deleted: Iterable[str]) -> None:
        """Topics came, went or grew: offsets of those that went go too."""
        for runtime in self._shards.values():
            runtime.topics_changed(deleted)

    def shards(self) -> Iterator[GroupShard]:
        """Every shard that knows its state. COORDINATOR_LOAD_IN_PROGRESS if one does not yet."""
        for runtime in self._shards.values():
            yield runtime.shard
