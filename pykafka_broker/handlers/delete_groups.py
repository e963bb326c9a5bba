"""DeleteGroups 0-3: groups without members, and all they have committed. Each group is answered for itself."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from pykafka_broker.handlers.services import Call, Services, error_code
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


async def handle(services: Services, call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    results: list[DeletableGroupResult] = []
    for group_id in dict.fromkeys(request.groups_names):
        results += await _delete(services, call, group_id)
    return DeleteGroupsResponse(results=results)


async def _delete(services: Services, call: Call, group_id: str) -> Iterable[DeletableGroupResult]:
    alone = DeleteGroupsRequest(groups_names=[group_id])
    try:
        response = services.groups.handle(group_id, alone, call.version, call.client_id, call.client.host)
        if inspect.isawaitable(response):
            response = await response
    except KafkaError as error:
        return [DeletableGroupResult(group_id=group_id, error_code=error_code(error))]
    results: list[DeletableGroupResult] = response.results
    return results
