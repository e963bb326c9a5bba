"""ListOffsets 0-11: the log's ends (-1, -2), the largest timestamp (-3, v7), the local start (-4, v8), tiered ends
(-5 v9, -6 v11: nothing is tiered here, so the answer is "none"), or the first record at or after a timestamp.

Consumers are shown what lies below the high watermark, under read_committed below the last stable offset: that is
"latest" for them. Replicas, and tools that pose as one (-2), are shown all there is. Nothing found is offset -1,
timestamp -1. A leader that does not know yet what is committed says OFFSET_NOT_AVAILABLE of what may be.

Version 0 is of the time before timestamps: it asks for up to so many offsets at which segments begin that were last
written before a time, the newest first; the end of the log counts as one more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykafka_broker.handlers.services import Call, Services, error_code
from pykafka_broker.log.leader_epochs import NO_EPOCH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.replication.partition import Partition

_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6
_OFFSET_NOT_AVAILABLE_SINCE: Final = 5
_CONSUMER: Final = -1
_ISOLATION_LEVELS: Final = (0, 1)
_NEVER: Final = 2**15
_SINCE: Final = {
    _LATEST: 0,
    _EARLIEST: 0,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}


def handle(services: Services, call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    if request.isolation_level not in _ISOLATION_LEVELS:
        return _refused(request)
    asked = [(topic.name, p.partition_index) for topic in request.topics for p in topic.partitions]
    twice = {tp for tp in asked if asked.count(tp) > 1} if len(set(asked)) < len(asked) else set()
    topics = []
    for topic in request.topics:
        if not topic.partitions and call.version > 0:
            continue
        answers = []
        for wanted in topic.partitions:
            try:
                if (topic.name, wanted.partition_index) in twice:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                if call.version < _version_that_knows(wanted.timestamp):
                    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
                partition = services.partitions.leader(topic.name, wanted.partition_index)
                partition.check_epoch(wanted.current_leader_epoch)
                if call.version == 0:
                    answers.append(_segments_before(partition, services.clock.wall_ms(), request, wanted))
                    continue
                answers.append(
                    _look_up(
                        partition,
                        call.version,
                        wanted,
                        committed=request.isolation_level == 1,
                        as_replica=request.replica_id != _CONSUMER,
                    )
                )
            except Exception as error:  # noqa: BLE001 -- one partition's failure is its own
                answers.append(
                    ListOffsetsPartitionResponse(
                        partition_index=wanted.partition_index, error_code=error_code(error)
                    )
                )
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _refused(request: ListOffsetsRequest) -> ListOffsetsResponse:
    """An isolation level that does not exist: Kafka did not foresee it, and says so of every partition."""
    topics = []
    for topic in request.topics:
        answers = [
            ListOffsetsPartitionResponse(
                partition_index=wanted.partition_index, error_code=ErrorCode.UNKNOWN_SERVER_ERROR
            )
            for wanted in topic.partitions
        ]
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _version_that_knows(timestamp: int) -> int:
    return 0 if timestamp >= 0 else _SINCE.get(timestamp, _NEVER)


def _look_up(
    partition: Partition, version: int, wanted: ListOffsetsPartition, *, committed: bool, as_replica: bool
) -> ListOffsetsPartitionResponse:
    log = partition.log
    shown = partition.last_stable_offset if committed else partition.high_watermark
    end = log.log_end_offset if as_replica else shown
    # An older leader may have told of more: what it told must not be taken back.
    unsure = not as_replica and not partition.knows_what_is_committed
    found: tuple[int, int, int] | None
    match wanted.timestamp:
        case -1:
            if unsure:
                raise _not_available(version)
            found = (end, -1, partition.leader_epoch)
        case -2 | -4:
            start = log.log_start_offset
            epoch = log.leader_epochs.epoch_for(start)
            found = (start, -1, partition.leader_epoch if epoch == NO_EPOCH else epoch)
        case -5 | -6:
            found = None
        case timestamp:
            found = (
                log.max_timestamp() if timestamp == _MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
            )
            if found is not None and found[0] >= end:
                if unsure:
                    raise _not_available(version)
                found = None
    if found is None:
        return ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    offset, timestamp, epoch = found
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, offset=offset, timestamp=timestamp, leader_epoch=epoch
    )


def _not_available(version: int) -> KafkaError:
    known = version >= _OFFSET_NOT_AVAILABLE_SINCE
    return KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE if known else ErrorCode.LEADER_NOT_AVAILABLE)


def _segments_before(
    partition: Partition, now_ms: int, request: ListOffsetsRequest, wanted: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    if wanted.max_num_offsets < 0:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # which Kafka did not foresee
    log = partition.log
    starts = log.segment_starts()
    if starts[-1][0] < log.log_end_offset:  # else the last segment is empty, and begins where the log ends
        starts.append((log.log_end_offset, now_ms))
    if wanted.timestamp == _EARLIEST:
        starts = starts[:1]
    elif wanted.timestamp != _LATEST:
        while starts and starts[-1][1] > wanted.timestamp:
            starts.pop()
    offsets = sorted((start for start, _ in starts), reverse=True)[: wanted.max_num_offsets]
    end = partition.high_watermark
    if request.replica_id == _CONSUMER and any(offset > end for offset in offsets):
        offsets = [end, *(offset for offset in offsets if offset <= end)]
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, old_style_offsets=offsets)
