"""Moving the start of partitions forward."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int16, int32, int64, message, string, struct


@struct
class DeleteRecordsPartition:
    """Records below the offset go; -1 is the high watermark."""

    partition_index: int = field(int32, "0+")
    offset: int = field(int64, "0+")


@struct
class DeleteRecordsTopic:
    """The partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[DeleteRecordsPartition] = field(array(DeleteRecordsPartition), "0+")


@message(api_key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    """Partitions to delete records from."""

    topics: list[DeleteRecordsTopic] = field(array(DeleteRecordsTopic), "0+")
    timeout_ms: int = field(int32, "0+")


@struct
class DeleteRecordsPartitionResult:
    """The offset a partition now starts at."""

    partition_index: int = field(int32, "0+")
    low_watermark: int = field(int64, "0+")
    error_code: int = field(int16, "0+")


@struct
class DeleteRecordsTopicResult:
    """The partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[DeleteRecordsPartitionResult] = field(array(DeleteRecordsPartitionResult), "0+")


@message(api_key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """Where the partitions now start."""

    throttle_time_ms: int = field(int32, "0+")
    topics: list[DeleteRecordsTopicResult] = field(array(DeleteRecordsTopicResult), "0+")
