"""DescribeCluster 0-2. Only brokers can be described; asking for controllers is refused, as in Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykafka_broker.handlers.metadata import reachable
from pykafka_broker.handlers.services import CLUSTER_OPERATIONS, Call, Services
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def handle(services: Services, call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is a broker endpoint, not a controller's")
    if request.endpoint_type != _BROKERS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"unknown endpoint type {request.endpoint_type}"
        )
    view = services.metadata.view
    response = DescribeClusterResponse(
        cluster_id=view.cluster_id,
        controller_id=view.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in reachable(view, call.client.listener)
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
