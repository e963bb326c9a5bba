"""DescribeGroups 0-6: classic groups, their members and what each was given."""

from __future__ import annotations

from typing import Final

from pykafka_broker.handlers.services import GROUP_OPERATIONS, Call, Services, error_code
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_DEAD: Final = "Dead"


def handle(services: Services, call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    groups = [_describe(services, call, group_id) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)


def _describe(services: Services, call: Call, group_id: str) -> DescribedGroup:
    try:
        return services.groups.shard(group_id).describe([group_id], call.version)[0]
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, group_state=_DEAD, error_code=error_code(error))
