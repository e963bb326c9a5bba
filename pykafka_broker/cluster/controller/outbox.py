"""Requests of one plan, gathered by broker and built from the state that the plan ends in."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from pykafka_broker.cluster.controller.requests import (
    LEADER_DURING_DELETE,
    HostedPartition,
    KnownPartition,
    LeaderAndIsr,
    StoppedPartition,
    StopReplica,
    UpdateMetadata,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafka_broker.cluster.controller.requests import Request, TopicPartition
    from pykafka_broker.cluster.controller.state import ControllerState


class Outbox:
    """Owned by one Draft.

    A broker gets, in this order: who is alive, if that changed (a follower needs its leader's address before it
    can follow); its partitions; what everybody hears about partitions; what it must stop.
    """

    def __init__(self) -> None:
        self._hosted: dict[int, dict[TopicPartition, bool]] = defaultdict(dict)
        self._known: dict[TopicPartition, None] = {}
        self._stopped: dict[int, dict[TopicPartition, bool]] = defaultdict(dict)
        self._brokers_changed = False
        self._newcomers: set[int] = set()

    def host(self, tp: TopicPartition, brokers: Iterable[int], is_new: bool = False) -> None:
        """Tells brokers to lead or follow; a replica that is new stays so."""
        for broker in brokers:
            hosted = self._hosted[broker]
            hosted[tp] = hosted.get(tp, False) or is_new

    def stop(self, tp: TopicPartition, brokers: Iterable[int], delete: bool) -> None:
        for broker in brokers:
            stopped = self._stopped[broker]
            stopped[tp] = stopped.get(tp, False) or delete

    def tell_everybody(self, *partitions: TopicPartition) -> None:
        self._known |= dict.fromkeys(partitions)

    def announce_brokers(self, newcomers: Iterable[int] = ()) -> None:
        """Everybody hears who is alive; newcomers hear of all partitions too."""
        self._brokers_changed = True
        self._newcomers |= set(newcomers)

    def requests(self, state: ControllerState) -> tuple[tuple[int, Request], ...]:
        view = state.view
        alive = tuple(view.brokers.values())
        blank = UpdateMetadata(view.controller_id, view.controller_epoch, -1, (), alive)
        changed = replace(blank, partitions=_known_partitions(state, self._known))
        everything = blank
        if self._newcomers:
            of_all = ((t.name, n) for t in view.topics.values() for n in range(len(t.partitions)))
            live = [tp for tp in of_all if tp[0] not in state.deletions or tp in self._known]
            everything = replace(blank, partitions=_known_partitions(state, live))
        out: list[tuple[int, Request]] = []
        for broker in alive:
            if self._brokers_changed:
                greeting = everything if broker.id in self._newcomers else blank
                out.append((broker.id, replace(greeting, broker_epoch=broker.epoch)))
            if hosted := self._leader_and_isr(state, broker.id):
                out.append((broker.id, hosted))
            if changed.partitions and broker.id not in self._newcomers:
                out.append((broker.id, replace(changed, broker_epoch=broker.epoch)))
            if stopped := self._stop_replica(state, broker.id):
                out.append((broker.id, stopped))
        return tuple(out)

    def _leader_and_isr(self, state: ControllerState, broker: int) -> LeaderAndIsr | None:
        view = state.view
        partitions = []
        for (topic, number), is_new in self._hosted.get(broker, {}).items():
            info = view.topics[topic]
            partitions.append(
                HostedPartition(topic, info.topic_id, number, info.partitions[number], is_new)
            )  # fmt: skip
        if not partitions:
            return None
        leaders = {p.info.leader for p in partitions}
        return LeaderAndIsr(
            view.controller_id,
            view.controller_epoch,
            view.brokers[broker].epoch,
            tuple(partitions),
            tuple(b for b in view.brokers.values() if b.id in leaders),
        )

    def _stop_replica(self, state: ControllerState, broker: int) -> StopReplica | None:
        view = state.view
        stopped = tuple(
            StoppedPartition(topic, number, _epoch_to_stop(state, topic, number), delete)
            for (topic, number), delete in self._stopped.get(broker, {}).items()
        )
        if not stopped:
            return None
        return StopReplica(view.controller_id, view.controller_epoch, view.brokers[broker].epoch, stopped)


def _epoch_to_stop(state: ControllerState, topic: str, number: int) -> int:
    if topic in state.deletions:
        return LEADER_DURING_DELETE
    info = state.view.partition(topic, number)
    return -1 if info is None else info.leader_epoch


def _known_partitions(
    state: ControllerState, partitions: Iterable[TopicPartition]
) -> tuple[KnownPartition, ...]:
    """Partitions that never had a leader are left out, and so are those that are gone by the end of the plan."""
    return tuple(known for tp in partitions if (known := _known_partition(state, tp)) is not None)


def _known_partition(state: ControllerState, tp: TopicPartition) -> KnownPartition | None:
    name, number = tp
    info = state.view.partition(name, number)
    if info is None or not info.isr:
        return None
    lost = state.offline_dirs
    offline = tuple(
        r
        for r in info.replicas
        if r not in state.view.brokers or r in state.shutting_down or tp in lost.get(r, ())
    )
    leader, epoch, version = info.leader, info.leader_epoch, info.partition_epoch
    if name in state.deletions:
        leader, epoch, version = LEADER_DURING_DELETE, 0, 0
    topic_id = state.view.topics[name].topic_id
    return KnownPartition(
        name, topic_id, number, leader, epoch, version, info.isr, info.replicas, offline
    )  # fmt: skip
