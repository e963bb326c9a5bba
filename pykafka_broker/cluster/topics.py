"""Changes of topics, planned: Kafka's rules and messages, no I/O.

A plan takes the view and a wish and gives the store operations, the view after them and the outcome, or
raises KafkaError with the code and message Apache Kafka answers. Two deliberate deviations from Kafka 3.9 in
ZooKeeper mode, both as Kafka does in KRaft mode: an explicit assignment that is empty or names a broker
that is not there is refused (3.9 accepts it, and some such topics hang), and the size of one wish is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.placement import spread
from pykafka_broker.cluster.store import Create, Delete, SetData
from pykafka_broker.cluster.view import INTERNAL_TOPICS, NO_LEADER, PartitionInfo, TopicInfo
from pykafka_broker.cluster.znodes import PartitionState, TopicAssignment
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import random
    import uuid
    from collections.abc import Callable, Mapping, Sequence

    from pykafka_broker.cluster.store import Op
    from pykafka_broker.cluster.view import ClusterView

T = TypeVar("T")

MAX_NAME_LENGTH = 249
MAX_PARTITIONS_PER_REQUEST = 10_000
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What the broker's configuration decides about new topics."""

    num_partitions: int
    replication_factor: int
    validate_config: Callable[[Mapping[str, str]], None]
    """Raises KafkaError INVALID_CONFIG for a name or a value that is no topic config, or for two that do not agree."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    """Explicit (partition, replicas); then both counts stay -1."""
    config: Mapping[str, str | None] = field(default_factory=dict)
    topic_id: uuid.UUID | None = None
    """An id it had before, for a topic that is found on disk; None for a fresh one."""
    leader_epoch: int = 0
    """Where its leaders' epochs begin: above those that wrote what is found on disk."""


@dataclass(frozen=True, slots=True)
class MorePartitions:
    topic: str
    count: int
    """Partitions in all, not in addition."""
    assignments: Sequence[Sequence[int]] | None = None
    """Replicas of each partition to add, or None to let the cluster choose."""


@dataclass(frozen=True, slots=True)
class Plan(Generic[T]):
    ops: tuple[Op, ...]
    view: ClusterView
    outcome: T


def _refuse(code: ErrorCode, message: str | None = None) -> NoReturn:
    raise KafkaError(code, message)


