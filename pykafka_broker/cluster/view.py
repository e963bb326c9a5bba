"""The cluster as one immutable image, and how it is read from the store.

A change makes a new view that shares every part it did not touch, so whoever holds a view holds a
consistent picture for as long as they like.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.znodes import BrokerRegistration, PartitionState, TopicAssignment

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping, Sequence

    from pykafka_broker.cluster.store import Node, Store

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
NO_LEADER = -1
NO_CONTROLLER = -1


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    id: int
    endpoints: Mapping[str, tuple[str, int]]
    """(host, port) by listener name."""
    rack: str | None
    epoch: int
    """Grows with every registration: the zxid that created the node."""
    security: Mapping[str, str] = field(default_factory=dict)
    """Security protocol by listener name."""


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int = 0
    """Version of the state node, -1 while there is none; it fences changes of the ISR."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False
    """The leader was elected from outside the ISR and has not yet said that it recovered."""
    offline: tuple[int, ...] = ()
    """Replicas that cannot be reached, as far as the controller told."""


@dataclass(frozen=True, slots=True)
class TopicInfo:
    name: str
    topic_id: uuid.UUID
    partitions: tuple[PartitionInfo, ...]
    """By partition number, which is dense from 0."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Only what was set for this topic, not the defaults."""
    version: int = 0
    """Version of the topic node."""
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class ClusterView:
    cluster_id: str
    controller_id: int = NO_CONTROLLER
    controller_epoch: int = 0
    brokers: Mapping[int, BrokerInfo] = field(default_factory=dict)
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)
    topics_by_id: Mapping[uuid.UUID, TopicInfo] = field(default_factory=dict)
    broker_configs: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    """Dynamic broker configs by broker id; None is the cluster-wide default."""

    def partition(self, topic: str, index: int) -> PartitionInfo | None:
        info = self.topics.get(topic)
        return info.partitions[index] if info is not None and 0 <= index < len(info.partitions) else None

    def with_topics(self, changed: Iterable[TopicInfo] = (), removed: Iterable[str] = ()) -> ClusterView:
        """The view with topics added or replaced, and others gone."""
        topics, by_id = dict(self.topics), dict(self.topics_by_id)
        for name in removed:
            del by_id[topics.pop(name).topic_id]
        for topic in changed:
            old = topics.get(topic.name)
            if old is not None:
                del by_id[old.topic_id]
            topics[topic.name] = by_id[topic.topic_id] = topic
        return replace(self, topics=MappingProxyType(topics), topics_by_id=MappingProxyType(by_id))

    def with_brokers(self, brokers: Mapping[int, BrokerInfo]) -> ClusterView:
        """The view with exactly these brokers alive."""
        return replace(self, brokers=MappingProxyType(dict(brokers)))

    def with_broker(self, broker: BrokerInfo) -> ClusterView:
        return replace(self, brokers=MappingProxyType({**self.brokers, broker.id: broker}))

    def with_broker_config(self, broker_id: int | None, config: Mapping[str, str]) -> ClusterView:
        return replace(self, broker_configs=MappingProxyType({**self.broker_configs, broker_id: config}))


def broker_info(registration: BrokerRegistration, epoch: int) -> BrokerInfo:
    endpoints = {e.listener: (e.host, e.port) for e in registration.endpoints}
    security = {e.listener: e.security_protocol for e in registration.endpoints}
    return BrokerInfo(
        registration.broker_id,
        MappingProxyType(endpoints),
        registration.rack,
        epoch,
        MappingProxyType(security),
    )


async def load_view(store: Store) -> ClusterView:
    """Reads the whole tree in a handful of trips, whatever the number of topics and partitions."""
    cluster_id, controller, epoch = await store.get_many(
        [znodes.CLUSTER_ID, znodes.CONTROLLER, znodes.CONTROLLER_EPOCH]
    )
    if cluster_id is None:
        raise ValueError(f"{znodes.CLUSTER_ID} is missing: the tree was never set up")
    view = ClusterView(
        cluster_id=znodes.decode_cluster_id(cluster_id.data),
        controller_id=NO_CONTROLLER if controller is None else znodes.decode_controller(controller.data),
        controller_epoch=0 if epoch is None else int(epoch.data),
        brokers=MappingProxyType(await load_brokers(store)),
        broker_configs=MappingProxyType(await _load_broker_configs(store)),
    )
    return view.with_topics(await load_topics(store, await store.children(znodes.TOPICS)))


async def load_brokers(store: Store) -> dict[int, BrokerInfo]:
    ids = sorted(int(name) for name in await store.children(znodes.BROKER_IDS))
    nodes = await store.get_many([znodes.broker_id_path(broker_id) for broker_id in ids])
    return {
        broker_id: broker_info(BrokerRegistration.decode(broker_id, node.data), node.czxid)
        for broker_id, node in zip(ids, nodes, strict=True)
        if node is not None
    }


async def _load_broker_configs(store: Store) -> dict[int | None, Mapping[str, str]]:
    names = await store.children(znodes.CONFIG_BROKERS)
    nodes = await store.get_many([f"{znodes.CONFIG_BROKERS}/{name}" for name in names])
    return {
        None if name == znodes.DEFAULT_ENTITY else int(name): _config(node)
        for name, node in zip(names, nodes, strict=True)
    }


async def load_topics(store: Store, names: Sequence[str]) -> list[TopicInfo]:
    """The topics of these names, in a handful of trips; those that are not there are left out."""
    nodes = await store.get_many([znodes.topic_path(name) for name in names])
    # A topic deleted between the two trips is simply not there.
    found = {
        n: (TopicAssignment.decode(node.data), node) for n, node in zip(names, nodes, strict=True) if node
    }
    configs = await load_topic_configs(store, list(found))
    states = iter(
        await store.get_many(
            [
                znodes.partition_state_path(name, partition)
                for name, (assignment, _) in found.items()
                for partition in assignment.replicas
            ]
        )
    )
    return [
        TopicInfo(
            name=name,
            topic_id=assignment.topic_id,
            partitions=tuple(_partition(assignment, p, next(states)) for p in assignment.replicas),
            config=config,
            version=node.version,
            is_internal=name in INTERNAL_TOPICS,
        )
        for (name, (assignment, node)), config in zip(found.items(), configs, strict=True)
    ]


async def load_topic_configs(store: Store, names: Sequence[str]) -> list[Mapping[str, str]]:
    return [
        _config(node) for node in await store.get_many([znodes.topic_config_path(name) for name in names])
    ]


def _partition(assignment: TopicAssignment, partition: int, node: Node | None) -> PartitionInfo:
    replicas = assignment.replicas[partition]
    adding, removing = assignment.adding.get(partition, ()), assignment.removing.get(partition, ())
    if node is None:
        return PartitionInfo(NO_LEADER, 0, (), replicas, -1, adding, removing)
    state = PartitionState.decode(node.data)
    return PartitionInfo(
        state.leader, state.leader_epoch, state.isr, replicas, node.version, adding, removing, state.recovering
    )  # fmt: skip


def _config(node: Node | None) -> Mapping[str, str]:
    return MappingProxyType(znodes.decode_config(node.data) if node is not None and node.data else {})
