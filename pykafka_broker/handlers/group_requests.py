"""What a member of a group sends to its group, each in one version range:

JoinGroup 0-9, SyncGroup 0-5, Heartbeat 0-4, LeaveGroup 0-5, OffsetDelete 0, ConsumerGroupHeartbeat 0-1.

They all go the same way: to the coordinator of the group they name, which answers now or later. A broker that is not
that coordinator says so in the response's own error code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pykafka_broker.coordinator.classic_rebalance import no_protocol
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pykafka_broker.handlers.services import Call, Services


class GroupRequest(Protocol):
    group_id: str


def handle(services: Services, call: Call, request: GroupRequest) -> Any | Coroutine[Any, Any, Any]:
    if type(request) is ConsumerGroupHeartbeatRequest and not services.config.serves_consumer_protocol:
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        return services.groups.handle(
            request.group_id, request, call.version, call.client_id, call.client.host
        )
    except KafkaError as error:
        # Of a join that fails the answer has no protocol, which is not one without a name.
        if isinstance(request, JoinGroupRequest):
            return JoinGroupResponse(error_code=error.code, protocol_name=no_protocol(call.version))
        raise
