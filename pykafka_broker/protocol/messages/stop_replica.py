"""The controller tells a broker to stop following partitions, and perhaps to delete them."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, boolean, field, int16, int32, int64, message, string, struct


@struct
class StopReplicaPartitionV0:
    """A partition, named in full."""

    topic_name: str = field(string, "0")
    partition_index: int = field(int32, "0")


@struct
class StopReplicaTopicV1:
    """Partitions of one topic."""

    name: str = field(string, "1-2")
    partition_indexes: list[int] = field(array(int32), "1-2")


@struct
class StopReplicaPartitionState:
    """A partition, fenced by the epoch of its leader (-2 for a topic that is deleted)."""

    partition_index: int = field(int32, "3+")
    leader_epoch: int = field(int32, "3+", default=-1)
    delete_partition: bool = field(boolean, "3+")


@struct
class StopReplicaTopicState:
    """The partitions of one topic."""

    topic_name: str = field(string, "3+")
    partition_states: list[StopReplicaPartitionState] = field(array(StopReplicaPartitionState), "3+")


@message(api_key=5, versions="0-4", flexible="2+")
class StopReplicaRequest:
    """The replicas to stop; up to version 2 all are deleted or none."""

    controller_id: int = field(int32, "0+")
    is_k_raft_controller: bool = field(boolean, "4+")
    controller_epoch: int = field(int32, "0+")
    broker_epoch: int = field(int64, "1+", default=-1)
    delete_partitions: bool = field(boolean, "0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = field(array(StopReplicaPartitionV0), "0")
    topics: list[StopReplicaTopicV1] = field(array(StopReplicaTopicV1), "1-2")
    topic_states: list[StopReplicaTopicState] = field(array(StopReplicaTopicState), "3+")


@struct
class StopReplicaPartitionError:
    """A partition and whether its replica was stopped."""

    topic_name: str = field(string, "0+")
    partition_index: int = field(int32, "0+")
    error_code: int = field(int16, "0+")


@message(api_key=5, versions="0-4", flexible="2+")
class StopReplicaResponse:
    """What became of each replica."""

    error_code: int = field(int16, "0+")
    partition_errors: list[StopReplicaPartitionError] = field(array(StopReplicaPartitionError), "0+")
