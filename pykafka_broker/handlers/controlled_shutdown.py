"""ControlledShutdown 0-3: a broker wants to stop; the answer is what it still leads; once that is nothing it may go.

A broker below version 2 does not know its epoch and is not asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.cluster.controller import events
from pykafka_broker.handlers.controller_access import controller
from pykafka_broker.handlers.services import error_code
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Call, Services


async def handle(
    services: Services, call: Call, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    event = events.ControlledShutdown(request.broker_id, request.broker_epoch)
    try:
        remaining = await controller(services).submit(event)
    except KafkaError as error:
        code = error_code(error)
        # This one request calls it so, in Kafka, when the controller is elsewhere.
        moved = code is ErrorCode.NOT_CONTROLLER
        return ControlledShutdownResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH if moved else code)
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=topic, partition_index=index) for topic, index in remaining
        ]
    )
