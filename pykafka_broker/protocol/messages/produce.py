"""Appending record batches to partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import (
    array,
    field,
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


@struct
class PartitionProduceData:
    """A partition and what to append to it."""

    index: int = field(int32, "0+")
    records: memoryview | None = field(records, "0+", nullable="0+")


@struct
class TopicProduceData:
    """A topic, by name up to version 12 and by id after it."""

    name: str = field(string, "0-12")
    topic_id: UUID = field(uuid, "13+")
    partition_data: list[PartitionProduceData] = field(array(PartitionProduceData), "0+")


@message(api_key=0, versions="0-13", flexible="9+")
class ProduceRequest:
    """Batches to append; acks 0 wants no response at all."""

    transactional_id: str | None = field(string, "3+", nullable="3+", default=None)
    acks: int = field(int16, "0+")
    timeout_ms: int = field(int32, "0+")
    topic_data: list[TopicProduceData] = field(array(TopicProduceData), "0+")


@struct
class BatchIndexAndErrorMessage:
    """A record at fault, by its place in the batch."""

    batch_index: int = field(int32, "8+")
    batch_index_error_message: str | None = field(string, "8+", nullable="8+", default=None)


@struct
class LeaderIdAndEpoch:
    """The leader to turn to instead."""

    leader_id: int = field(int32, "10+", default=-1)
    leader_epoch: int = field(int32, "10+", default=-1)


@struct
class PartitionProduceResponse:
    """The offset the batch got, or why it was refused."""

    index: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    base_offset: int = field(int64, "0+")
    log_append_time_ms: int = field(int64, "2+", default=-1)
    log_start_offset: int = field(int64, "5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = field(array(BatchIndexAndErrorMessage), "8+")
    error_message: str | None = field(string, "8+", nullable="8+", default=None)
    current_leader: LeaderIdAndEpoch | None = field(LeaderIdAndEpoch, "10+", tag=0)


@struct
class TopicProduceResponse:
    """The partitions of one topic."""

    name: str = field(string, "0-12")
    topic_id: UUID = field(uuid, "13+")
    partition_responses: list[PartitionProduceResponse] = field(array(PartitionProduceResponse), "0+")


@struct
class NodeEndpoint:
    """How to reach a broker named as the current leader."""

    node_id: int = field(int32, "10+")
    host: str = field(string, "10+")
    port: int = field(int32, "10+")
    rack: str | None = field(string, "10+", nullable="10+", default=None)


@message(api_key=0, versions="0-13", flexible="9+")
class ProduceResponse:
    """What became of each partition's batch."""

    responses: list[TopicProduceResponse] = field(array(TopicProduceResponse), "0+")
    throttle_time_ms: int = field(int32, "1+")
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), "10+", tag=0)
