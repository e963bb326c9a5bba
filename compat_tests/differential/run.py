"""Runs stories against both brokers and reports where they differ: `python -m compat_tests.differential`.

A difference counts when the same story shows it three times: what depends on which of two timers fires first does not.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from compat_tests import servers
from compat_tests.differential.expected import Difference, reason
from compat_tests.differential.sides import Side
from compat_tests.differential.stories import story
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

TRIES = 3
SETTLE_SECONDS = 2
WARM_SECONDS = 60
CHANGES_TOPICS = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.METADATA,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_CONFIGS,
}
CHANGES_CONFIGS = {ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS}
APPLIED_SECONDS = 0.05
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "max.incremental.fetch.session.cache.slots": "100000",
}
PROPERTIES_OF_4 = {
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}


class InDisguise(servers.OurBroker):
    """Our broker as the release it is compared with."""

    def __init__(self, directory: Path, properties: Mapping[str, str], release: str) -> None:
        super().__init__(directory, properties)
        self._release = release

    def _command(self) -> list[str]:
        return [*super()._command(), "--as-release", self._release]


@dataclass(slots=True)
class Report:
    """What a run found. Owned by the run that fills it."""

    requests: int = 0
    asked: Counter[tuple[str, int]] = field(default_factory=Counter)
    meant: Counter[str] = field(default_factory=Counter)
    unexplained: list[tuple[int, Difference]] = field(default_factory=list)


class Comparison:
    """Both brokers, started, and what they were asked. Owns the brokers."""

    def __init__(self, directory: Path, release: str, *, explore: bool = False) -> None:
        """`explore`: tell every story once and to its end, echoes of differences included."""
        self._explore = explore
        properties = PROPERTIES | (PROPERTIES_OF_4 if release.startswith("4") else {})
        self._theirs = servers.make(f"kafka-{release}", directory / "theirs", properties)
        self._ours = InDisguise(directory / "ours", properties, release)
        self.report = Report()
        self._started = int(time.time()) * 1000
        self._told = 0
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for server in (self._theirs, self._ours):
            self._resources.callback(server.close)
            await asyncio.to_thread(server.start)
        self._sides = (Side(self._ours.bootstrap), Side(self._theirs.bootstrap))
        for side in self._sides:
            self._resources.push_async_callback(side.close)
            await _warm(side)
        self._offered = await self._both_offer()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._resources.aclose()

    @property
    def offered(self) -> Mapping[int, tuple[int, int]]:
        """Versions of every API that both offer."""
        return self._offered

    async def _both_offer(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(client_software_name="differ", client_software_version="1")
        ours, theirs = [
            {
                ApiKey(api.api_key): (api.min_version, api.max_version)
                for api in (await side.exchange(ApiKey.API_VERSIONS, 3, request)).api_keys
            }
            for side in self._sides
        ]
        shared = {
            key: (max(low, theirs[key][0]), min(high, theirs[key][1]))
            for key, (low, high) in ours.items()
            if key in theirs
        }
        if self._theirs.kraft:  # type: ignore[attr-defined]
            shared[ApiKey.PRODUCE] = (3, shared[ApiKey.PRODUCE][1])  # shown from 0, but not taken
        return {key: span for key, span in shared.items() if span[0] <= span[1]}

    async def tell(self, seed: int) -> list[Difference]:
        """One story; told again if the answers differ. What differed every time is what is returned."""
        found: list[Difference] = []
        for attempt in range(TRIES):
            found = await self._tell_once(seed)
            unexplained = [difference for difference in found if reason(difference) is None]
            if not unexplained or self._explore or attempt == TRIES - 1:
                self.report.unexplained += [(seed, difference) for difference in unexplained]
                self.report.meant.update(why for each in found if (why := reason(each)) is not None)
                return unexplained
        return found

    async def _tell_once(self, seed: int) -> list[Difference]:
        """Up to the first unexplained difference: what follows it would only be its echo."""
        self._told += 1
        prefix = f"story{self._told}-"
        for side in self._sides:
            side.begin(prefix)
        found: list[Difference] = []
        for step in story(seed, prefix, self._offered, self._sides[0].symbols, self._started):
            ours, theirs = await asyncio.gather(*(side.ask(step) for side in self._sides))
            self.report.requests += 1
            self.report.asked[step.key.name, step.version] += 1
            here = [Difference(step, *where) for where in differing(ours, theirs)]
            found += here
            if not self._explore and any(reason(difference) is None for difference in here):
                break
            if step.key in CHANGES_TOPICS:
                await self._settle(prefix)
            if step.key in CHANGES_CONFIGS:
                await asyncio.sleep(APPLIED_SECONDS)
        await self._clean(prefix)
        return found

    async def _settle(self, prefix: str) -> None:
        """Wait until both know the same topics and lead all of their partitions."""
        give_up = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < give_up:
            shapes = [await self._shape(side, prefix) for side in self._sides]
            if shapes[0] is not None and shapes[0] == shapes[1]:
                return
            await asyncio.sleep(0.01)

    async def _shape(self, side: Side, prefix: str) -> dict[str, int] | None:
        """The story's topics and their sizes; None while one is not led."""
        version = self._offered[ApiKey.LIST_OFFSETS][1]
        answer = await side.exchange(ApiKey.METADATA, 9, MetadataRequest(topics=None))
        topics = {t.name: len(t.partitions) for t in answer.topics if t.name.startswith(prefix)}
        asked = [
            ListOffsetsTopic(
                name=name,
                partitions=[ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(size)],
            )
            for name, size in topics.items()
        ]
        ends = await side.exchange(
            ApiKey.LIST_OFFSETS, version, ListOffsetsRequest(replica_id=-1, topics=asked)
        )
        led = all(not p.error_code for topic in ends.topics for p in topic.partitions)
        return topics if led else None

    async def _clean(self, prefix: str) -> None:
        for side in self._sides:
            answer = await side.exchange(ApiKey.METADATA, 9, MetadataRequest(topics=None))
            names = [topic.name for topic in answer.topics if topic.name.startswith(prefix)]
            groups = ["", *(f"{prefix}g{n}" for n in range(3))]
            await side.exchange(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=groups))
            await side.exchange(
                ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=names, timeout_ms=30_000)
            )


async def _warm(side: Side) -> None:
    """Wait until the broker's coordinators have loaded and it hands out producer ids."""
    deadline = time.monotonic() + WARM_SECONDS
    groups = [f"warm{n}" for n in range(20)]
    while time.monotonic() < deadline:
        found = await side.exchange(
            ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=groups)
        )
        probes = [
            (
                await side.exchange(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id=each, member_id="m"))
            ).error_code
            for each in groups
        ]
        producer = await side.exchange(
            ApiKey.INIT_PRODUCER_ID, 2, InitProducerIdRequest(transactional_id=None)
        )
        if (
            not any(each.error_code for each in found.coordinators)
            and set(probes) == {ErrorCode.UNKNOWN_MEMBER_ID}
            and producer.error_code == 0
        ):
            return
        await asyncio.sleep(0.1)
    raise servers.NotServing("the coordinators did not load")


def differing(ours: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two answers differ: path, ours, theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in ours:
            yield from differing(ours[name], theirs[name], f"{path}.{name}" if path else name)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for mine, other in zip(ours, theirs, strict=True):
            named = mine.get("name") if path.endswith("configs") and isinstance(mine, dict) else ""
            yield from differing(mine, other, f"{path}[{named}]")
    elif ours != theirs:
        yield path, ours, theirs
