"""ListPartitionReassignments 0: moves under way. Partitions that do not move, or do not exist, are not answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.cluster.controller import events
from pykafka_broker.handlers.controller_access import by_topic, judge
from pykafka_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from pykafka_broker.cluster.view import PartitionInfo
    from pykafka_broker.handlers.services import Call, Services


async def handle(
    services: Services, call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    asked = None
    if request.topics is not None:
        asked = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    found = await judge(services).submit(events.ListReassignments(asked))
    response = ListPartitionReassignmentsResponse(error_message=None)
    for name, partitions in by_topic(found).items():
        moves = [_move(index, partition) for index, partition in partitions.items()]
        response.topics.append(OngoingTopicReassignment(name=name, partitions=moves))
    return response


def _move(index: int, partition: PartitionInfo) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=index,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding),
        removing_replicas=list(partition.removing),
    )
