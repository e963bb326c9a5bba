"""The producers that a partition remembers."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int16, int32, int64, message, string, struct


@struct
class DescribeProducersTopic:
    """Partitions of one topic."""

    name: str = field(string, "0+")
    partition_indexes: list[int] = field(array(int32), "0+")


@message(api_key=61, versions="0", flexible="0+")
class DescribeProducersRequest:
    """Partitions to look at."""

    topics: list[DescribeProducersTopic] = field(array(DescribeProducersTopic), "0+")


@struct
class ProducerState:
    """A producer, its last sequence, and where its open transaction began."""

    producer_id: int = field(int64, "0+")
    producer_epoch: int = field(int32, "0+")
    last_sequence: int = field(int32, "0+", default=-1)
    last_timestamp: int = field(int64, "0+", default=-1)
    coordinator_epoch: int = field(int32, "0+")
    current_txn_start_offset: int = field(int64, "0+", default=-1)


@struct
class DescribeProducersPartitionResponse:
    """The producers of a partition."""

    partition_index: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+", default=None)
    active_producers: list[ProducerState] = field(array(ProducerState), "0+")


@struct
class DescribeProducersTopicResponse:
    """The partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[DescribeProducersPartitionResponse] = field(
        array(DescribeProducersPartitionResponse), "0+"
    )


@message(api_key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    """The producers of each partition."""

    throttle_time_ms: int = field(int32, "0+")
    topics: list[DescribeProducersTopicResponse] = field(array(DescribeProducersTopicResponse), "0+")
