"""Which replicas are being moved."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int16, int32, message, string, struct


@struct
class ListPartitionReassignmentsTopics:
    """Partitions of one topic."""

    name: str = field(string, "0+")
    partition_indexes: list[int] = field(array(int32), "0+")


@message(api_key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    """Partitions to look at, None for all that move."""

    timeout_ms: int = field(int32, "0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(
        array(ListPartitionReassignmentsTopics), "0+", nullable="0+", default=None
    )


@struct
class OngoingPartitionReassignment:
    """The replicas of a partition, and those that come and go."""

    partition_index: int = field(int32, "0+")
    replicas: list[int] = field(array(int32), "0+")
    adding_replicas: list[int] = field(array(int32), "0+")
    removing_replicas: list[int] = field(array(int32), "0+")


@struct
class OngoingTopicReassignment:
    """The partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[OngoingPartitionReassignment] = field(array(OngoingPartitionReassignment), "0+")


@message(api_key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    """The moves under way."""

    throttle_time_ms: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+")
    topics: list[OngoingTopicReassignment] = field(array(OngoingTopicReassignment), "0+")
