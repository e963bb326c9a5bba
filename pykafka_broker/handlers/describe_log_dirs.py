"""DescribeLogDirs 0-5: what lies in each log directory of this broker, and how much room is left there (from 4).

A partition that was asked for and is not here is left out, as in Kafka."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pykafka_broker.handlers.services import Call, Services
    from pykafka_broker.replication.partition import Partition


def handle(services: Services, call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    asked = None
    if request.topics is not None:
        asked = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    lying_in: dict[Path, list[Partition]] = defaultdict(list)
    for partition in services.partitions:
        if asked is None or (partition.topic, partition.index) in asked:
            lying_in[partition.log.directory.parent].append(partition)
    directories = services.config.log_dirs
    return DescribeLogDirsResponse(
        results=[_directory(directory, lying_in[directory]) for directory in directories]
    )


def _directory(directory: Path, partitions: Iterable[Partition]) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=str(directory.absolute()))
    try:
        room = os.statvfs(directory)
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    result.total_bytes = room.f_blocks * room.f_frsize
    result.usable_bytes = room.f_bavail * room.f_frsize
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in partitions:
        topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic))
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=partition.index,
                partition_size=partition.log.size,
                offset_lag=max(partition.high_watermark - partition.log_end_offset, 0),
            )
        )
    result.topics = list(topics.values())
    return result
