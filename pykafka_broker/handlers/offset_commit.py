"""OffsetCommit 0-10. The response has no error of its own: a broker that does not coordinate the group says so in every
partition. A group may have no name here, as in Kafka.

Version 0 is of the time before coordinators: nobody has asked for one, so what they need is made when it is missing.
Apache Kafka 3.9 keeps such offsets apart, in ZooKeeper; here they are the group's as all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.coordinator.group_coordinator import OFFSETS_TOPIC
from pykafka_broker.handlers.services import Call, Services, error_code
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pykafka_broker.replication.internal_topics import offsets_topic
from pykafka_broker.turn import Soon

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pykafka_broker.protocol.errors import ErrorCode


def handle(
    services: Services, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | Soon | Coroutine[Any, Any, OffsetCommitResponse]:
    if call.version == 0 and OFFSETS_TOPIC not in services.metadata.view.topics:
        return _make_a_place_and_commit(services, call, request)
    return _commit(services, call, request)


async def _make_a_place_and_commit(
    services: Services, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse:
    await services.metadata.ensure_topics([offsets_topic(services.config, alone=services.cluster is None)])
    response = _commit(services, call, request)
    if isinstance(response, Soon):
        return await response.there()  # type: ignore[no-any-return]
    return response if isinstance(response, OffsetCommitResponse) else await response


def _commit(
    services: Services, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | Soon | Coroutine[Any, Any, OffsetCommitResponse]:
    try:
        return services.groups.handle(
            request.group_id, request, call.version, call.client_id, call.client.host
        )
    except KafkaError as error:
        return _refused(request, error_code(error))


def _refused(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