def validate_name(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION unless Kafka would accept the name."""
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        problem = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL_NAME.fullmatch(name):
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return
    _refuse(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def plan_create_topic(
    view: ClusterView, new: NewTopic, rules: TopicRules, rng: random.Random, topic_id: uuid.UUID
) -> Plan[TopicInfo]:
    name = new.name
    validate_name(name)
    _refuse_collision(view, name)
    if name in view.topics:
        _refuse(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if nulls := [key for key, value in new.config.items() if value is None]:
        _refuse(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}"
        )  # fmt: skip
    config = {key: value for key, value in new.config.items() if value is not None}
    rules.validate_config(config)
    if new.assignments and (new.num_partitions != -1 or new.replication_factor != -1):
        _refuse(
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time.",
        )
    replicas = _explicit(view, new) if new.assignments else _placed(view, new, rules, rng)
    topic = TopicInfo(
        name=name,
        topic_id=topic_id,
        partitions=tuple(
            replace(_first_state(view, replicas[p]), leader_epoch=new.leader_epoch) for p in sorted(replicas)
        ),
        config=MappingProxyType(config),
        is_internal=name in INTERNAL_TOPICS,
    )
    ops: list[Op] = [
        Create(znodes.topic_config_path(name), znodes.encode_config(config)),
        Create(znodes.topic_path(name), assignment_of(topic).encode()),
        Create(znodes.partitions_path(name)),
        *_create_states(view, topic, 0),
    ]
    return Plan(tuple(ops), view.with_topics([topic]), topic)


def plan_create_partitions(view: ClusterView, wish: MorePartitions) -> Plan[TopicInfo]:
    topic = _existing(view, wish.topic)
    have = len(topic.partitions)
    if wish.count < have:
        _refuse(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {have} partitions, which is higher than the requested {wish.count}.",
        )
    if wish.count == have:
        _refuse(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partitions.")
    _bound_partitions(view, wish.count - have)
    if wish.assignments is None:
        added = _placed_after(view, topic, range(have, wish.count))
    else:
        added = _explicit_after(view, topic, wish.count - have, wish.assignments)
    grown = replace(
        topic,
        partitions=topic.partitions + tuple(_first_state(view, added[p]) for p in sorted(added)),
        version=topic.version + 1,
    )
    ops = (
        SetData(znodes.topic_path(topic.name), assignment_of(grown).encode(), topic.version),
        *_create_states(view, grown, have),
    )
    return Plan(ops, view.with_topics([grown]), grown)


def plan_delete_topic(view: ClusterView, target: str | uuid.UUID) -> Plan[TopicInfo]:
    """Removes the topic by name or id; children go before their parents."""
    if isinstance(target, str):
        topic = view.topics.get(target)
        if topic is None:
            _refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    else:
        topic = view.topics_by_id.get(target)
        if topic is None:
            _refuse(ErrorCode.UNKNOWN_TOPIC_ID)
    name = topic.name
    ops: list[Op] = []
    for partition in range(len(topic.partitions)):
        ops.append(Delete(znodes.partition_state_path(name, partition)))
        ops.append(Delete(znodes.partition_path(name, partition)))
    ops.append(Delete(znodes.partitions_path(name)))
    ops.append(Delete(znodes.topic_path(name)))
    ops.append(Delete(znodes.topic_config_path(name)))
    return Plan(tuple(ops), view.with_topics(removed=[name]), topic)


def plan_topic_config(
    view: ClusterView,
    name: str,
    change: Callable[[Mapping[str, str]], Mapping[str, str]],
    rules: TopicRules,
) -> Plan[TopicInfo]:
    """`change` turns what is set now into what shall be set; both hold overrides only."""
    config = dict(change(view.topics[name].config if name in view.topics else {}))
    if not name:
        _refuse(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    validate_name(name)
    rules.validate_config(config)
    topic = _existing(view, name)
    changed = replace(topic, config=MappingProxyType(config))
    ops = (
        SetData(znodes.topic_config_path(name), znodes.encode_config(config)),
        Create(znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change(f"topics/{name}"), sequence=True),
    )
    return Plan(ops, view.with_topics([changed]), changed)


def plan_broker_config(
    view: ClusterView, broker_id: int | None, change: Callable[[Mapping[str, str]], Mapping[str, str]]
) -> Plan[Mapping[str, str]]:
    """Sets the dynamic config of one broker, or with None the default of all."""
    config = MappingProxyType(dict(change(view.broker_configs.get(broker_id, {}))))
    path, data = znodes.broker_config_path(broker_id), znodes.encode_config(config)
    entity = path.removeprefix("/config/")
    ops = (
        SetData(path, data) if broker_id in view.broker_configs else Create(path, data),
        Create(znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change(entity), sequence=True),
    )
    return Plan(ops, view.with_broker_config(broker_id, config), config)


def _existing(view: ClusterView, name: str) -> TopicInfo:
    topic = view.topics.get(name)
    if topic is None:
        _refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return topic


def _refuse_collision(view: ClusterView, name: str) -> None:
    """Metric names turn '.' into '_', so two topics must not differ in that alone."""
    if "." not in name and "_" not in name:
        return
    flat = name.replace(".", "_")
    if colliding := [other for other in view.topics if other != name and other.replace(".", "_") == flat]:
        _refuse(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topics: {', '.join(colliding)}",
        )


def refuse_so_many(_: ClusterView) -> NoReturn:
    _refuse(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _bound_partitions(view: ClusterView, count: int) -> None:
    if count > MAX_PARTITIONS_PER_REQUEST:
        refuse_so_many(view)


def _placed(
    view: ClusterView, new: NewTopic, rules: TopicRules, rng: random.Random
) -> dict[int, tuple[int, ...]]:
    partitions = rules.num_partitions if new.num_partitions == -1 else new.num_partitions
    factor = rules.replication_factor if new.replication_factor == -1 else new.replication_factor
    if factor <= 0:
        _refuse(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if partitions <= 0:
        _refuse(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    _check_factor(view, factor)
    _bound_partitions(view, partitions)
    start, shift = rng.randrange(len(view.brokers)), rng.randrange(len(view.brokers))
    return spread(_racks(view), range(partitions), factor, start, shift)


def _placed_after(view: ClusterView, topic: TopicInfo, added: range) -> dict[int, tuple[int, ...]]:
    """Continues the round where partition 0 began it."""
    first = topic.partitions[0].replicas
    _check_factor(view, len(first))
    start = next((i for i, broker in enumerate(sorted(view.brokers)) if broker >= first[0]), 0)
    return spread(_racks(view), added, len(first), start, start)


def _check_factor(view: ClusterView, factor: int) -> None:
    if factor > len(view.brokers):
        _refuse(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {factor} larger than available brokers: {len(view.brokers)}.",
        )


def _racks(view: ClusterView) -> dict[int, str | None]:
    return {broker.id: broker.rack for broker in view.brokers.values()}


def _explicit(view: ClusterView, new: NewTopic) -> dict[int, tuple[int, ...]]:
    replicas = {partition: tuple(ids) for partition, ids in new.assignments}
    if len(replicas) < len(new.assignments):
        _refuse_assignment("Found multiple manual partition assignments for one partition.")
    _bound_partitions(view, len(replicas))
    if len({len(ids) for ids in replicas.values()}) > 1:
        _refuse_assignment("All partitions should have the same number of replicas")
    if sorted(replicas) != list(range(len(replicas))):
        _refuse_assignment("partitions should be a consecutive 0-based integer sequence")
    _check_replicas(view, replicas)
    return replicas


def _explicit_after(
    view: ClusterView, topic: TopicInfo, wanted: int, assignments: Sequence[Sequence[int]]
) -> dict[int, tuple[int, ...]]:
    if len(assignments) != wanted:
        _refuse_assignment(
            f"Increasing the number of partitions by {wanted} but {len(assignments)} assignments provided."
        )
    have = len(topic.partitions)
    replicas = {have + i: tuple(ids) for i, ids in enumerate(assignments)}
    _check_replicas(view, replicas)
    factor = len(topic.partitions[0].replicas)
    if odd := {p: len(ids) for p, ids in replicas.items() if len(ids) != factor}:
        _refuse_assignment(
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions "
            f"[{', '.join(map(str, odd))}] have replication factors "
            f"[{', '.join(map(str, odd.values()))}], respectively."
        )
    return replicas


def _check_replicas(view: ClusterView, replicas: Mapping[int, tuple[int, ...]]) -> None:
    unknown = sorted({broker for ids in replicas.values() for broker in ids} - view.brokers.keys())
    if unknown:
        _refuse_assignment(f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}.")
    for partition, ids in replicas.items():
        if not ids:
            _refuse_assignment(f"Cannot have replication factor of 0 for partition id {partition}.")
        if len(set(ids)) < len(ids):
            _refuse_assignment(
                "Duplicate brokers not allowed in replica assignment: "
                f"{', '.join(map(str, ids))} for partition id {partition}."
            )


def _refuse_assignment(message: str) -> NoReturn:
    _refuse(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _first_state(view: ClusterView, replicas: tuple[int, ...]) -> PartitionInfo:
    live = tuple(broker for broker in replicas if broker in view.brokers)
    return PartitionInfo(leader=live[0] if live else NO_LEADER, leader_epoch=0, isr=live, replicas=replicas)


def assignment_of(topic: TopicInfo) -> TopicAssignment:
    """What the node of the topic holds."""
    numbered = list(enumerate(topic.partitions))
    return TopicAssignment(
        topic.topic_id,
        {n: p.replicas for n, p in numbered},
        {n: p.adding for n, p in numbered if p.adding},
        {n: p.removing for n, p in numbered if p.removing},
    )


def _create_states(view: ClusterView, topic: TopicInfo, first: int) -> list[Op]:
    ops: list[Op] = []
    for number, p in enumerate(topic.partitions[first:], first):
        state = PartitionState(p.leader, p.leader_epoch, p.isr, view.controller_epoch)
        ops.append(Create(znodes.partition_path(topic.name, number)))
        ops.append(Create(znodes.partition_state_path(topic.name, number), state.encode()))
    return ops
