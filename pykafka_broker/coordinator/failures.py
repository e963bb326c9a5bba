"""What clients are told when the records behind a reply could not be written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.coordinator.effects import Reply
from pykafka_broker.protocol.columns import Columns
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsResponse
from pykafka_broker.protocol.messages.offset_commit import OffsetCommitResponse, OffsetCommitResponsePartition

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOLD = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def told(error: ErrorCode) -> ErrorCode:
    """What a client can do something with, for an error of the log."""
    return _TOLD.get(error, error)


def failed_replies(replies: Sequence[Reply], error: ErrorCode) -> list[Reply]:
    """The replies with `error` in place of what they said. What was an error already stays as it is."""
    return [Reply(reply.token, failed_response(reply.response, error)) for reply in replies]


def failed_response(response: Any, error: ErrorCode) -> Any:
    if isinstance(response, OffsetCommitResponse):
        for topic in response.topics:
            indexes = [partition.partition_index for partition in topic.partitions]
            topic.partitions = Columns(OffsetCommitResponsePartition, (indexes, [error] * len(indexes)))
        return response
    if isinstance(response, DeleteGroupsResponse):
        for result in response.results:
            result.error_code = result.error_code or error
        return response
    if response.error_code and response.error_code != ErrorCode.MEMBER_ID_REQUIRED:
        return response
    return type(response)(error_code=error)
