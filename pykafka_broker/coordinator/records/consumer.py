"""Records of groups of the consumer protocol (KIP-848): the group, its members, what they should and do hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import (
    array,
    binary,
    field,
    int8,
    int32,
    int64,
    message,
    string,
    struct,
    uuid,
)

if TYPE_CHECKING:
    from uuid import UUID


@message(api_key=3, versions="0", flexible="none")
class ConsumerGroupMetadataKey:
    """A consumer group."""

    group_id: str = field(string, "0")


@message(api_key=3, versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    """The group's epoch, and a hash of the topics it is subscribed to, by which changes of them are noticed."""

    epoch: int = field(int32, "0+")
    metadata_hash: int = field(int64, "0+", tag=0)


@message(api_key=4, versions="0", flexible="none")
class ConsumerGroupPartitionMetadataKey:
    """The topics of a consumer group, as kept before 4.1."""

    group_id: str = field(string, "0")


@struct
class PartitionMetadata:
    """Where the replicas of a partition are."""

    partition: int = field(int32, "0+")
    racks: list[str] = field(array(string), "0+")


@struct
class TopicMetadata:
    """A topic the group is subscribed to."""

    topic_id: UUID = field(uuid, "0+")
    topic_name: str = field(string, "0+")
    num_partitions: int = field(int32, "0+")
    partition_metadata: list[PartitionMetadata] = field(array(PartitionMetadata), "0+")


@message(api_key=4, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    """Topics as kept before 4.1; since then a hash in the group's own record stands for them."""

    topics: list[TopicMetadata] = field(array(TopicMetadata), "0+")


@message(api_key=5, versions="0", flexible="none")
class ConsumerGroupMemberMetadataKey:
    """A member of a consumer group."""

    group_id: str = field(string, "0")
    member_id: str = field(string, "0")


@struct
class ClassicProtocol:
    """A protocol of a member that speaks the classic one, and its subscription under it."""

    name: str = field(string, "0+")
    metadata: bytes = field(binary, "0+")


@struct
class ClassicMemberMetadata:
    """What is known of a member that speaks the classic protocol."""

    session_timeout_ms: int = field(int32, "0+")
    supported_protocols: list[ClassicProtocol] = field(array(ClassicProtocol), "0+")


@message(api_key=5, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """Who the member is and what it wants."""

    instance_id: str | None = field(string, "0+", nullable="0+")
    rack_id: str | None = field(string, "0+", nullable="0+")
    client_id: str = field(string, "0+")
    client_host: str = field(string, "0+")
    subscribed_topic_names: list[str] = field(array(string), "0+")
    subscribed_topic_regex: str | None = field(string, "0+", nullable="0+")
    rebalance_timeout_ms: int = field(int32, "0+", default=-1)
    server_assignor: str | None = field(string, "0+", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = field(
        ClassicMemberMetadata, "0+", nullable="0+", tag=0, default=None
    )


@message(api_key=6, versions="0", flexible="none")
class ConsumerGroupTargetAssignmentMetadataKey:
    """The target assignment of a consumer group."""

    group_id: str = field(string, "0")


@message(api_key=6, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    """For which epoch the target was made, and when."""

    assignment_epoch: int = field(int32, "0+")
    assignment_timestamp: int = field(int64, "0+", tag=0)


@message(api_key=7, versions="0", flexible="none")
class ConsumerGroupTargetAssignmentMemberKey:
    """A member's part of the target assignment."""

    group_id: str = field(string, "0")
    member_id: str = field(string, "0")


@struct
class TopicPartition:
    """Partitions of a topic."""

    topic_id: UUID = field(uuid, "0+")
    partitions: list[int] = field(array(int32), "0+")


@message(api_key=7, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions the member should come to hold."""

    topic_partitions: list[TopicPartition] = field(array(TopicPartition), "0+")


@message(api_key=8, versions="0", flexible="none")
class ConsumerGroupCurrentMemberAssignmentKey:
    """A member's present assignment."""

    group_id: str = field(string, "0")
    member_id: str = field(string, "0")


@struct
class TopicPartitions:
    """Partitions of a topic, and since 4.3 the epoch in which the member was given each."""

    topic_id: UUID = field(uuid, "0+")
    partitions: list[int] = field(array(int32), "0+")
    assignment_epochs: list[int] | None = field(array(int32), "0+", nullable="0+", tag=0, default=None)


@message(api_key=8, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """The member's epoch, what it holds and what it still has to give back."""

    member_epoch: int = field(int32, "0+")
    previous_member_epoch: int = field(int32, "0+")
    state: int = field(int8, "0+")
    assigned_partitions: list[TopicPartitions] = field(array(TopicPartitions), "0+")
    partitions_pending_revocation: list[TopicPartitions] = field(array(TopicPartitions), "0+")


@message(api_key=16, versions="0", flexible="none")
class ConsumerGroupRegularExpressionKey:
    """A regular expression some member of the group subscribed with."""

    group_id: str = field(string, "0")
    regular_expression: str = field(string, "0")


@message(api_key=16, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """The topics that matched when it was last resolved."""

    topics: list[str] = field(array(string), "0+")
    version: int = field(int64, "0+")
    timestamp: int = field(int64, "0+")
