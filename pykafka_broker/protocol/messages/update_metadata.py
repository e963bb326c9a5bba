"""The controller tells every broker what to tell clients about the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import (
    array,
    boolean,
    field,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    uuid,
)

if TYPE_CHECKING:
    from uuid import UUID


@struct
class UpdateMetadataPartitionState:
    """Who leads a partition, who is in sync, and which replicas are offline."""

    topic_name: str = field(string, "0-4")
    partition_index: int = field(int32, "0+")
    controller_epoch: int = field(int32, "0+")
    leader: int = field(int32, "0+")
    leader_epoch: int = field(int32, "0+")
    isr: list[int] = field(array(int32), "0+")
    zk_version: int = field(int32, "0+")
    replicas: list[int] = field(array(int32), "0+")
    offline_replicas: list[int] = field(array(int32), "4+")


@struct
class UpdateMetadataTopicState:
    """The partitions of one topic."""

    topic_name: str = field(string, "5+")
    topic_id: UUID = field(uuid, "7+")
    partition_states: list[UpdateMetadataPartitionState] = field(array(UpdateMetadataPartitionState), "5+")


@struct
class UpdateMetadataEndpoint:
    """One listener of a broker."""

    port: int = field(int32, "1+")
    host: str = field(string, "1+")
    listener: str = field(string, "3+")
    security_protocol: int = field(int16, "1+")


@struct
class UpdateMetadataBroker:
    """A live broker and where it listens."""

    id: int = field(int32, "0+")
    v0_host: str = field(string, "0")
    v0_port: int = field(int32, "0")
    endpoints: list[UpdateMetadataEndpoint] = field(array(UpdateMetadataEndpoint), "1+")
    rack: str | None = field(string, "2+", nullable="0+")


@message(api_key=6, versions="0-8", flexible="6+")
class UpdateMetadataRequest:
    """The live brokers, and the state of some partitions (type 1) or of all (type 2); see LeaderAndIsr."""

    controller_id: int = field(int32, "0+")
    is_k_raft_controller: bool = field(boolean, "8+")
    type: int = field(int8, "8+", tag=0)
    controller_epoch: int = field(int32, "0+")
    broker_epoch: int = field(int64, "5+", default=-1)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = field(
        array(UpdateMetadataPartitionState), "0-4"
    )
    topic_states: list[UpdateMetadataTopicState] = field(array(UpdateMetadataTopicState), "5+")
    live_brokers: list[UpdateMetadataBroker] = field(array(UpdateMetadataBroker), "0+")


@message(api_key=6, versions="0-8", flexible="6+")
class UpdateMetadataResponse:
    """Whether the news was taken."""

    error_code: int = field(int16, "0+")
