"""ListGroups 0-5: every group this broker coordinates, by state and type if asked so. While a part of them is still
being loaded the answer is COORDINATOR_LOAD_IN_PROGRESS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Call, Services


def handle(services: Services, call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    return ListGroupsResponse(
        groups=[
            group
            for shard in services.groups.shards()
            for group in shard.list(request.states_filter, request.types_filter)
        ]
    )
