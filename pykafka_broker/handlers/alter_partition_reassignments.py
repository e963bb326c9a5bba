"""AlterPartitionReassignments 0-1: where the replicas of partitions shall be; None gives up a move that is under way.
From version 1 a client may ask that no partition gets more or fewer replicas than it has (KIP-860)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.cluster.controller import events
from pykafka_broker.handlers.controller_access import by_topic, judge
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Call, Services
    from pykafka_broker.protocol.errors import KafkaError


async def handle(
    services: Services, call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    wishes = {
        (topic.name, asked.partition_index): asked.replicas
        for topic in request.topics
        for asked in topic.partitions
    }
    may_resize = request.allow_replication_factor_change
    event = events.AlterReassignments(wishes, keep_size=not may_resize)
    outcome = await judge(services).submit(event)
    response = AlterPartitionReassignmentsResponse(error_message=None)
    if request.topics:  # else Kafka's answer, too, says nothing but the default
        response.allow_replication_factor_change = may_resize
    for name, partitions in by_topic(outcome, [topic.name for topic in request.topics]).items():
        results = [_result(index, error) for index, error in partitions.items()]
        response.responses.append(ReassignableTopicResponse(name=name, partitions=results))
    return response


def _result(index: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(partition_index=index, error_message=None)
    return ReassignablePartitionResponse(
        partition_index=index, error_code=error.code, error_message=error.text
    )
