"""StopReplica 3-4: the controller says which replicas rest, and which are to be deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Call, Services


async def handle(services: Services, call: Call, request: StopReplicaRequest) -> StopReplicaResponse:
    answers = await services.in_cluster.roles.stop(request)
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(topic_name=topic, partition_index=index, error_code=code)
            for (topic, index), code in answers.items()
        ]
    )
