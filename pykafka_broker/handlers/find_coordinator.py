"""FindCoordinator 0-6: the broker that leads a group's partition of the offsets topic, which is made when first needed.

Transactional ids and share groups have no coordinator here yet; asking for one is an INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykafka_broker.coordinator.group_coordinator import OFFSETS_TOPIC, partition_for
from pykafka_broker.handlers.metadata import reachable
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pykafka_broker.replication.internal_topics import offsets_topic

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Call, Services

_GROUP: Final = 0
_BATCHED_SINCE: Final = 4
_NOBODY: Final = -1


async def handle(services: Services, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    batched = call.version >= _BATCHED_SINCE
    keys = request.coordinator_keys if batched else [request.key]
    found = [await _find(services, call, request.key_type, key) for key in keys]
    if batched:
        return FindCoordinatorResponse(coordinators=found)
    only = found[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


async def _find(services: Services, call: Call, key_type: int, key: str) -> Coordinator:
    try:
        if key_type != _GROUP:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"no coordinator is served for keys of type {key_type}"
            )
        node, host, port = await _leader(services, call, key)
        return Coordinator(key=key, node_id=node, host=host, port=port, error_message=None)
    except KafkaError as error:
        return Coordinator(
            key=key, node_id=_NOBODY, port=_NOBODY, error_code=error.code, error_message=error.text
        )


async def _leader(services: Services, call: Call, group_id: str) -> tuple[int, str, int]:
    topic = services.metadata.view.topics.get(OFFSETS_TOPIC)
    if topic is None:
        wish = offsets_topic(services.config, alone=services.cluster is None)
        await services.metadata.ensure_topics([wish])
        topic = services.metadata.view.topics.get(OFFSETS_TOPIC)
    if topic is not None:
        leader = topic.partitions[partition_for(group_id, len(topic.partitions))].leader
        for node, host, port, _ in reachable(services.metadata.view, call.client.listener):
            if node == leader:
                return node, host, port
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
