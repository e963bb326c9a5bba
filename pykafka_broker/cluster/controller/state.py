"""What the controller knows beyond the view, and the shape of its plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafka_broker.cluster.controller.requests import Request, TopicPartition
    from pykafka_broker.cluster.store import Op
    from pykafka_broker.cluster.view import ClusterView

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What the broker's configuration decides; the fields bear Kafka's names for them."""

    broker_id: int
    unclean_leader_election_enable: bool = False
    delete_topic_enable: bool = True
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_per_broker_percentage: int = 10
    leader_imbalance_check_interval_seconds: float = 300.0
    inter_broker_listener: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Deletion:
    """How far the deletion of a topic has come; replicas are (partition, broker)."""

    started: frozenset[tuple[int, int]] = frozenset()
    """Told to delete, and not yet answered."""
    deleted: frozenset[tuple[int, int]] = frozenset()
    failed: frozenset[tuple[int, int]] = frozenset()
    """Answered with an error: tried again when a broker comes back, not before."""


@dataclass(frozen=True, slots=True)
class ControllerState:
    view: ClusterView
    shutting_down: frozenset[int] = frozenset()
    """Brokers that are alive and asked for a controlled shutdown."""
    offline_dirs: Mapping[int, frozenset[TopicPartition]] = field(default_factory=dict)
    """Replicas whose disk failed, by broker."""
    deletions: Mapping[str, Deletion] = field(default_factory=dict)
    """Topics being deleted."""
    tree_reassignments: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """What is left of /admin/reassign_partitions."""


@dataclass(frozen=True, slots=True)
class Plan(Generic[T]):
    """What one event changes. To be committed in the order of the fields, then told to the brokers."""

    state: ControllerState
    """What holds once everything is committed."""
    containers: tuple[str, ...]
    """Nodes without data that must be there, created where missing; parents come first."""
    ops: tuple[Op, ...]
    """Each names the version it builds on, so none of them can be applied to anything but what was planned on."""
    removals: tuple[str, ...]
    """Nodes to be deleted with everything below them, where present."""
    requests: tuple[tuple[int, Request], ...]
    """(broker, request), in the order to be sent to each broker."""
    outcome: T
    """The answer to whoever asked."""
