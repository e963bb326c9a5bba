"""OffsetForLeaderEpoch 0-4: where an epoch's records end in this log, so that others can find where theirs diverge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.handlers.services import Call, Services, error_code
from pykafka_broker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from pykafka_broker.replication.partition import Partition


def handle(
    services: Services, call: Call, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    topics = []
    for topic in request.topics:
        answers = []
        for wanted in topic.partitions:
            try:
                partition = services.partitions.leader(topic.topic, wanted.partition)
                answers.append(_look_up(partition, wanted))
            except Exception as error:  # noqa: BLE001 -- one partition's failure is its own
                answers.append(EpochEndOffset(partition=wanted.partition, error_code=error_code(error)))
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(topics=topics)


def _look_up(partition: Partition, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    partition.check_epoch(wanted.current_leader_epoch)
    epoch, offset = partition.log.end_offset_for_epoch(wanted.leader_epoch, partition.leader_epoch)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=offset)
