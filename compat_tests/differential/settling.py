"""Between the requests of a story: until all sides know the same topics, and what a story leaves behind is gone."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from compat_tests.differential.crews import names as crews_of
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat_tests.differential.sides import Side
    from pykafka_broker.protocol.messages.metadata import MetadataResponseTopic

SETTLE_SECONDS = 2
METADATA_WITH_IDS = 12
LIST_OFFSETS_OF_ALL = 9
CREATE_TOPICS_OF_ALL = 4
NAMES = ("t0", "t1", "t2", "t3", "t.4", "t_4", "missing")


async def settle(sides: Sequence[Side], prefix: str) -> None:
    """Wait until all know the same topics and lead all of their partitions; topics then have the same names on all."""
    give_up = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < give_up:
        told = [await _topics(side, prefix) for side in sides]
        if all(each is not None and _sizes(each) == _sizes(told[0] or []) for each in told):
            for side, topics in zip(sides, told, strict=True):
                for topic in topics or ():
                    side.symbols.name("topic", topic.topic_id)
            return
        await asyncio.sleep(0.01)


async def forgotten(sides: Sequence[Side], prefix: str) -> None:
    """Wait until topics that are gone may be made anew: in 3.9 that takes a moment longer."""
    give_up = time.monotonic() + SETTLE_SECONDS
    for side in sides:
        known = {topic.name for topic in await _topics(side, prefix) or ()}
        names = [f"{prefix}{name}" for name in NAMES if f"{prefix}{name}" not in known]
        wanted = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        request = CreateTopicsRequest(topics=wanted, timeout_ms=30_000, validate_only=True)
        while time.monotonic() < give_up:
            answer = await side.exchange(ApiKey.CREATE_TOPICS, CREATE_TOPICS_OF_ALL, request)
            if all(topic.error_code != ErrorCode.TOPIC_ALREADY_EXISTS for topic in answer.topics):
                break
            await asyncio.sleep(0.01)


def _sizes(topics: Sequence[MetadataResponseTopic]) -> list[tuple[str | None, int]]:
    return [(topic.name, len(topic.partitions)) for topic in topics]


async def _topics(side: Side, prefix: str) -> list[MetadataResponseTopic] | None:
    """The story's topics by name; None while one is not led."""
    answer = await side.exchange(ApiKey.METADATA, METADATA_WITH_IDS, MetadataRequest(topics=None))
    mine = sorted((topic for topic in answer.topics if topic.name.startswith(prefix)), key=lambda t: t.name)
    asked = [
        ListOffsetsTopic(
            name=name,
            partitions=[ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(size)],
        )
        for name, size in _sizes(mine)
    ]
    ends = await side.exchange(
        ApiKey.LIST_OFFSETS, LIST_OFFSETS_OF_ALL, ListOffsetsRequest(replica_id=-1, topics=asked)
    )
    return None if any(p.error_code for topic in ends.topics for p in topic.partitions) else mine


async def clean(side: Side, prefix: str) -> None:
    answer = await side.exchange(ApiKey.METADATA, METADATA_WITH_IDS, MetadataRequest(topics=None))
    names = [topic.name for topic in answer.topics if topic.name.startswith(prefix)]
    groups = ["", *(f"{prefix}g{n}" for n in range(3)), *crews_of(prefix)]
    await side.exchange(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=groups))
    await side.exchange(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=names, timeout_ms=30_000))
