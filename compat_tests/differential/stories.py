"""Stories: a seeded sequence of requests on topics and groups of its own, in one of several moods."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from compat_tests.differential.batches import Batches
from compat_tests.differential.crews import crews
from compat_tests.differential.fields import Maker
from compat_tests.differential.sides import Step
from pykafka_broker.protocol.api import APIS, ApiKey
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

K = ApiKey
MOODS: dict[str, tuple[ApiKey, ...]] = {
    "topics": (K.CREATE_TOPICS, K.CREATE_TOPICS, K.DELETE_TOPICS, K.CREATE_PARTITIONS, K.METADATA, K.METADATA,
               K.DESCRIBE_TOPIC_PARTITIONS, K.LIST_OFFSETS, K.DESCRIBE_CLUSTER),
    "data": (K.PRODUCE, K.PRODUCE, K.PRODUCE, K.FETCH, K.FETCH, K.FETCH, K.LIST_OFFSETS, K.LIST_OFFSETS,
             K.DELETE_RECORDS, K.OFFSET_FOR_LEADER_EPOCH, K.INIT_PRODUCER_ID),
    "classic groups": (K.JOIN_GROUP, K.JOIN_GROUP, K.SYNC_GROUP, K.SYNC_GROUP, K.HEARTBEAT, K.LEAVE_GROUP,
                       K.DESCRIBE_GROUPS, K.LIST_GROUPS, K.OFFSET_COMMIT, K.OFFSET_FETCH, K.DELETE_GROUPS,
                       K.OFFSET_DELETE, K.FIND_COORDINATOR),
    "consumer groups": (K.CONSUMER_GROUP_HEARTBEAT, K.CONSUMER_GROUP_HEARTBEAT, K.CONSUMER_GROUP_HEARTBEAT,
                        K.CONSUMER_GROUP_HEARTBEAT, K.CONSUMER_GROUP_DESCRIBE, K.DESCRIBE_GROUPS, K.LIST_GROUPS,
                        K.OFFSET_COMMIT, K.OFFSET_FETCH, K.OFFSET_DELETE, K.DELETE_GROUPS),
    "offsets": (K.OFFSET_COMMIT, K.OFFSET_COMMIT, K.OFFSET_FETCH, K.OFFSET_FETCH, K.OFFSET_DELETE, K.DELETE_GROUPS,
                K.LIST_GROUPS, K.DESCRIBE_GROUPS),
    "configs": (K.DESCRIBE_CONFIGS, K.INCREMENTAL_ALTER_CONFIGS, K.ALTER_CONFIGS, K.CREATE_TOPICS, K.PRODUCE),
    "anything": tuple(APIS),
}  # fmt: skip
BROKEN_VERSIONS = 0.01
LENGTH = 60
TOUR_EVERY = 10


def opening(prefix: str, offered: Mapping[ApiKey, tuple[int, int]], now: int) -> Iterator[Step]:
    """Every story has two topics, and a few records in one."""
    topics = [
        CreatableTopic(name=f"{prefix}t{n}", num_partitions=size, replication_factor=1)
        for n, size in enumerate((1, 3))
    ]
    yield Step(
        K.CREATE_TOPICS, offered[K.CREATE_TOPICS][1], CreateTopicsRequest(topics=topics, timeout_ms=30_000)
    )
    asked = [MetadataRequestTopic(name=topic.name) for topic in topics]
    yield Step(
        K.METADATA, offered[K.METADATA][1], MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    )
    batch = Batches((b"a", b"b"), 0, -1, -1, -1, now, None, 1)
    data = [PartitionProduceData(index=0, records=batch)]  # type: ignore[arg-type]
    yield Step(
        K.PRODUCE,
        min(9, offered[K.PRODUCE][1]),
        ProduceRequest(
            acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=f"{prefix}t0", partition_data=data)]
        ),
    )


def _in_a_mood(random: Random, offered: Mapping[ApiKey, tuple[int, int]]) -> Iterator[tuple[ApiKey, int]]:
    mood = random.choice([key for key in MOODS if any(api in offered for api in MOODS[key])])
    keys = [key for key in MOODS[mood] if key in offered]
    for _ in range(LENGTH):
        key = random.choice(keys)
        yield key, random.randint(*offered[key])


def _tour(
    random: Random, offered: Mapping[ApiKey, tuple[int, int]], alone: Collection[tuple[ApiKey, int]]
) -> Iterator[tuple[ApiKey, int]]:
    """Once through every version of every API, so that none is left out; what has no witness comes first."""
    places = [
        (key, version) for key, (oldest, newest) in offered.items() for version in range(oldest, newest + 1)
    ]
    random.shuffle(places)
    places.sort(key=lambda place: place not in alone)
    yield from places


def story(
    seed: int,
    prefix: str,
    offered: Mapping[ApiKey, tuple[int, int]],
    alone: Collection[tuple[ApiKey, int]],
    known: Callable[[str], int],
    now: int,
) -> Iterator[Step]:
    """The steps of one story; each may name what was handed out in answers to those before it."""
    random = Random(seed)
    maker = Maker(random, prefix, known, now)
    yield from opening(prefix, offered, now)
    is_tour = seed % TOUR_EVERY == 0
    asked = _tour(random, offered, alone) if is_tour else _in_a_mood(random, offered)
    if is_tour:
        yield from crews(random, prefix, offered, known)
    for key, version in asked:
        oldest, newest = offered[key]
        if key is K.JOIN_GROUP and version == 0 and not is_tour:
            version = newest  # it knows no timeout but that of the session, and would wait for so long
        if random.random() < BROKEN_VERSIONS:
            version = random.choice([newest + 1, oldest - 1])
        if version in APIS[key].versions:
            yield Step(key, version, maker.message(APIS[key].request, version))
