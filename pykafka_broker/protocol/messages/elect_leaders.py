"""Electing leaders by hand: the preferred ones (type 0) or any replica alive (type 1)."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int8, int16, int32, message, string, struct


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic: str = field(string, "0+")
    partitions: list[int] = field(array(int32), "0+")


@message(api_key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    """Partitions to elect for, None for all."""

    election_type: int = field(int8, "1+")
    topic_partitions: list[TopicPartitions] | None = field(array(TopicPartitions), "0+", nullable="0+")
    timeout_ms: int = field(int32, "0+", default=60000)


@struct
class PartitionElectionResult:
    """A partition and whether a leader was elected."""

    partition_id: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+")


@struct
class ReplicaElectionResult:
    """The partitions of one topic."""

    topic: str = field(string, "0+")
    partition_result: list[PartitionElectionResult] = field(array(PartitionElectionResult), "0+")


@message(api_key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """What became of each election."""

    throttle_time_ms: int = field(int32, "0+")
    error_code: int = field(int16, "1+")
    replica_election_results: list[ReplicaElectionResult] = field(array(ReplicaElectionResult), "0+")
