"""Reading record batches, by consumers and by followers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import (
    array,
    field,
    int8,
    int16,
    int32,
    int64,
    message,
    records,
    string,
    struct,
    uuid,
)

if TYPE_CHECKING:
    from uuid import UUID

    from pykafka_broker.protocol.types import Records


@struct
class ReplicaState:
    """The follower that fetches, and the epoch of its registration."""

    replica_id: int = field(int32, "15+", default=-1)
    replica_epoch: int = field(int64, "15+", default=-1)


@struct
class FetchPartition:
    """Where to read a partition, and what the reader knows of it."""

    partition: int = field(int32, "0+")
    current_leader_epoch: int = field(int32, "9+", default=-1)
    fetch_offset: int = field(int64, "0+")
    last_fetched_epoch: int = field(int32, "12+", default=-1)
    log_start_offset: int = field(int64, "5+", default=-1)
    partition_max_bytes: int = field(int32, "0+")
    replica_directory_id: UUID = field(uuid, "17+", tag=0)
    high_watermark: int = field(int64, "18+", tag=1, default=0x7FFF_FFFF_FFFF_FFFF)


@struct
class FetchTopic:
    """A topic, by name up to version 12 and by id after it."""

    topic: str = field(string, "0-12")
    topic_id: UUID = field(uuid, "13+")
    partitions: list[FetchPartition] = field(array(FetchPartition), "0+")


@struct
class ForgottenTopic:
    """Partitions to drop from the fetch session."""

    topic: str = field(string, "7-12")
    topic_id: UUID = field(uuid, "13+")
    partitions: list[int] = field(array(int32), "7+")


@message(api_key=1, versions="0-18", flexible="12+")
class FetchRequest:
    """What to read, and how long to wait for how much."""

    cluster_id: str | None = field(string, "12+", nullable="12+", tag=0, default=None)
    replica_id: int = field(int32, "0-14", default=-1)
    replica_state: ReplicaState | None = field(ReplicaState, "15+", tag=1)
    max_wait_ms: int = field(int32, "0+")
    min_bytes: int = field(int32, "0+")
    max_bytes: int = field(int32, "3+", default=0x7FFF_FFFF)
    isolation_level: int = field(int8, "4+")
    session_id: int = field(int32, "7+")
    session_epoch: int = field(int32, "7+", default=-1)
    topics: list[FetchTopic] = field(array(FetchTopic), "0+")
    forgotten_topics_data: list[ForgottenTopic] = field(array(ForgottenTopic), "7+")
    rack_id: str = field(string, "11+")


@struct
class EpochEndOffset:
    """Where the reader's log parts from the leader's."""

    epoch: int = field(int32, "12+", default=-1)
    end_offset: int = field(int64, "12+", default=-1)


@struct
class LeaderIdAndEpoch:
    """The leader to turn to instead."""

    leader_id: int = field(int32, "12+", default=-1)
    leader_epoch: int = field(int32, "12+", default=-1)


@struct
class SnapshotId:
    """The snapshot to read instead (used by KRaft only)."""

    end_offset: int = field(int64, "0+", default=-1)
    epoch: int = field(int32, "0+", default=-1)


@struct
class AbortedTransaction:
    """A transaction whose records a committed reader skips."""

    producer_id: int = field(int64, "4+")
    first_offset: int = field(int64, "4+")


@struct
class PartitionData:
    """What a partition holds from the offset asked."""

    partition_index: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    high_watermark: int = field(int64, "0+")
    last_stable_offset: int = field(int64, "4+", default=-1)
    log_start_offset: int = field(int64, "5+", default=-1)
    diverging_epoch: EpochEndOffset | None = field(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch | None = field(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId | None = field(SnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field(
        array(AbortedTransaction), "4+", nullable="4+"
    )
    preferred_read_replica: int = field(int32, "11+", default=-1)
    records: Records | None = field(records, "0+", nullable="0+")


@struct
class FetchableTopicResponse:
    """The partitions of one topic."""

    topic: str = field(string, "0-12")
    topic_id: UUID = field(uuid, "13+")
    partitions: list[PartitionData] = field(array(PartitionData), "0+")


@struct
class NodeEndpoint:
    """How to reach a broker named as the current leader."""

    node_id: int = field(int32, "16+")
    host: str = field(string, "16+")
    port: int = field(int32, "16+")
    rack: str | None = field(string, "16+", nullable="16+", default=None)


@message(api_key=1, versions="0-18", flexible="12+")
class FetchResponse:
    """Records by partition; within a session only partitions with news."""

    throttle_time_ms: int = field(int32, "1+")
    error_code: int = field(int16, "7+")
    session_id: int = field(int32, "7+")
    responses: list[FetchableTopicResponse] = field(array(FetchableTopicResponse), "0+")
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), "16+", tag=0)
