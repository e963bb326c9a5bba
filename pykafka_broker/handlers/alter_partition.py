"""AlterPartition 0-3: a leader tells the controller which replicas are in sync. Topics go by name below version 2 and
by id from it on; from version 3 the leader says under which registration it saw each replica."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykafka_broker.cluster.controller import events
from pykafka_broker.cluster.controller.isr import IsrWish
from pykafka_broker.handlers.controller_access import controller
from pykafka_broker.handlers.services import error_code
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.alter_partition import (
    AlterPartitionData,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    AlterPartitionTopicResult,
)

if TYPE_CHECKING:
    from uuid import UUID

    from pykafka_broker.cluster.view import PartitionInfo
    from pykafka_broker.handlers.services import Call, Services

_IDS_SINCE: Final = 2
_EPOCHS_SINCE: Final = 3
_RECOVERING: Final = 1


async def handle(services: Services, call: Call, request: AlterPartitionRequest) -> AlterPartitionResponse:
    by_id = call.version >= _IDS_SINCE
    wishes: dict[tuple[str | UUID, int], IsrWish] = {
        (topic.topic_id if by_id else topic.topic_name, asked.partition_index): _wish(asked, call.version)
        for topic in request.topics
        for asked in topic.partitions
    }
    event = events.AlterPartition(request.broker_id, request.broker_epoch, call.version, wishes)
    try:
        outcome = await controller(services).submit(event)
    except KafkaError as error:
        return AlterPartitionResponse(error_code=error_code(error))
    response = AlterPartitionResponse()
    for topic in request.topics:
        key = topic.topic_id if by_id else topic.topic_name
        response.topics.append(
            AlterPartitionTopicResult(
                topic_name=topic.topic_name,
                topic_id=topic.topic_id,
                partitions=[
                    _result(asked.partition_index, outcome[key, asked.partition_index])
                    for asked in topic.partitions
                ],
            )
        )
    return response


def _wish(asked: AlterPartitionData, version: int) -> IsrWish:
    if version >= _EPOCHS_SINCE:
        isr = tuple(member.broker_id for member in asked.new_isr_with_epochs)
        epochs = tuple(member.broker_epoch for member in asked.new_isr_with_epochs)
    else:
        isr, epochs = tuple(asked.new_isr), ()
    recovering = asked.leader_recovery_state == _RECOVERING
    return IsrWish(asked.leader_epoch, asked.partition_epoch, isr, epochs, recovering)


def _result(index: int, outcome: PartitionInfo | KafkaError) -> AlterPartitionResult:
    if isinstance(outcome, KafkaError):
        return AlterPartitionResult(partition_index=index, error_code=outcome.code)
    return AlterPartitionResult(
        partition_index=index,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=list(outcome.isr),
        leader_recovery_state=_RECOVERING if outcome.recovering else 0,
        partition_epoch=outcome.partition_epoch,
    )
