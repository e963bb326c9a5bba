"""Creating topics."""

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


@struct
class CreatableReplicaAssignment:
    """The brokers of one partition, preferred leader first."""

    partition_index: int = field(int32, "0+")
    broker_ids: list[int] = field(array(int32), "0+")


@struct
class CreatableTopicConfig:
    """A configuration value of the topic."""

    name: str = field(string, "0+")
    value: str | None = field(string, "0+", nullable="0+")


@struct
class CreatableTopic:
    """A topic, with counts (-1 for the default) or with assignments."""

    name: str = field(string, "0+")
    num_partitions: int = field(int32, "0+")
    replication_factor: int = field(int16, "0+")
    assignments: list[CreatableReplicaAssignment] = field(array(CreatableReplicaAssignment), "0+")
    configs: list[CreatableTopicConfig] = field(array(CreatableTopicConfig), "0+")


@message(api_key=19, versions="0-7", flexible="5+")
class CreateTopicsRequest:
    """Topics to create, or only to check."""

    topics: list[CreatableTopic] = field(array(CreatableTopic), "0+")
    timeout_ms: int = field(int32, "0+", default=60000)
    validate_only: bool = field(boolean, "1+")


@struct
class CreatableTopicConfigs:
    """A configuration value in effect."""

    name: str = field(string, "5+")
    value: str | None = field(string, "5+", nullable="5+")
    read_only: bool = field(boolean, "5+")
    config_source: int = field(int8, "5+", default=-1)
    is_sensitive: bool = field(boolean, "5+")


@struct
class CreatableTopicResult:
    """The topic as created, or why it was not."""

    name: str = field(string, "0+")
    topic_id: UUID = field(uuid, "7+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "1+", nullable="0+")
    topic_config_error_code: int = field(int16, "5+", tag=0)
    num_partitions: int = field(int32, "5+", default=-1)
    replication_factor: int = field(int16, "5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = field(array(CreatableTopicConfigs), "5+", nullable="5+")


@message(api_key=19, versions="0-7", flexible="5+")
class CreateTopicsResponse:
    """What became of each topic."""

    throttle_time_ms: int = field(int32, "2+")
    topics: list[CreatableTopicResult] = field(array(CreatableTopicResult), "0+")
