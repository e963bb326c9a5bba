"""ConsumerGroupDescribe 0-1: groups of the new protocol, with the assignment of each member and where it is heading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.handlers.services import GROUP_OPERATIONS, Call, Services, error_code, error_text
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)

if TYPE_CHECKING:
    from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest


def handle(
    services: Services, call: Call, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    groups = [_describe(services, group_id) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(services: Services, group_id: str) -> DescribedConsumerGroup:
    if not services.config.serves_consumer_protocol:
        return DescribedConsumerGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        return services.groups.shard(group_id).describe_consumer([group_id])[0]
    except KafkaError as error:
        return DescribedConsumerGroup(
            group_id=group_id, error_code=error_code(error), error_message=error_text(error)
        )
