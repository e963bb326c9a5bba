"""Metadata 0-13: brokers, topics by name or (from 12) by id, and creation of a missing topic where that is allowed.

Differs from Kafka in one kindness: a topic created on the way is answered at once, ready for use, where Kafka answers
an error first and lets the client ask again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from pykafka_broker.cluster.topics import NewTopic, validate_name
from pykafka_broker.handlers.services import (
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    Call,
    Services,
    error_code,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pykafka_broker.cluster.view import ClusterView, TopicInfo

_NULL_MEANS_ALL_SINCE: Final = 1
_IDS_LOOKED_UP_SINCE: Final = 12
_NO_ID: Final = UUID(int=0)
_SAID_OTHERWISE: Final = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_TOPIC_EXCEPTION)
"""Why a topic was not made: it is there by now, or its name, if it is not wrong in itself, collides with another."""


def handle(
    services: Services, call: Call, request: MetadataRequest
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    if request.topics is None or (call.version < _NULL_MEANS_ALL_SINCE and not request.topics):
        view = services.metadata.view
        return _respond(services, call, request, [_found(topic, request) for topic in view.topics.values()])
    if call.version < _IDS_LOOKED_UP_SINCE and any(
        asked.name is None or asked.topic_id != _NO_ID for asked in request.topics
    ):
        return MetadataResponse(topics=[_refused(asked) for asked in request.topics])
    # A request that asks for an id asks for nothing else, and whatever it asks for it asks once.
    by_id = {asked.topic_id: asked for asked in request.topics if asked.topic_id != _NO_ID}
    topics = list(by_id.values()) or list({asked.name: asked for asked in request.topics}.values())
    missing = {
        asked.name
        for asked in topics
        if not by_id and asked.name is not None and asked.name not in services.metadata.view.topics
    }
    request.topics = topics
    if missing and request.allow_auto_topic_creation and services.config.auto_create_topics_enable:
        return _create_and_respond(services, call, request, missing)
    return _respond(services, call, request, [_describe(services, asked, request, {}) for asked in topics])


async def _create_and_respond(
    services: Services, call: Call, request: MetadataRequest, missing: set[str]
) -> MetadataResponse:
    failures: dict[str, ErrorCode] = {}
    results = await services.metadata.ensure_topics([NewTopic(name=name) for name in sorted(missing)])
    for name, result in results.items():
        if isinstance(result, KafkaError) and result.code not in _SAID_OTHERWISE:
            failures[name] = result.code
    return _respond(
        services,
        call,
        request,
        [_describe(services, asked, request, failures) for asked in request.topics or ()],
    )


def _describe(
    services: Services, asked: MetadataRequestTopic, request: MetadataRequest, failures: dict[str, ErrorCode]
) -> MetadataResponseTopic:
    view = services.metadata.view
    if asked.topic_id != _NO_ID:
        known = view.topics_by_id.get(asked.topic_id)
        if known is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id
            )
        return _found(known, request)
    if asked.name is None:
        return _refused(asked)
    topic = view.topics.get(asked.name)
    if topic is not None:
        return _found(topic, request)
    try:
        validate_name(asked.name)
        code = failures.get(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    except KafkaError as error:
        code = error_code(error)
    unknown = MetadataResponseTopic(error_code=code, name=asked.name)
    if request.include_topic_authorized_operations:
        unknown.topic_authorized_operations = TOPIC_OPERATIONS
    return unknown


def _refused(asked: MetadataRequestTopic) -> MetadataResponseTopic:
    """Versions 10 and 11 have a field for the id but do not look it up; and one of name and id must be there."""
    return MetadataResponseTopic(
        error_code=ErrorCode.INVALID_REQUEST, name=asked.name or "", topic_id=asked.topic_id
    )


def _found(topic: TopicInfo, request: MetadataRequest) -> MetadataResponseTopic:
    described = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if info.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=info.leader,
                leader_epoch=info.leader_epoch,
                replica_nodes=list(info.replicas),
                isr_nodes=list(info.isr),
                offline_replicas=list(info.offline),
            )
            for index, info in enumerate(topic.partitions)
        ],
    )
    if request.include_topic_authorized_operations:
        described.topic_authorized_operations = TOPIC_OPERATIONS
    return described


def _respond(
    services: Services, call: Call, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    view = services.metadata.view
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in reachable(view, call.client.listener)
        ],
        cluster_id=view.cluster_id,
        controller_id=view.controller_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def reachable(view: ClusterView, listener: str) -> list[tuple[int, str, int, str | None]]:
    """The brokers as a client of this listener may reach them: (id, host, port, rack)."""
    return [
        (broker.id, *broker.endpoints[listener], broker.rack)
        for broker in view.brokers.values()
        if listener in broker.endpoints
    ]
