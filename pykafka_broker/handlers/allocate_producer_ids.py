"""AllocateProducerIds 0: the controller claims a block of producer ids for the broker that asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.handlers.controller_access import controller
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Call, Services


async def handle(
    services: Services, call: Call, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    office = controller(services)
    if not office.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    asking = office.state.view.brokers.get(request.broker_id)
    if asking is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if asking.epoch != request.broker_epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    block = await services.producer_ids.claim_block(request.broker_id)
    return AllocateProducerIdsResponse(
        producer_id_start=block.first, producer_id_len=block.last - block.first + 1
    )
