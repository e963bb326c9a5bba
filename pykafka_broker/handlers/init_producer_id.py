"""InitProducerId 0-6 for idempotent producers. Transactional ids are refused until there is a coordinator for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Call, Services


_NONE: Final = -1


async def handle(services: Services, call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "transactional ids are not served yet")
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=_NONE)
    # An id that is handed in again by a producer without transactions is simply replaced, as in Kafka.
    return InitProducerIdResponse(producer_id=await services.producer_ids.next(), producer_epoch=0)
