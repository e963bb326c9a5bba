"""Takes the ISRs that leaders propose to the controller, many in a request, one request at a time (AlterPartition).

A proposal is asked for until the controller has an answer to it, or until it is out of date because the controller
has spoken to the leader by itself. Whoever is the controller then is asked."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.alter_partition import (
    AlterPartitionData,
    AlterPartitionRequest,
    AlterPartitionTopic,
    IsrMember,
)
from pykafka_broker.replication.replica_state import Accepted

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from pykafka_broker.cluster.controller.channels import Channel
    from pykafka_broker.protocol.messages.alter_partition import AlterPartitionResponse, AlterPartitionResult
    from pykafka_broker.replication.partition import Partition
    from pykafka_broker.replication.replica_state import Proposal

log = logging.getLogger(__name__)

_RETRY_S: Final = 0.05
_NEWEST: Final = 3  # as Kafka 3.9 speaks between brokers

PartitionKey = tuple["UUID", int]
Open = dict[PartitionKey, tuple["Partition", "Proposal"]]


class IsrProposals:
    """Owner of what is on its way to the controller. `controller` gives the way to it, None while nobody knows it."""

    def __init__(
        self, broker_id: int, broker_epoch: Callable[[], int], controller: Callable[[], Channel | None]
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._unsent: Open = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        """A newer proposal of a partition takes the place of an older one."""
        self._unsent[partition.topic_id, partition.index] = (partition, proposal)
        self._news.set()

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            sent, self._unsent = _still_open(self._unsent), {}
            if not sent:
                continue
            try:
                settled = await self._ask(sent)
            except Exception:
                log.exception("the in-sync replicas of %d partitions cannot be agreed on yet", len(sent))
                settled = False
            if not settled:
                self._unsent = {**_still_open(sent), **self._unsent}
                self._news.set()
                await asyncio.sleep(_RETRY_S)
            elif self._unsent.keys() & sent.keys():
                await asyncio.sleep(_RETRY_S)  # refused for now, and proposed again at once

    async def _ask(self, sent: Open) -> bool:
        """Whether the controller had a word on them."""
        controller = self._controller()
        if controller is None:
            return False
        try:
            response = await controller.call(self._request(sent), newest=_NEWEST)
        except (OSError, KafkaError) as error:
            log.info("the controller cannot be asked about in-sync replicas: %s", error)
            return False
        if response.error_code != ErrorCode.NONE:
            log.info("the controller refuses to talk about in-sync replicas: error %d", response.error_code)
            return False
        answers = _answers(response)
        for key, (partition, proposal) in sent.items():
            partition.isr_answered(proposal, answers.get(key, ErrorCode.UNKNOWN_SERVER_ERROR))
        return True

    def _request(self, sent: Open) -> AlterPartitionRequest:
        topics: dict[UUID, AlterPartitionTopic] = {}
        for (topic_id, index), (partition, proposal) in sent.items():
            topic = topics.setdefault(
                topic_id, AlterPartitionTopic(topic_name=partition.topic, topic_id=topic_id)
            )
            topic.partitions.append(
                AlterPartitionData(
                    partition_index=index,
                    leader_epoch=proposal.leader_epoch,
                    new_isr=list(proposal.isr),
                    new_isr_with_epochs=[IsrMember(broker_id=member) for member in proposal.isr],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )


def _still_open(proposals: Open) -> Open:
    return {
        key: (partition, proposal)
        for key, (partition, proposal) in proposals.items()
        if partition.replica_state is not None and partition.replica_state.pending is proposal
    }


def _answers(response: AlterPartitionResponse) -> dict[PartitionKey, Accepted | ErrorCode]:
    return {
        (topic.topic_id, result.partition_index): _answer(result)
        for topic in response.topics
        for result in topic.partitions
    }


def _answer(result: AlterPartitionResult) -> Accepted | ErrorCode:
    if result.error_code == ErrorCode.NONE:
        return Accepted(tuple(result.isr), result.leader_epoch, result.partition_epoch)
    return next((code for code in ErrorCode if code == result.error_code), ErrorCode.UNKNOWN_SERVER_ERROR)
