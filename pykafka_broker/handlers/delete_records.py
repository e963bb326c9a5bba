"""DeleteRecords 0-2: moves the start of a log; -1 means all that is committed. Refused on compacted topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.handlers.services import Call, Services, error_code
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from pykafka_broker.protocol.messages.delete_records import DeleteRecordsPartition


def handle(services: Services, call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(services, topic.name, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
            if topic.partitions
        ]
    )


def _delete(services: Services, topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=-1)
    try:
        partition = services.partitions.leader(topic, wanted.partition_index)
        if not partition.log.config.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        result.low_watermark = partition.delete_records(wanted.offset)
    except Exception as error:  # noqa: BLE001 -- one partition's failure is its own
        result.error_code = error_code(error)
    return result
