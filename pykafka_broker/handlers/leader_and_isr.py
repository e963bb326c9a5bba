"""LeaderAndIsr 5-7: the controller says which partitions this broker leads and which it follows."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pykafka_broker.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)

if TYPE_CHECKING:
    from uuid import UUID

    from pykafka_broker.handlers.services import Call, Services


async def handle(services: Services, call: Call, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    topics: dict[UUID, list[LeaderAndIsrPartitionError]] = defaultdict(list)
    for (topic_id, index), code in (await services.in_cluster.roles.take(request)).items():
        topics[topic_id].append(LeaderAndIsrPartitionError(partition_index=index, error_code=code))
    return LeaderAndIsrResponse(
        topics=[LeaderAndIsrTopicError(topic_id=i, partition_errors=found) for i, found in topics.items()]
    )
