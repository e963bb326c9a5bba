"""Brokers, topics, and who leads which partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import array, boolean, field, int16, int32, message, string, struct, uuid

if TYPE_CHECKING:
    from uuid import UUID


@struct
class MetadataRequestTopic:
    """A topic by name or, from version 12, by id alone."""

    topic_id: UUID = field(uuid, "10+")
    name: str | None = field(string, "0+", nullable="10+")


@message(api_key=3, versions="0-13", flexible="9+")
class MetadataRequest:
    """Topics None means all topics; in version 0 an empty list does."""

    topics: list[MetadataRequestTopic] | None = field(array(MetadataRequestTopic), "0+", nullable="1+")
    allow_auto_topic_creation: bool = field(boolean, "4+", default=True)
    include_cluster_authorized_operations: bool = field(boolean, "8-10")
    include_topic_authorized_operations: bool = field(boolean, "8+")


@struct
class MetadataResponseBroker:
    """A live broker, as reached through the listener asked."""

    node_id: int = field(int32, "0+")
    host: str = field(string, "0+")
    port: int = field(int32, "0+")
    rack: str | None = field(string, "1+", nullable="1+", default=None)


@struct
class MetadataResponsePartition:
    """A partition, its leader and its replicas."""

    error_code: int = field(int16, "0+")
    partition_index: int = field(int32, "0+")
    leader_id: int = field(int32, "0+")
    leader_epoch: int = field(int32, "7+", default=-1)
    replica_nodes: list[int] = field(array(int32), "0+")
    isr_nodes: list[int] = field(array(int32), "0+")
    offline_replicas: list[int] = field(array(int32), "5+")


@struct
class MetadataResponseTopic:
    """A topic, or why it cannot be shown."""

    error_code: int = field(int16, "0+")
    name: str | None = field(string, "0+", nullable="12+")
    topic_id: UUID = field(uuid, "10+")
    is_internal: bool = field(boolean, "1+")
    partitions: list[MetadataResponsePartition] = field(array(MetadataResponsePartition), "0+")
    topic_authorized_operations: int = field(int32, "8+", default=-0x8000_0000)


@message(api_key=3, versions="0-13", flexible="9+")
class MetadataResponse:
    """The cluster as the answering broker sees it."""

    throttle_time_ms: int = field(int32, "3+")
    brokers: list[MetadataResponseBroker] = field(array(MetadataResponseBroker), "0+")
    cluster_id: str | None = field(string, "2+", nullable="2+", default=None)
    controller_id: int = field(int32, "1+", default=-1)
    topics: list[MetadataResponseTopic] = field(array(MetadataResponseTopic), "0+")
    cluster_authorized_operations: int = field(int32, "8-10", default=-0x8000_0000)
    error_code: int = field(int16, "13+")
