"""What lies in the log directories of a broker."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, boolean, field, int16, int32, int64, message, string, struct


@struct
class DescribableLogDirTopic:
    """Partitions of one topic."""

    topic: str = field(string, "0+")
    partitions: list[int] = field(array(int32), "0+")


@message(api_key=35, versions="0-5", flexible="2+")
class DescribeLogDirsRequest:
    """Partitions to look at, None for all."""

    topics: list[DescribableLogDirTopic] | None = field(array(DescribableLogDirTopic), "0+", nullable="0+")


@struct
class DescribeLogDirsPartition:
    """A replica, its size, and how far it is behind."""

    partition_index: int = field(int32, "0+")
    partition_size: int = field(int64, "0+")
    offset_lag: int = field(int64, "0+")
    is_future_key: bool = field(boolean, "0+")


@struct
class DescribeLogDirsTopic:
    """The partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[DescribeLogDirsPartition] = field(array(DescribeLogDirsPartition), "0+")


@struct
class DescribeLogDirsResult:
    """A directory, what lies there and how much room is left."""

    error_code: int = field(int16, "0+")
    log_dir: str = field(string, "0+")
    topics: list[DescribeLogDirsTopic] = field(array(DescribeLogDirsTopic), "0+")
    total_bytes: int = field(int64, "4+", default=-1)
    usable_bytes: int = field(int64, "4+", default=-1)
    is_cordoned: bool = field(boolean, "5+")


@message(api_key=35, versions="0-5", flexible="2+")
class DescribeLogDirsResponse:
    """The directories."""

    throttle_time_ms: int = field(int32, "0+")
    error_code: int = field(int16, "3+")
    results: list[DescribeLogDirsResult] = field(array(DescribeLogDirsResult), "0+")
