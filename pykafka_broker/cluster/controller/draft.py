"""A plan while it is being made: the state so far, and what is to be written and sent."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.controller.outbox import Outbox
from pykafka_broker.cluster.controller.state import ControllerState, Plan
from pykafka_broker.cluster.store import Create, SetData
from pykafka_broker.cluster.topics import assignment_of
from pykafka_broker.cluster.znodes import PartitionState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pykafka_broker.cluster.controller.requests import TopicPartition
    from pykafka_broker.cluster.controller.state import ControllerSettings, Deletion
    from pykafka_broker.cluster.store import Op
    from pykafka_broker.cluster.view import BrokerInfo, ClusterView, PartitionInfo, TopicInfo

T = TypeVar("T")
_UNCLEAN = "unclean.leader.election.enable"


@dataclass(slots=True)
class _Writes:
    containers: dict[str, None] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)


class Draft:
    """Owned by one call of `plan`. However often a partition changes, it is written and told once, as it ends up."""

    def __init__(self, state: ControllerState, settings: ControllerSettings) -> None:
        self.settings = settings
        self.brokers: dict[int, BrokerInfo] = dict(state.view.brokers)
        self.shutting_down = set(state.shutting_down)
        self.offline_dirs = dict(state.offline_dirs)
        self.deletions: dict[str, Deletion] = dict(state.deletions)
        self.tree_reassignments = dict(state.tree_reassignments)
        self.found_reassignments = state.tree_reassignments
        """What /admin/reassign_partitions holds, as far as known."""
        self.removals: dict[str, None] = {}
        self.outbox = Outbox()
        self._view = state.view
        self._changed: dict[TopicPartition, PartitionInfo] = {}
        self._writes = _Writes()

    @property
    def view(self) -> ClusterView:
        """The view with the topics as they were found; partitions may have changed since: ask `partition`."""
        return self._view

    def adopt_topics(self, topics: Sequence[TopicInfo] = (), removed: Collection[str] = ()) -> None:
        """Takes topics as they are in the tree, in place of what was known of them, and forgets those removed."""
        for tp in [tp for tp in self._changed if tp[0] in removed]:
            del self._changed[tp]
        self._view = self._view.with_topics(topics, removed)

    def partition(self, tp: TopicPartition) -> PartitionInfo | None:
        return self._changed.get(tp) or self._view.partition(*tp)

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionInfo]]:
        """All partitions of topics that are not being deleted; what changes on the way is seen."""
        for name in self._view.topics:
            if name not in self.deletions:
                yield from self.partitions_of(name)

    def partitions_of(self, topic: str) -> Iterator[tuple[TopicPartition, PartitionInfo]]:
        for number, info in enumerate(self._view.topics[topic].partitions):
            tp = (topic, number)
            yield tp, self._changed.get(tp, info)

    def put(self, tp: TopicPartition, info: PartitionInfo) -> None:
        """Changes a partition; all brokers hear of it."""
        self._changed[tp] = info
        self.outbox.tell_everybody(tp)

    def adopt_state(self, tp: TopicPartition, found: PartitionInfo) -> None:
        """Takes leader and ISR of a partition as they are in the tree; all brokers hear of it."""
        topic = self._view.topics[tp[0]]
        partitions = list(topic.partitions)
        known = partitions[tp[1]]
        partitions[tp[1]] = replace(
            found, replicas=known.replicas, adding=known.adding, removing=known.removing
        )  # fmt: skip
        self._changed.pop(tp, None)
        self._view = self._view.with_topics([replace(topic, partitions=tuple(partitions))])
        self.outbox.tell_everybody(tp)

    def set_broker_config(self, broker: int | None, config: Mapping[str, str]) -> None:
        self._view = self._view.with_broker_config(broker, MappingProxyType(dict(config)))

    def adopt_plan(self, ops: Sequence[Op], view: ClusterView) -> None:
        """Takes topics and configs as planned elsewhere, to be written with the rest."""
        self._writes.ops.extend(ops)
        self._view = replace(
            self._view,
            topics=view.topics,
            topics_by_id=view.topics_by_id,
            broker_configs=view.broker_configs,
        )

    def create(self, path: str) -> None:
        self._writes.ops.append(Create(path))

    def write(self, path: str, data: bytes, version: int) -> None:
        self._writes.ops.append(SetData(path, data, version))

    def is_online(self, tp: TopicPartition, broker: int) -> bool:
        """Alive, staying, and with the disk of this replica in order."""
        return broker not in self.shutting_down and self.is_serving(tp, broker)

    def is_serving(self, tp: TopicPartition, broker: int) -> bool:
        """As online, but a broker that shuts down in good order serves until it is gone."""
        return broker in self.brokers and tp not in self.offline_dirs.get(broker, ())

    def online(self, tp: TopicPartition, info: PartitionInfo) -> list[int]:
        return [r for r in info.replicas if self.is_online(tp, r)]

    def serving(self, tp: TopicPartition, info: PartitionInfo) -> list[int]:
        return [r for r in info.replicas if self.is_serving(tp, r)]

    def unclean_allowed(self, topic: str) -> bool:
        """The topic's own config, else the broker's dynamic one, else the cluster-wide one, else the file's."""
        configs = self._view.broker_configs
        for config in (
            self._view.topics[topic].config,
            configs.get(self.settings.broker_id, {}),
            configs.get(None, {}),
        ):
            if _UNCLEAN in config:
                return config[_UNCLEAN].lower() == "true"
        return self.settings.unclean_leader_election_enable

    def finish(self, outcome: T) -> Plan[T]:
        writes = self._writes
        by_topic: dict[str, dict[int, PartitionInfo]] = defaultdict(dict)
        for (topic, number), info in self._changed.items():
            by_topic[topic][number] = info
        topics = [self._write_topic(name, partitions, writes) for name, partitions in by_topic.items()]
        view = self._view.with_topics(topics).with_brokers(self.brokers)
        state = ControllerState(
            view=view,
            shutting_down=frozenset(self.shutting_down),
            offline_dirs=MappingProxyType({b: tps for b, tps in self.offline_dirs.items() if tps}),
            deletions=MappingProxyType(self.deletions),
            tree_reassignments=MappingProxyType(self.tree_reassignments),
        )
        if self.tree_reassignments != self.found_reassignments:
            self._write_tree_reassignments(writes)
        return Plan(
            state=state,
            containers=tuple(writes.containers),
            ops=tuple(writes.ops),
            removals=tuple(self.removals),
            requests=self.outbox.requests(state),
            outcome=outcome,
        )

    def _write_topic(self, name: str, changed: dict[int, PartitionInfo], writes: _Writes) -> TopicInfo:
        topic = self._view.topics[name]
        partitions = list(topic.partitions)
        for number, info in changed.items():
            old = partitions[number]
            partitions[number] = self._write_state(name, number, old, info, writes)
        result = replace(topic, partitions=tuple(partitions))
        if any(
            (p.replicas, p.adding, p.removing) != (q.replicas, q.adding, q.removing)
            for p, q in zip(topic.partitions, partitions, strict=True)
        ):
            data = assignment_of(result).encode()
            writes.ops.append(SetData(znodes.topic_path(name), data, topic.version))
            result = replace(result, version=topic.version + 1)
        return result

    def _write_state(
        self, topic: str, number: int, old: PartitionInfo, new: PartitionInfo, writes: _Writes
    ) -> PartitionInfo:
        """Writes leader and ISR if they differ, and answers the partition with the version that it then has."""
        if (old.leader, old.leader_epoch, old.isr, old.recovering) == (
            new.leader, new.leader_epoch, new.isr, new.recovering,
        ):  # fmt: skip
            return new
        epoch = self._view.controller_epoch
        data = PartitionState(new.leader, new.leader_epoch, new.isr, epoch, new.recovering).encode()
        path = znodes.partition_state_path(topic, number)
        if old.partition_epoch < 0:
            writes.containers[znodes.partitions_path(topic)] = None
            writes.containers[znodes.partition_path(topic, number)] = None
            writes.ops.append(Create(path, data))
        else:
            writes.ops.append(SetData(path, data, old.partition_epoch))
        return replace(new, partition_epoch=old.partition_epoch + 1)

    def _write_tree_reassignments(self, writes: _Writes) -> None:
        if self.tree_reassignments:
            data = znodes.encode_reassignments(self.tree_reassignments)
            writes.ops.append(SetData(znodes.REASSIGN_PARTITIONS, data))
        else:
            self.removals[znodes.REASSIGN_PARTITIONS] = None
