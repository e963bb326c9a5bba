"""The controller tells a broker which partitions it leads and which it follows."""

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
class LeaderAndIsrPartitionState:
    """Who leads a partition, who is in sync, and where its replicas are."""

    topic_name: str = field(string, "0-1")
    partition_index: int = field(int32, "0+")
    controller_epoch: int = field(int32, "0+")
    leader: int = field(int32, "0+")
    leader_epoch: int = field(int32, "0+")
    isr: list[int] = field(array(int32), "0+")
    partition_epoch: int = field(int32, "0+")
    replicas: list[int] = field(array(int32), "0+")
    adding_replicas: list[int] = field(array(int32), "3+")
    removing_replicas: list[int] = field(array(int32), "3+")
    is_new: bool = field(boolean, "1+")
    leader_recovery_state: int = field(int8, "6+")


@struct
class LeaderAndIsrTopicState:
    """The partitions of one topic."""

    topic_name: str = field(string, "2+")
    topic_id: UUID = field(uuid, "5+")
    partition_states: list[LeaderAndIsrPartitionState] = field(array(LeaderAndIsrPartitionState), "2+")


@struct
class LeaderAndIsrLiveLeader:
    """How to reach a broker that leads one of the partitions."""

    broker_id: int = field(int32, "0+")
    host_name: str = field(string, "0+")
    port: int = field(int32, "0+")


@message(api_key=4, versions="0-7", flexible="4+")
class LeaderAndIsrRequest:
    """The state of partitions, some (type 1) or all (type 2); controllers on ZooKeeper leave it 0."""

    controller_id: int = field(int32, "0+")
    is_k_raft_controller: bool = field(boolean, "7+")
    controller_epoch: int = field(int32, "0+")
    broker_epoch: int = field(int64, "2+", default=-1)
    type: int = field(int8, "5+")
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = field(
        array(LeaderAndIsrPartitionState), "0-1"
    )
    topic_states: list[LeaderAndIsrTopicState] = field(array(LeaderAndIsrTopicState), "2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = field(array(LeaderAndIsrLiveLeader), "0+")


@struct
class LeaderAndIsrPartitionError:
    """A partition and whether its change was made."""

    topic_name: str = field(string, "0-4")
    partition_index: int = field(int32, "0+")
    error_code: int = field(int16, "0+")


@struct
class LeaderAndIsrTopicError:
    """The partitions of one topic, by its id."""

    topic_id: UUID = field(uuid, "5+")
    partition_errors: list[LeaderAndIsrPartitionError] = field(array(LeaderAndIsrPartitionError), "5+")


@message(api_key=4, versions="0-7", flexible="4+")
class LeaderAndIsrResponse:
    """What became of each partition."""

    error_code: int = field(int16, "0+")
    partition_errors: list[LeaderAndIsrPartitionError] = field(array(LeaderAndIsrPartitionError), "0-4")
    topics: list[LeaderAndIsrTopicError] = field(array(LeaderAndIsrTopicError), "5+")
