"""One event in, one plan out: the whole of the controller's judgement, without I/O."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.config_changes import ConfigChanged
from pykafka_broker.cluster.controller import deletion, election, events, isr, leaders, reassignment
from pykafka_broker.cluster.controller.draft import Draft
from pykafka_broker.cluster.controller.state import ControllerState
from pykafka_broker.cluster.store import Op
from pykafka_broker.cluster.topics import assignment_of
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pykafka_broker.cluster.controller.requests import TopicPartition
    from pykafka_broker.cluster.controller.state import ControllerSettings, Plan
    from pykafka_broker.cluster.view import BrokerInfo, ClusterView


def plan(state: ControllerState, event: events.Event, settings: ControllerSettings) -> Plan[Any]:
    """KafkaError where the event is a request that is refused as a whole; then nothing changes.

    Outcomes: AlterPartition the new state or a KafkaError by key; ElectLeaders the new leader or a KafkaError by
    partition; ControlledShutdown the partitions still led; AlterReassignments None or a KafkaError by partition;
    ListReassignments the PartitionInfo by partition; ChangeTopics the outcome of each plan or a KafkaError by
    key; DeleteTopics the TopicInfo or a KafkaError by target; None for everything else.
    """
    if isinstance(event, events.TookOver):
        draft = Draft(_carried_over(state, event.view), settings)
        took_over(draft, event, _bounced(state.view, event.view))
        return draft.finish(None)
    draft = Draft(state, settings)
    return draft.finish(_HANDLERS[type(event)](draft, event))


def _carried_over(state: ControllerState, view: ClusterView) -> ControllerState:
    """What stays true of brokers that are still the same, if this controller has only read the tree again."""
    if state.view.controller_epoch != view.controller_epoch:
        return ControllerState(view)
    same = (view.brokers.keys() & state.view.brokers.keys()) - _bounced(state.view, view)
    dirs = {b: lost for b, lost in state.offline_dirs.items() if b in same}
    return ControllerState(view, state.shutting_down & same, MappingProxyType(dirs))


def _bounced(old: ClusterView, new: ClusterView) -> set[int]:
    """Brokers that went and came back unseen."""
    if old.controller_epoch != new.controller_epoch:
        return set()
    both = old.brokers.keys() & new.brokers.keys()
    return {b for b in both if old.brokers[b].epoch != new.brokers[b].epoch}


def took_over(draft: Draft, event: events.TookOver, bounced: Collection[int]) -> None:
    """Nothing is known of what brokers were told: everybody is told everything."""
    draft.removals |= dict.fromkeys(event.notifications)
    draft.outbox.announce_brokers()
    deletion.ask(draft, event.deletions)
    gone = {r for _, p in draft.partitions() for r in p.replicas if r not in draft.brokers}.union(bounced)
    for tp, p in draft.partitions():
        shrunk = election.drop(p, gone, bounced)
        if shrunk is not p:
            draft.put(tp, shrunk)
    leaders.settle(draft, draft.partitions())
    for tp, p in draft.partitions():
        draft.outbox.tell_everybody(tp)
        if p.isr:
            draft.outbox.host(tp, draft.serving(tp, p))
    reassignment.asked_in_tree(draft, event.reassignments)
    reassignment.resume(draft)
    if event.preferred_elections is not None:
        preferred_elections_asked(draft, events.PreferredElectionsAsked(event.preferred_elections))


def brokers_changed(draft: Draft, event: events.BrokersChanged) -> None:
    """A broker with a new epoch died and came back: it leaves ISRs and gets its partitions anew."""
    old, new = draft.brokers, dict(event.brokers)
    bounced = {b for b in old.keys() & new.keys() if old[b].epoch != new[b].epoch}
    gone = (old.keys() - new.keys()) | bounced
    arrived = (new.keys() - old.keys()) | bounced
    draft.brokers = new
    if not gone and not arrived:
        if any(_address(old[b]) != _address(new[b]) for b in new):
            draft.outbox.announce_brokers()
        return
    for broker in gone | arrived:
        draft.shutting_down.discard(broker)
        draft.offline_dirs.pop(broker, None)
    draft.outbox.announce_brokers(arrived)
    _lose_brokers(draft, gone, bounced)
    if arrived:
        for tp, p in draft.partitions():
            if p.isr:
                draft.outbox.host(tp, [r for r in p.replicas if r in arrived])
            if not arrived.isdisjoint(p.replicas):
                draft.outbox.tell_everybody(tp)
        reassignment.resume(draft, arrived)
    deletion.lose(draft, gone)
    if arrived:
        deletion.resume(draft)


def _address(broker: BrokerInfo) -> tuple[Mapping[str, tuple[str, int]], str | None]:
    return broker.endpoints, broker.rack


def _lose_brokers(draft: Draft, gone: Collection[int], back: Collection[int]) -> None:
    """Where a replica is lost that was not in the ISR nothing changes in the tree, but the leader is told all the same:
    it may be waiting for that replica, which kept up, and has to look again."""
    lost: dict[TopicPartition, bool] = {}
    for tp, p in draft.partitions():
        if any(r in gone for r in p.replicas):
            draft.outbox.tell_everybody(tp)
            dropped = election.drop(p, gone, back)
            lost[tp] = dropped is not p
            if lost[tp]:
                draft.put(tp, dropped)
    leaders.settle(draft, draft.partitions())
    for tp, shrunk in lost.items():
        now = draft.partition(tp)
        if now is not None:
            serving = draft.serving(tp, now)
            draft.outbox.host(tp, serving if shrunk else [r for r in serving if r == now.leader])


def topics_changed(draft: Draft, event: events.TopicsChanged) -> None:
    for name in event.vanished:
        draft.deletions.pop(name, None)
    known = draft.view.topics
    draft.adopt_topics(event.created, [name for name in event.vanished if name in known])
    for topic in event.created:
        _start(draft, [tp for tp, _ in draft.partitions_of(topic.name)])


def _start(draft: Draft, partitions: Collection[TopicPartition]) -> None:
    """New partitions get their first leaders; those that came with one are told about it."""
    found = [(tp, p) for tp in partitions if (p := draft.partition(tp)) is not None]
    leaders.settle(draft, found)
    for tp, p in found:
        if p.isr:
            draft.outbox.tell_everybody(tp)
            draft.outbox.host(tp, draft.serving(tp, p), is_new=True)


def topic_changed(draft: Draft, event: events.TopicChanged) -> None:
    """Only partitions may be added from outside; assignments of those that are known are ours to change."""
    known = draft.view.topics.get(event.topic.name)
    if known is None or known.topic_id != event.topic.topic_id:
        return  # the change of the list of topics, which is on its way, tells it whole
    name, added = known.name, event.topic.partitions[len(known.partitions) :]
    if added and name in draft.deletions:
        restored = replace(known, version=event.topic.version + 1)
        draft.write(znodes.topic_path(name), assignment_of(known).encode(), event.topic.version)
        draft.adopt_topics([restored])
        return
    grown = replace(known, partitions=known.partitions + added, version=event.topic.version)
    draft.adopt_topics([grown])
    _start(draft, [(name, n) for n in range(len(known.partitions), len(grown.partitions))])


def change_topics(draft: Draft, event: events.ChangeTopics) -> dict[Any, Any]:
    staying = {b: info for b, info in draft.brokers.items() if b not in draft.shutting_down}
    before = draft.view
    view, ops, outcome = before.with_brokers(staying), list[Op](), dict[Any, Any]()
    for key, wish in event.plans.items():
        try:
            planned = wish(view)
        except KafkaError as error:
            outcome[key] = error
        else:
            view = planned.view
            ops.extend(planned.ops)
            outcome[key] = planned.outcome
    if ops and not event.validate_only:
        draft.adopt_plan(ops, view)
        for name, topic in view.topics.items():
            old = before.topics.get(name)
            if topic is not old:
                first = 0 if old is None else len(old.partitions)
                _start(draft, [(name, n) for n in range(first, len(topic.partitions))])
        if view.broker_configs is not before.broker_configs:
            leaders.settle(draft, draft.partitions())
    return outcome


def config_changed(draft: Draft, event: ConfigChanged) -> None:
    """It may now be allowed to elect leaders from outside the ISR."""
    if event.topic is None:
        draft.set_broker_config(event.broker, event.config)
        leaders.settle(draft, draft.partitions())
    elif event.topic in draft.view.topics:
        topic = draft.view.topics[event.topic]
        draft.adopt_topics([replace(topic, config=MappingProxyType(dict(event.config)))])
        if event.topic not in draft.deletions:
            leaders.settle(draft, draft.partitions_of(event.topic))


def deletions_asked(draft: Draft, event: events.DeletionsAsked) -> None:
    deletion.ask(draft, event.topics)


def reassignments_asked(draft: Draft, event: events.ReassignmentsAsked) -> None:
    reassignment.asked_in_tree(draft, event.reassignments)


def preferred_elections_asked(draft: Draft, event: events.PreferredElectionsAsked) -> None:
    leaders.elect_leaders(draft, events.ElectionType.PREFERRED, event.partitions)
    draft.removals[znodes.PREFERRED_REPLICA_ELECTION] = None


def isr_notified(draft: Draft, event: events.IsrNotified) -> None:
    draft.removals |= dict.fromkeys(event.notifications)
    for tp, found in event.partitions.items():
        p = draft.partition(tp)
        if p is not None and found.partition_epoch > p.partition_epoch:
            draft.adopt_state(tp, found)
            reassignment.advance(draft, tp)


def log_dirs_failed(draft: Draft, event: events.LogDirsFailed) -> None:
    """Which replicas are lost, the answers to LeaderAndIsr will tell."""
    draft.removals |= dict.fromkeys(event.notifications)
    for tp, p in draft.partitions():
        if p.isr:
            draft.outbox.host(tp, [r for r in p.replicas if r in event.brokers])


def leader_and_isr_answered(draft: Draft, event: events.LeaderAndIsrAnswered) -> None:
    broker, errors = event.broker, event.response.partitions
    if _is_stale(draft, broker, event.broker_epoch) or event.response.error is not ErrorCode.NONE:
        return
    before = draft.offline_dirs.get(broker, frozenset())
    lost = {tp for tp, error in errors.items() if error is ErrorCode.KAFKA_STORAGE_ERROR}
    found = {tp for tp, error in errors.items() if error is ErrorCode.NONE}
    now = (before - found) | lost
    draft.offline_dirs[broker] = now
    for tp in now - before:
        p = draft.partition(tp)
        if p is None or tp[0] in draft.deletions or broker not in p.replicas:
            continue
        draft.outbox.tell_everybody(tp)
        dropped = election.drop(p, [broker])
        if dropped is not p:
            draft.put(tp, dropped)
            leaders.settle(draft, [(tp, dropped)])
            draft.outbox.host(tp, draft.online(tp, dropped))


def stop_replica_answered(draft: Draft, event: events.StopReplicaAnswered) -> None:
    if not _is_stale(draft, event.broker, event.broker_epoch):
        deletion.answered(draft, event.broker, event.response.error, event.response.partitions)


def _is_stale(draft: Draft, broker: int, epoch: int) -> bool:
    known = draft.brokers.get(broker)
    return known is None or known.epoch != epoch


_HANDLERS: Mapping[type[Any], Callable[[Draft, Any], Any]] = {
    events.BrokersChanged: brokers_changed,
    events.TopicsChanged: topics_changed,
    events.TopicChanged: topic_changed,
    ConfigChanged: config_changed,
    events.DeletionsAsked: deletions_asked,
    events.ReassignmentsAsked: reassignments_asked,
    events.PreferredElectionsAsked: preferred_elections_asked,
    events.IsrNotified: isr_notified,
    events.LogDirsFailed: log_dirs_failed,
    events.LeaderAndIsrAnswered: leader_and_isr_answered,
    events.StopReplicaAnswered: stop_replica_answered,
    events.AlterPartition: lambda d, e: isr.alter(d, e.broker, e.broker_epoch, e.version, e.wishes),
    events.ElectLeaders: lambda d, e: leaders.elect_leaders(d, e.type, e.partitions),
    events.BalanceLeaders: lambda d, _: leaders.balance(d),
    events.ControlledShutdown: lambda d, e: leaders.shut_down(d, e.broker, e.broker_epoch),
    events.AlterReassignments: lambda d, e: reassignment.alter(d, e.wishes, e.keep_size),
    events.ChangeTopics: change_topics,
    events.DeleteTopics: lambda d, e: {target: deletion.wish(d, target) for target in e.targets},
    events.ListReassignments: lambda d, e: reassignment.in_progress(d, e.partitions),
}
