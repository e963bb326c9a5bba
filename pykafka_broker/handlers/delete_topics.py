"""DeleteTopics 0-6, by name or (from 6) by id. Refused as a whole where `delete.topic.enable` is false."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from pykafka_broker.cluster.view import ClusterView, TopicInfo
    from pykafka_broker.handlers.services import Call, Services

_STATES_SINCE: Final = 6
_SAYS_DISABLED_SINCE: Final = 3
_NO_ID: Final = UUID(int=0)


async def handle(services: Services, call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if call.version < _STATES_SINCE:
        targets: list[str | UUID] = list(request.topic_names)
    else:
        targets = [_target(state) for state in request.topics if _is_clear(state)]
    if not services.config.delete_topic_enable:
        named = call.version >= _SAYS_DISABLED_SINCE
        refusal = KafkaError(ErrorCode.TOPIC_DELETION_DISABLED if named else ErrorCode.INVALID_REQUEST)
        return DeleteTopicsResponse(responses=[_result(target, refusal) for target in targets])
    twice = (
        {target for target in targets if targets.count(target) > 1}
        if len(set(targets)) < len(targets)
        else ()
    )
    in_both_ways = _named_in_both_ways(services, targets)
    also = {topic.name for topic in in_both_ways} | {topic.topic_id for topic in in_both_ways}
    named_once = [target for target in targets if target not in twice and target not in also]
    outcome = await services.metadata.delete_topics(named_once, request.timeout_ms)
    responses = [_result(target, result) for target, result in outcome.items()]
    repeated = KafkaError(ErrorCode.INVALID_REQUEST, "a topic is named once")
    responses += [_result(target, repeated) for target in twice if target not in also]
    responses += [
        DeletableTopicResult(
            name=topic.name, topic_id=topic.topic_id, error_code=repeated.code, error_message=repeated.text
        )
        for topic in in_both_ways
    ]
    responses += [_unclear(state) for state in request.topics if not _is_clear(state)]
    return DeleteTopicsResponse(responses=responses)


def _named_in_both_ways(services: Services, targets: list[str | UUID]) -> list[TopicInfo]:
    """Topics that are named and whose id is given, too."""
    view = services.metadata.view
    return [
        view.topics_by_id[each] for each in targets if isinstance(each, UUID) and _name(view, each) in targets
    ]


def _name(view: ClusterView, topic_id: UUID) -> str | None:
    topic = view.topics_by_id.get(topic_id)
    return None if topic is None else topic.name


def _is_clear(state: DeleteTopicState) -> bool:
    return (state.name is None) != (state.topic_id == _NO_ID)


def _unclear(state: DeleteTopicState) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=state.name,
        topic_id=state.topic_id,
        error_code=ErrorCode.INVALID_REQUEST,
        error_message="a topic is named either by name or by id",
    )


def _target(state: DeleteTopicState) -> str | UUID:
    return state.topic_id if state.name is None else state.name


def _result(target: str | UUID, outcome: TopicInfo | KafkaError) -> DeletableTopicResult:
    if not isinstance(outcome, KafkaError):
        return DeletableTopicResult(name=outcome.name, topic_id=outcome.topic_id)
    result = DeletableTopicResult(error_code=outcome.code, error_message=outcome.text)
    if isinstance(target, UUID):
        result.name, result.topic_id = None, target
    else:
        result.name = target
    return result
