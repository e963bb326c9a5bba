"""Produce 0-13. Up to version 2 come messages of the old formats, made into a batch here; after it only batches do.

Every partition of a request succeeds or fails alone. Records are appended straight out of the receive buffer before
this function returns; only the waits for a disk sync and, with acks=all, for followers are left to a coroutine. With
acks=0 nothing is answered, and a failure closes the connection, which is how Kafka tells such a producer to refresh
its metadata.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pykafka_broker.handlers.services import Call, Services, error_code, error_text
from pykafka_broker.log.validation import begins_damaged, is_cut, problem_of_shape
from pykafka_broker.network.connection import ProtocolViolation
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from pykafka_broker.protocol.records.batch import MAGIC, MAGIC_AT
from pykafka_broker.protocol.records.conversion import upgrade
from pykafka_broker.replication.partition import ALL_IN_SYNC

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pykafka_broker.log.validation import Buffer
    from pykafka_broker.replication.partition import Partition

_TOPIC_IDS_SINCE: Final = 13
_BATCHES_ONLY_SINCE: Final = 3
_ZSTD_SINCE: Final = 7
_ATTRIBUTES_AT: Final = 22  # the low byte of a batch's attributes
_ZSTD: Final = 4
_CODEC_MASK: Final = 0x07
_TRANSACTIONAL: Final = 0x10
_ADMIN_CLIENT: Final = "__admin_client"  # the name under which Kafka's own tools may write anywhere


_NO_SUCH_LOG: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_NOT_LOOKED_INTO: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


class _NotAppended(KafkaError):
    """The log looked at the batch and refused it; the producer is told where the log starts."""

    def __init__(self, error: KafkaError, start: int) -> None:
        super().__init__(error.code, error.text)
        self.start = start


def handle(
    services: Services, call: Call, request: ProduceRequest
) -> ProduceResponse | Coroutine[Any, Any, ProduceResponse | None] | None:
    to_flush: list[Partition] = []
    replicating: _Replicating | None = None
    responses: list[TopicProduceResponse] = []
    failed: KafkaError | None = None
    for topic in request.topic_data:
        if not topic.partition_data:
            continue
        answers: list[PartitionProduceResponse] = []
        for data in topic.partition_data:
            try:
                if call.version >= _TOPIC_IDS_SINCE:
                    partition = services.partitions.leader_by_id(topic.topic_id, data.index)
                else:
                    partition = services.partitions.leader(topic.name, data.index)
                if partition.is_internal and call.client_id != _ADMIN_CLIENT:
                    raise KafkaError(
                        ErrorCode.INVALID_TOPIC_EXCEPTION, "an internal topic is written by brokers"
                    )
                answer, end = _append(partition, call.version, request, data)
                answers.append(answer)
                if request.acks == ALL_IN_SYNC and partition.is_replicated:
                    replicating = replicating or _Replicating()
                    replicating.add(partition, end, answer)
                if partition.flush_due:
                    to_flush.append(partition)
            except Exception as error:  # noqa: BLE001 -- one partition's failure is its own
                error = _first_of(error, call.version, data.records)
                code = error_code(error)
                failed = KafkaError(code)
                answers.append(
                    PartitionProduceResponse(
                        index=data.index,
                        error_code=code,
                        base_offset=-1,
                        log_start_offset=error.start if isinstance(error, _NotAppended) else -1,
                        error_message=error_text(error),
                    )
                )
        responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
    if to_flush or (replicating is not None and replicating.left):
        return _answer_later(request.acks, request.timeout_ms, responses, to_flush, replicating, failed)
    return _answer(request.acks, responses, failed)


def _first_of(error: Exception, version: int, records: Buffer | None) -> Exception:
    """Of several things wrong, the one that Kafka names: it takes records apart before it looks for a log."""
    problem = problem_of_shape(records, with_codec=version < _ZSTD_SINCE)
    if problem is None:
        return error
    late = version < _BATCHES_ONLY_SINCE or error_code(error) in _NO_SUCH_LOG
    if late and not (records is not None and begins_damaged(records)):
        return error
    return problem


def _append(
    partition: Partition, version: int, request: ProduceRequest, data: PartitionProduceData
) -> tuple[PartitionProduceResponse, int]:
    """What to answer, and where the batch ends in the log."""
    if request.acks not in (-1, 0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    records: Buffer | None = data.records
    if version < _BATCHES_ONLY_SINCE:
        records = _in_a_batch(partition, records)
        if not records:  # Kafka finds nothing to do, and nothing wrong with that
            return PartitionProduceResponse(index=data.index, base_offset=-1), 0
    if records is None or not len(records):
        raise KafkaError(ErrorCode.INVALID_RECORD, "a produce request holds exactly one batch a partition")
    if len(records) > _ATTRIBUTES_AT:
        attributes = records[_ATTRIBUTES_AT]
        if attributes & _CODEC_MASK == _ZSTD and _BATCHES_ONLY_SINCE <= version < _ZSTD_SINCE:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if attributes & _TRANSACTIONAL or request.transactional_id is not None:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "this broker does not serve transactions yet")
    try:
        appended = partition.append(records, acks=request.acks)
    except KafkaError as error:
        if error.code in _NOT_LOOKED_INTO:
            raise
        raise _NotAppended(error, partition.log.log_start_offset) from error
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=appended.first_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=partition.log.log_start_offset,
    )
    return answer, appended.last_offset + 1


def _in_a_batch(partition: Partition, records: Buffer | None) -> Buffer | None:
    """What a client before 0.11 sent; if it sent a batch for all that, it is taken as such."""
    if records is None:
        return None
    if len(records) > MAGIC_AT and records[MAGIC_AT] == MAGIC:
        return None if is_cut(records) else records
    config = partition.log.config
    return upgrade(
        records, config.max_message_bytes, codec=config.compression, level=config.compression_level
    )


class _Replicating:
    """The partitions of one request whose followers have yet to get its records. Owner: the request."""

    def __init__(self) -> None:
        self.left = 0
        self._open: dict[int, PartitionProduceResponse] = {}
        self._count = 0
        self._done: asyncio.Future[None] | None = None

    def add(self, partition: Partition, end: int, answer: PartitionProduceResponse) -> None:
        self._count += 1
        number = self._count
        self._open[number] = answer
        self.left += 1
        partition.when_settled(end, lambda code: self._settled(number, code))

    def _settled(self, number: int, code: ErrorCode) -> None:
        answer = self._open.pop(number, None)
        if answer is not None:  # else its time was over
            answer.error_code = code
            self.left -= 1
            if not self.left and self._done is not None and not self._done.done():
                self._done.set_result(None)

    async def wait(self, timeout_ms: int) -> None:
        """Ends when all are settled, or out of time: then records are in the log, and nobody knows if to stay."""
        if not self.left:
            return
        loop = asyncio.get_running_loop()
        self._done = loop.create_future()
        timer = loop.call_later(max(timeout_ms, 0) / 1000, self._time_over)
        try:
            await self._done
        finally:
            timer.cancel()
            self._open.clear()

    def _time_over(self) -> None:
        for number in tuple(self._open):
            self._settled(number, ErrorCode.REQUEST_TIMED_OUT)


async def _answer_later(
    acks: int,
    timeout_ms: int,
    responses: list[TopicProduceResponse],
    to_flush: list[Partition],
    replicating: _Replicating | None,
    failed: KafkaError | None,
) -> ProduceResponse | None:
    for partition in to_flush:
        await partition.flushed()
    if replicating is not None:
        await replicating.wait(timeout_ms)
    return _answer(acks, responses, failed)


def _answer(
    acks: int, responses: list[TopicProduceResponse], failed: KafkaError | None
) -> ProduceResponse | None:
    if acks:
        return ProduceResponse(responses=responses)
    if failed is not None:
        raise ProtocolViolation(f"a produce request with acks=0 failed: {failed.code.name}")
    return None
