"""What the controller reacts to. Events from the tree carry what was read, so a plan needs no I/O."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from pykafka_broker.cluster.config_changes import ConfigChanged

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Mapping, Sequence

    from pykafka_broker.cluster import topics
    from pykafka_broker.cluster.controller.isr import IsrWish
    from pykafka_broker.cluster.controller.requests import Response, TopicPartition
    from pykafka_broker.cluster.view import BrokerInfo, ClusterView, PartitionInfo, TopicInfo


class ElectionType(enum.IntEnum):
    """As in ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class TookOver:
    """The whole tree was read: after winning the election, or when what was known turned out to be outdated."""

    view: ClusterView
    deletions: Sequence[str] = ()
    reassignments: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    preferred_elections: Sequence[TopicPartition] | None = None
    """None if the node is not there."""
    notifications: Sequence[str] = ()
    """Paths of notifications to brokers' former controllers; what they tell has been read with the tree."""


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    brokers: Mapping[int, BrokerInfo]
    """All that are alive now."""


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """Topics that were created, and names of those that vanished from the tree."""

    created: Sequence[TopicInfo] = ()
    vanished: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TopicChanged:
    """The node of a topic changed: partitions were added."""

    topic: TopicInfo


@dataclass(frozen=True, slots=True)
class DeletionsAsked:
    topics: Sequence[str]


@dataclass(frozen=True, slots=True)
class ReassignmentsAsked:
    """The content of /admin/reassign_partitions, empty if it is not there."""

    reassignments: Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class PreferredElectionsAsked:
    """The content of /admin/preferred_replica_election."""

    partitions: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class IsrNotified:
    """Leaders of old changed the ISR in the tree by themselves, and left notifications."""

    notifications: Sequence[str]
    partitions: Mapping[TopicPartition, PartitionInfo]


@dataclass(frozen=True, slots=True)
class LogDirsFailed:
    notifications: Sequence[str]
    brokers: Sequence[int]


@dataclass(frozen=True, slots=True)
class LeaderAndIsrAnswered:
    broker: int
    broker_epoch: int
    response: Response


@dataclass(frozen=True, slots=True)
class StopReplicaAnswered:
    broker: int
    broker_epoch: int
    response: Response


@dataclass(frozen=True, slots=True)
class AlterPartition:
    broker: int
    broker_epoch: int
    version: int
    wishes: Mapping[tuple[str | uuid.UUID, int], IsrWish]


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    type: ElectionType
    partitions: Sequence[TopicPartition] | None
    """None for all; then those that need no election are not answered."""


@dataclass(frozen=True, slots=True)
class BalanceLeaders:
    """Time to look whether brokers lead what they should."""


@dataclass(frozen=True, slots=True)
class ControlledShutdown:
    broker: int
    broker_epoch: int
    """-1 from brokers that do not know theirs."""


@dataclass(frozen=True, slots=True)
class AlterReassignments:
    wishes: Mapping[TopicPartition, Sequence[int] | None]
    keep_size: bool = False
    """Whether every partition shall have as many replicas as before."""


@dataclass(frozen=True, slots=True)
class ListReassignments:
    partitions: Sequence[TopicPartition] | None


@dataclass(frozen=True, slots=True)
class ChangeTopics:
    """CreateTopics, CreatePartitions and changes of configs: plans of `cluster.topics`, each built on those before."""

    plans: Mapping[Any, Callable[[ClusterView], topics.Plan[Any]]]
    """By a key of the caller's choice; a plan may raise KafkaError, which is then its outcome."""
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """By name or id."""

    targets: Sequence[str | uuid.UUID]


Event: TypeAlias = (
    TookOver
    | BrokersChanged
    | TopicsChanged
    | TopicChanged
    | ConfigChanged
    | DeletionsAsked
    | ReassignmentsAsked
    | PreferredElectionsAsked
    | IsrNotified
    | LogDirsFailed
    | LeaderAndIsrAnswered
    | StopReplicaAnswered
    | AlterPartition
    | ElectLeaders
    | BalanceLeaders
    | ControlledShutdown
    | AlterReassignments
    | ListReassignments
    | ChangeTopics
    | DeleteTopics
)
