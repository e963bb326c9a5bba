"""UpdateMetadata 7-8: the controller says what clients shall hear of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Call, Services


async def handle(services: Services, call: Call, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    await services.in_cluster.member.learn(request)
    return UpdateMetadataResponse()
