"""DeleteRecords 0-2: moves the start of a log; -1 means all that is committed. Refused on compacted topics.

The answer waits until every living replica has let go of the records, so that no later leader shows them again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pykafka_broker.handlers.services import Call, Services, error_code
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pykafka_broker.protocol.messages.delete_records import DeleteRecordsPartition
    from pykafka_broker.replication.partition import Partition


@dataclass(frozen=True, slots=True)
class _Deleting:
    """A partition whose followers have yet to let go of what lies below `offset`."""

    partition: Partition
    offset: int
    result: DeleteRecordsPartitionResult

    def is_done(self) -> bool:
        if not self.partition.is_leader:
            self.result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            self.result.low_watermark = -1
            return True
        self.result.low_watermark = self.partition.low_watermark
        return self.result.low_watermark >= self.offset


def handle(
    services: Services, call: Call, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | Coroutine[Any, Any, DeleteRecordsResponse]:
    begun: list[_Deleting] = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(services, topic.name, wanted, begun) for wanted in topic.partitions],
            )
            for topic in request.topics
            if topic.partitions
        ]
    )
    waiting = [each for each in begun if not each.is_done()]
    return _when_all_let_go(waiting, response, request.timeout_ms) if waiting else response


def _delete(
    services: Services, topic: str, wanted: DeleteRecordsPartition, begun: list[_Deleting]
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=-1)
    try:
        partition = services.partitions.leader(topic, wanted.partition_index)
        config = partition.log.config
        if config.compact and not config.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        begun.append(_Deleting(partition, partition.delete_records(wanted.offset), result))
    except Exception as error:  # noqa: BLE001 -- one partition's failure is its own
        result.error_code = error_code(error)
    return result


async def _when_all_let_go(
    begun: list[_Deleting], response: DeleteRecordsResponse, timeout_ms: int
) -> DeleteRecordsResponse:
    woken = asyncio.Event()
    waiting = begun
    for each in begun:
        each.partition.subscribe(woken.set)
    try:
        async with asyncio.timeout(max(timeout_ms, 0) / 1000):
            while waiting := [each for each in waiting if not each.is_done()]:
                await woken.wait()
                woken.clear()
    except TimeoutError:
        for each in waiting:
            each.result.error_code = ErrorCode.REQUEST_TIMED_OUT
    finally:
        for each in begun:
            each.partition.unsubscribe(woken.set)
    return response
