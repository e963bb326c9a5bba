"""The state and members of groups of the new consumer protocol (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import (
    array,
    boolean,
    field,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
    uuid,
)

if TYPE_CHECKING:
    from uuid import UUID


@message(api_key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    """Groups to describe."""

    group_ids: list[str] = field(array(string), "0+")
    include_authorized_operations: bool = field(boolean, "0+")


@struct
class DescribedTopicPartitions:
    """Partitions of a topic."""

    topic_id: UUID = field(uuid, "0+")
    topic_name: str = field(string, "0+")
    partitions: list[int] = field(array(int32), "0+")


@struct
class DescribedAssignment:
    """What a member has, or shall have."""

    topic_partitions: list[DescribedTopicPartitions] = field(array(DescribedTopicPartitions), "0+")


@struct
class DescribedConsumerMember:
    """A member: type 0 speaks the classic protocol, 1 the new one."""

    member_id: str = field(string, "0+")
    instance_id: str | None = field(string, "0+", nullable="0+", default=None)
    rack_id: str | None = field(string, "0+", nullable="0+", default=None)
    member_epoch: int = field(int32, "0+")
    client_id: str = field(string, "0+")
    client_host: str = field(string, "0+")
    subscribed_topic_names: list[str] = field(array(string), "0+")
    subscribed_topic_regex: str | None = field(string, "0+", nullable="0+", default=None)
    assignment: DescribedAssignment = field(DescribedAssignment, "0+")
    target_assignment: DescribedAssignment = field(DescribedAssignment, "0+")
    member_type: int = field(int8, "1+", default=-1)


@struct
class DescribedConsumerGroup:
    """A group, or why it cannot be described."""

    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+", default=None)
    group_id: str = field(string, "0+")
    group_state: str = field(string, "0+")
    group_epoch: int = field(int32, "0+")
    assignment_epoch: int = field(int32, "0+")
    assignor_name: str = field(string, "0+")
    members: list[DescribedConsumerMember] = field(array(DescribedConsumerMember), "0+")
    authorized_operations: int = field(int32, "0+", default=-0x8000_0000)


@message(api_key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """The groups asked for."""

    throttle_time_ms: int = field(int32, "0+")
    groups: list[DescribedConsumerGroup] = field(array(DescribedConsumerGroup), "0+")
