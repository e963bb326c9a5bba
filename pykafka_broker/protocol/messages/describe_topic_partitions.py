"""Topics and their partitions, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import array, boolean, field, int16, int32, message, string, struct, uuid

if TYPE_CHECKING:
    from uuid import UUID


@struct
class TopicRequest:
    """A topic by name."""

    name: str = field(string, "0+")


@struct
class Cursor:
    """The first partition of the page asked for."""

    topic_name: str = field(string, "0+")
    partition_index: int = field(int32, "0+")


@message(api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    """Topics to describe; none means all."""

    topics: list[TopicRequest] = field(array(TopicRequest), "0+")
    response_partition_limit: int = field(int32, "0+", default=2000)
    cursor: Cursor | None = field(Cursor, "0+", nullable="0+", default=None)


@struct
class DescribeTopicPartitionsResponsePartition:
    """A partition, its leader and its replicas."""

    error_code: int = field(int16, "0+")
    partition_index: int = field(int32, "0+")
    leader_id: int = field(int32, "0+")
    leader_epoch: int = field(int32, "0+", default=-1)
    replica_nodes: list[int] = field(array(int32), "0+")
    isr_nodes: list[int] = field(array(int32), "0+")
    eligible_leader_replicas: list[int] | None = field(array(int32), "0+", nullable="0+", default=None)
    last_known_elr: list[int] | None = field(array(int32), "0+", nullable="0+", default=None)
    offline_replicas: list[int] = field(array(int32), "0+")


@struct
class DescribeTopicPartitionsResponseTopic:
    """A topic, or why it cannot be shown."""

    error_code: int = field(int16, "0+")
    name: str | None = field(string, "0+", nullable="0+")
    topic_id: UUID = field(uuid, "0+")
    is_internal: bool = field(boolean, "0+")
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(
        array(DescribeTopicPartitionsResponsePartition), "0+"
    )
    topic_authorized_operations: int = field(int32, "0+", default=-0x8000_0000)


@struct
class NextCursor:
    """The first partition of the next page."""

    topic_name: str = field(string, "0+")
    partition_index: int = field(int32, "0+")


@message(api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """One page, and where the next one starts."""

    throttle_time_ms: int = field(int32, "0+")
    topics: list[DescribeTopicPartitionsResponseTopic] = field(
        array(DescribeTopicPartitionsResponseTopic), "0+"
    )
    next_cursor: NextCursor | None = field(NextCursor, "0+", nullable="0+", default=None)
