"""Moving replicas to other brokers."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, boolean, field, int16, int32, message, string, struct


@struct
class ReassignablePartition:
    """The brokers of a partition, or None to give up its move."""

    partition_index: int = field(int32, "0+")
    replicas: list[int] | None = field(array(int32), "0+", nullable="0+", default=None)


@struct
class ReassignableTopic:
    """Partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[ReassignablePartition] = field(array(ReassignablePartition), "0+")


@message(api_key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    """Where the replicas shall be."""

    timeout_ms: int = field(int32, "0+", default=60000)
    allow_replication_factor_change: bool = field(boolean, "1+", default=True)
    topics: list[ReassignableTopic] = field(array(ReassignableTopic), "0+")


@struct
class ReassignablePartitionResponse:
    """A partition and whether its move was begun."""

    partition_index: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+")


@struct
class ReassignableTopicResponse:
    """The partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[ReassignablePartitionResponse] = field(array(ReassignablePartitionResponse), "0+")


@message(api_key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    """Whether the moves were begun."""

    throttle_time_ms: int = field(int32, "0+")
    allow_replication_factor_change: bool = field(boolean, "1+", default=True)
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+")
    responses: list[ReassignableTopicResponse] = field(array(ReassignableTopicResponse), "0+")
