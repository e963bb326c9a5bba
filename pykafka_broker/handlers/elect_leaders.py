"""ElectLeaders 0-2: preferred leaders, or (from 1) any replica alive. As in Kafka the answer waits until this broker's
own metadata shows the new leaders, or until the time is up, and each partition has an error of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from pykafka_broker.cluster.controller import events
from pykafka_broker.handlers.controller_access import by_topic, judge
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionElectionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pykafka_broker.cluster.view import ClusterView
    from pykafka_broker.handlers.services import Call, Services

TopicPartition: TypeAlias = tuple[str, int]


async def handle(services: Services, call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    asked, topics = None, list[str]()
    if request.topic_partitions is not None:
        asked = [(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions]
        topics = [topic.topic for topic in request.topic_partitions]
    try:
        outcome = await _elect(services, request, asked)
    except KafkaError as error:
        listed = _all_partitions(services.metadata.view) if asked is None else asked
        return _response(dict.fromkeys(listed, error), topics)
    except ValueError:  # an election type that does not exist
        code = ErrorCode.INVALID_REQUEST
        response = _response(dict.fromkeys(asked or (), KafkaError(code)), topics)
        response.error_code = code
        return response
    expected = {tp: leader for tp, leader in outcome.items() if not isinstance(leader, KafkaError)}
    missed = await _until_seen(services, expected, request.timeout_ms)
    timed_out = dict.fromkeys(missed, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    return _response(outcome | timed_out, services.metadata.view.topics if asked is None else topics)


async def _elect(
    services: Services, request: ElectLeadersRequest, asked: Sequence[TopicPartition] | None
) -> dict[TopicPartition, int | KafkaError]:
    event = events.ElectLeaders(events.ElectionType(request.election_type), asked)
    outcome: dict[TopicPartition, int | KafkaError] = await judge(services).submit(event)
    return outcome


def _all_partitions(view: ClusterView) -> list[TopicPartition]:
    return [(name, index) for name, topic in view.topics.items() for index in range(len(topic.partitions))]


async def _until_seen(
    services: Services, expected: Mapping[TopicPartition, int], timeout_ms: int
) -> list[TopicPartition]:
    """Waits until the metadata here shows these leaders; the answer is those it did not show in time."""
    metadata = services.metadata

    def missing(view: ClusterView) -> list[TopicPartition]:
        return [
            tp
            for tp, leader in expected.items()
            if (found := view.partition(*tp)) is None or found.leader != leader
        ]

    seen = asyncio.Event()

    def look(_: ClusterView, view: ClusterView) -> None:
        if not missing(view):
            seen.set()

    stop_looking = metadata.on_change(look)
    try:
        look(metadata.view, metadata.view)
        async with asyncio.timeout(max(timeout_ms, 0) / 1000):
            await seen.wait()
    except TimeoutError:
        return missing(metadata.view)
    finally:
        stop_looking()
    return []


def _response(
    outcome: Mapping[TopicPartition, int | KafkaError], topics: Iterable[str]
) -> ElectLeadersResponse:
    results = []
    for topic, partitions in by_topic(outcome, topics).items():
        result = ReplicaElectionResult(topic=topic)
        for index, found in partitions.items():
            if isinstance(found, KafkaError):
                answer = PartitionElectionResult(
                    partition_id=index, error_code=found.code, error_message=found.text
                )
            else:
                answer = PartitionElectionResult(partition_id=index, error_message=None)
            result.partition_result.append(answer)
        results.append(result)
    return ElectLeadersResponse(replica_election_results=results)
