"""What coordinators see of the rest of the broker: a partition to live in, and the topics there are.

The group coordinator is where the leaders of the offsets topic are; `GroupPlacement` keeps it so.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pykafka_broker.cluster.topics import NewTopic
from pykafka_broker.coordinator.group_coordinator import OFFSETS_TOPIC
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.records.batch import iter_headers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from uuid import UUID

    from pykafka_broker.cluster.current_view import CurrentView
    from pykafka_broker.cluster.view import ClusterView
    from pykafka_broker.config import BrokerConfig
    from pykafka_broker.coordinator.group_coordinator import GroupCoordinator
    from pykafka_broker.protocol.types import Buffer
    from pykafka_broker.replication.partition import Partition
    from pykafka_broker.replication.partitions import Partitions


def offsets_topic(config: BrokerConfig, *, alone: bool) -> NewTopic:
    """The topic of groups and offsets as Kafka makes it. A broker without others keeps the one replica it can."""
    return NewTopic(
        OFFSETS_TOPIC,
        config.offsets_topic_num_partitions,
        1 if alone else config.offsets_topic_replication_factor,
        config=offsets_topic_config(config),
    )


def offsets_topic_config(config: BrokerConfig) -> dict[str, str | None]:
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.offsets_topic_segment_bytes),
    }


class GroupPlacement:
    """Leads and resigns the shards of the group coordinator as partitions of the offsets topic come and go."""

    def __init__(self, groups: GroupCoordinator, partitions: Partitions, load_buffer_bytes: int) -> None:
        self._groups = groups
        self._partitions = partitions
        self._load_buffer_bytes = load_buffer_bytes
        self._led: dict[int, Partition] = {}

    def follow(self, old: ClusterView, new: ClusterView) -> None:
        """To be called after the partitions have followed the same change."""
        self.follow_leaders(new)
        gone = [
            name
            for name, topic in old.topics.items()
            if (successor := new.topics.get(name)) is None or successor.topic_id != topic.topic_id
        ]
        self._groups.topics_changed(gone)

    def follow_leaders(self, view: ClusterView) -> None:
        """To be called after partitions changed their roles."""
        topic = view.topics.get(OFFSETS_TOPIC)
        leaders = {}
        for index in range(len(topic.partitions) if topic is not None else 0):
            try:
                leaders[index] = self._partitions.leader(OFFSETS_TOPIC, index)
            except KafkaError:
                continue
        for index, partition in tuple(self._led.items()):
            if leaders.get(index) is not partition:
                del self._led[index]
                self._groups.resign(index)
        for index, partition in leaders.items():
            if index not in self._led:
                self._led[index] = partition
                self._groups.lead(index, CoordinatorLog(partition, self._load_buffer_bytes))


class CoordinatorLog:
    """A partition of an internal topic, as its coordinator uses it."""

    def __init__(self, partition: Partition, load_buffer_bytes: int) -> None:
        self._partition = partition
        self._load_buffer_bytes = load_buffer_bytes

    @property
    def commits_at_once(self) -> bool:
        return self._partition.is_leader and not self._partition.is_replicated

    def append(self, batch: bytearray) -> int:
        return self._partition.append(batch, from_client=False).last_offset + 1

    def when_committed(self, offset: int, call: Callable[[], None]) -> None:
        self._partition.when_committed(offset, call)

    async def committed(self) -> AsyncIterator[Buffer]:
        """Read in a thread, handed over on the loop: loading one partition holds up nobody else.

        All there is, for a leader's log holds everything that was ever committed, though it may not know it yet."""
        partition = self._partition
        offset = partition.log.log_start_offset
        upto = partition.log.log_end_offset
        while offset < upto:
            found = partition.log.read(offset, self._load_buffer_bytes, upto, at_least_one=True)
            data = await asyncio.to_thread(found.read)
            ends = [header.next_offset for _, header in iter_headers(data)]
            if not ends:
                return
            offset = ends[-1]
            yield data


class LiveTopics:
    """The topics of the newest view."""

    def __init__(self, metadata: CurrentView) -> None:
        self._metadata = metadata

    def partition_count(self, name: str) -> int | None:
        topic = self._metadata.view.topics.get(name)
        return None if topic is None else len(topic.partitions)

    def topic_id(self, name: str) -> UUID | None:
        topic = self._metadata.view.topics.get(name)
        return None if topic is None else topic.topic_id

    def name(self, topic_id: UUID) -> str | None:
        topic = self._metadata.view.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def names(self) -> Iterable[str]:
        return self._metadata.view.topics

    def racks(self, name: str) -> list[frozenset[str]] | None:
        view = self._metadata.view
        topic = view.topics.get(name)
        if topic is None:
            return None
        rack_of = {broker.id: broker.rack for broker in view.brokers.values() if broker.rack is not None}
        return [
            frozenset(rack_of[replica] for replica in partition.replicas if replica in rack_of)
            for partition in topic.partitions
        ]
