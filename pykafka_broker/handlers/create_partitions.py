"""CreatePartitions 0-3: a topic grows to a count; partitions are never taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.cluster.topics import MorePartitions
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Call, Services


async def handle(
    services: Services, call: Call, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    wishes = [
        MorePartitions(
            topic=topic.name,
            count=topic.count,
            assignments=None
            if topic.assignments is None
            else [chosen.broker_ids for chosen in topic.assignments],
        )
        for topic in request.topics
    ]
    outcome = await services.metadata.create_partitions(wishes, request.validate_only, request.timeout_ms)
    return CreatePartitionsResponse(results=[_result(name, result) for name, result in outcome.items()])


def _result(name: str, outcome: object) -> CreatePartitionsTopicResult:
    if isinstance(outcome, KafkaError):
        return CreatePartitionsTopicResult(name=name, error_code=outcome.code, error_message=outcome.text)
    return CreatePartitionsTopicResult(name=name)
