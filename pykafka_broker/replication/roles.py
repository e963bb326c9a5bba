"""Carries out what the controller says about this broker's replicas: LeaderAndIsr and StopReplica."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeAlias

from pykafka_broker.cluster.view import TopicInfo
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.replica_state import Leadership

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from uuid import UUID

    from pykafka_broker.protocol.messages.leader_and_isr import (
        LeaderAndIsrPartitionState,
        LeaderAndIsrRequest,
    )
    from pykafka_broker.protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest
    from pykafka_broker.replication.fetchers import Fetchers
    from pykafka_broker.replication.partition import Partition
    from pykafka_broker.replication.partitions import Partitions

log = logging.getLogger(__name__)

_NO_ID: Final = 0
_NO_EPOCH: Final = -1
_DURING_DELETE: Final = -2
TopicPartition: TypeAlias = tuple[str, int]
Told: TypeAlias = "tuple[str, UUID, LeaderAndIsrPartitionState]"


class Roles:
    """Owner of nothing but the order of things: one request of the controller at a time.

    `heed` refuses controllers of old, `configs_of` gives the overrides of topics, `changed` is called when replicas
    have new roles."""

    def __init__(
        self,
        broker_id: int,
        partitions: Partitions,
        fetchers: Fetchers,
        heed: Callable[[int, int], None],
        configs_of: Callable[[Sequence[str]], Awaitable[Sequence[Mapping[str, str]]]],
        changed: Callable[[], None],
    ) -> None:
        self._broker_id = broker_id
        self._partitions = partitions
        self._fetchers = fetchers
        self._heed = heed
        self._configs_of = configs_of
        self._changed = changed
        self._changing = asyncio.Lock()

    # LeaderAndIsr

    async def take(self, request: LeaderAndIsrRequest) -> dict[tuple[UUID, int], ErrorCode]:
        """What became of each partition, by topic id. KafkaError if the request is out of date as a whole."""
        async with self._changing:
            self._heed(request.controller_epoch, request.broker_epoch)
            told: list[Told] = [
                (topic.topic_name, topic.topic_id, state)
                for topic in request.topic_states
                for state in topic.partition_states
            ]
            await self._make_replicas(told)
            answers = {
                (topic_id, state.partition_index): self._take(name, topic_id, state)
                for name, topic_id, state in told
            }
            self._fetchers.end_idle()
            self._changed()
            log.info("took roles in %d partitions", len(answers))
            return answers

    async def _make_replicas(self, told: Iterable[Told]) -> None:
        missing = [
            (name, topic_id, state.partition_index)
            for name, topic_id, state in told
            if self._broker_id in state.replicas
            and self._partitions.hosted(name, state.partition_index) is None
        ]
        names = sorted({name for name, _, _ in missing})
        configs = dict(zip(names, await self._configs_of(names), strict=True))
        await self._partitions.create(
            (TopicInfo(name, topic_id, (), configs[name]), index) for name, topic_id, index in missing
        )

    def _take(self, name: str, topic_id: UUID, state: LeaderAndIsrPartitionState) -> ErrorCode:
        if self._broker_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = self._partitions.hosted(name, state.partition_index)
        if partition is None or partition.log.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if topic_id.int != _NO_ID and partition.topic_id != topic_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if state.leader_epoch < partition.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if state.leader == self._broker_id:
            self._lead(partition, state)
        else:
            self._follow(partition, state)
        return ErrorCode.NONE

    def _lead(self, partition: Partition, state: LeaderAndIsrPartitionState) -> None:
        self._fetchers.unfollow(partition)
        new = partition.become_leader(
            Leadership(
                state.leader_epoch,
                state.partition_epoch,
                tuple(state.replicas),
                tuple(state.isr),
                state.controller_epoch,
                tuple(state.adding_replicas),
                tuple(state.removing_replicas),
            )
        )
        if new:
            log.debug("leads %s-%d in epoch %d", partition.topic, partition.index, state.leader_epoch)

    def _follow(self, partition: Partition, state: LeaderAndIsrPartitionState) -> None:
        new = partition.become_follower(state.leader, state.leader_epoch, state.partition_epoch)
        if partition.leader_id != state.leader or (self._fetchers.follows(partition) and not new):
            return
        self._fetchers.unfollow(partition)
        if state.leader >= 0:
            self._fetchers.follow(partition)
            log.debug("%s-%d follows broker %d", partition.topic, partition.index, state.leader)

    # StopReplica

    async def stop(self, request: StopReplicaRequest) -> dict[TopicPartition, ErrorCode]:
        """What became of each partition. KafkaError if the request is out of date as a whole."""
        async with self._changing:
            self._heed(request.controller_epoch, request.broker_epoch)
            answers = {
                (topic.topic_name, state.partition_index): self._stop(topic.topic_name, state)
                for topic in request.topic_states
                for state in topic.partition_states
            }
            await self._partitions.remove(
                (topic.topic_name, state.partition_index)
                for topic in request.topic_states
                for state in topic.partition_states
                if state.delete_partition
                and answers[topic.topic_name, state.partition_index] is ErrorCode.NONE
            )
            self._fetchers.end_idle()
            self._changed()
            return answers

    def _stop(self, name: str, state: StopReplicaPartitionState) -> ErrorCode:
        partition = self._partitions.hosted(name, state.partition_index)
        if partition is None:
            return ErrorCode.NONE
        if (
            state.leader_epoch not in (_NO_EPOCH, _DURING_DELETE)
            and state.leader_epoch < partition.leader_epoch
        ):
            return ErrorCode.FENCED_LEADER_EPOCH
        self._fetchers.unfollow(partition)
        partition.rest()
        return ErrorCode.NONE
