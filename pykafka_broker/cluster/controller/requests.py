"""What the controller tells brokers: LeaderAndIsr, UpdateMetadata and StopReplica, apart from the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from pykafka_broker.cluster.view import BrokerInfo, PartitionInfo
    from pykafka_broker.protocol.errors import ErrorCode

TopicPartition: TypeAlias = tuple[str, int]

LEADER_DURING_DELETE = -2
"""The leader and, in StopReplica, the leader epoch of a partition whose topic is being deleted."""


@dataclass(frozen=True, slots=True)
class HostedPartition:
    """A partition that the receiver hosts, and its part in it."""

    topic: str
    topic_id: uuid.UUID
    partition: int
    info: PartitionInfo
    is_new: bool
    """The replica holds nothing yet, so any log directory will do."""


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[HostedPartition, ...]
    leaders: tuple[BrokerInfo, ...]
    """The brokers that lead one of the partitions."""


@dataclass(frozen=True, slots=True)
class KnownPartition:
    """A partition as clients shall hear of it."""

    topic: str
    topic_id: uuid.UUID
    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UpdateMetadata:
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[KnownPartition, ...]
    """Only those that changed; the receiver keeps what it knows of the others."""
    brokers: tuple[BrokerInfo, ...]
    """All that are alive."""


@dataclass(frozen=True, slots=True)
class StoppedPartition:
    topic: str
    partition: int
    leader_epoch: int
    delete: bool


@dataclass(frozen=True, slots=True)
class StopReplica:
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[StoppedPartition, ...]


Request: TypeAlias = LeaderAndIsr | UpdateMetadata | StopReplica


@dataclass(frozen=True, slots=True)
class Response:
    """A broker's answer to any of the three; UpdateMetadata has no partitions."""

    error: ErrorCode
    partitions: Mapping[TopicPartition, ErrorCode]
