"""A leader asks the controller to change the set of replicas in sync."""

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
    string,
    struct,
    uuid,
)

if TYPE_CHECKING:
    from uuid import UUID


@struct
class IsrMember:
    """A replica in sync, and the registration it was seen under."""

    broker_id: int = field(int32, "3+")
    broker_epoch: int = field(int64, "3+", default=-1)


@struct
class AlterPartitionData:
    """The replicas in sync, and the partition epoch this builds on."""

    partition_index: int = field(int32, "0+")
    leader_epoch: int = field(int32, "0+")
    new_isr: list[int] = field(array(int32), "0-2")
    new_isr_with_epochs: list[IsrMember] = field(array(IsrMember), "3+")
    leader_recovery_state: int = field(int8, "1+")
    partition_epoch: int = field(int32, "0+")


@struct
class AlterPartitionTopic:
    """The partitions of one topic, by id from version 2."""

    topic_name: str = field(string, "0-1")
    topic_id: UUID = field(uuid, "2+")
    partitions: list[AlterPartitionData] = field(array(AlterPartitionData), "0+")


@message(api_key=56, versions="0-3", flexible="0+")
class AlterPartitionRequest:
    """The changes of partitions that the broker leads."""

    broker_id: int = field(int32, "0+")
    broker_epoch: int = field(int64, "0+", default=-1)
    topics: list[AlterPartitionTopic] = field(array(AlterPartitionTopic), "0+")


@struct
class AlterPartitionResult:
    """The state in force, or why the change was refused."""

    partition_index: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    leader_id: int = field(int32, "0+")
    leader_epoch: int = field(int32, "0+")
    isr: list[int] = field(array(int32), "0+")
    leader_recovery_state: int = field(int8, "1+")
    partition_epoch: int = field(int32, "0+")


@struct
class AlterPartitionTopicResult:
    """The partitions of one topic, by id from version 2."""

    topic_name: str = field(string, "0-1")
    topic_id: UUID = field(uuid, "2+")
    partitions: list[AlterPartitionResult] = field(array(AlterPartitionResult), "0+")


@message(api_key=56, versions="0-3", flexible="0+")
class AlterPartitionResponse:
    """The state of each partition after it."""

    throttle_time_ms: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    topics: list[AlterPartitionTopicResult] = field(array(AlterPartitionTopicResult), "0+")
