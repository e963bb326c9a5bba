"""DescribeTopicPartitions 0: topics in order of name, a page of partitions at a time, with a cursor to go on from."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from pykafka_broker.cluster.topics import validate_name
from pykafka_broker.handlers.services import TOPIC_OPERATIONS, Call, Services
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    NextCursor,
)

if TYPE_CHECKING:
    from pykafka_broker.cluster.view import PartitionInfo, TopicInfo


def handle(
    services: Services,
    call: Call,
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse:
    view = services.metadata.view
    start_topic, start_index = "", 0
    if request.cursor is not None:
        start_topic, start_index = request.cursor.topic_name, request.cursor.partition_index
        if start_index < 0 or not _holds(request, start_topic):
            return DescribeTopicPartitionsResponse(topics=[_refused(topic.name) for topic in request.topics])
    names = sorted({topic.name for topic in request.topics} or view.topics)
    left = max(1, min(request.response_partition_limit, services.config.max_request_partition_size_limit))
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if name < start_topic:
            continue
        if left <= 0:
            response.next_cursor = NextCursor(topic_name=name, partition_index=0)
            break
        topic = view.topics.get(name)
        if topic is None:
            response.topics.append(_unknown(name))
            continue
        first = start_index if name == start_topic else 0
        indexes = list(range(first, len(topic.partitions)))
        response.topics.append(_page(topic, indexes[:left]))
        if len(indexes) > left:
            response.next_cursor = NextCursor(topic_name=name, partition_index=indexes[left])
            break
        left -= len(indexes)
    return response


def _holds(request: DescribeTopicPartitionsRequest, name: str) -> bool:
    """Whether the topic is among those asked for, as that of a cursor has to be."""
    return not request.topics or any(topic.name == name for topic in request.topics)


def _refused(name: str) -> DescribeTopicPartitionsResponseTopic:
    """A cursor that points nowhere; the response has no place for that but its topics."""
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.INVALID_REQUEST, name=name, topic_id=UUID(int=0)
    )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        validate_name(name)
    except KafkaError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code, name=name, topic_id=UUID(int=0), topic_authorized_operations=TOPIC_OPERATIONS
    )


def _page(topic: TopicInfo, indexes: list[int]) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(index, topic.partitions[index]) for index in indexes],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(index: int, info: PartitionInfo) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if info.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=info.leader,
        leader_epoch=info.leader_epoch,
        replica_nodes=list(info.replicas),
        isr_nodes=list(info.isr),
        offline_replicas=list(info.offline),
        # Without eligible leader replicas Kafka answers none, and its Java client takes null for a fault.
        eligible_leader_replicas=[],
        last_known_elr=[],
    )
