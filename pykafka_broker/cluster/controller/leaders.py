"""Elections over many partitions: after failures, on request, for balance and for a broker that shuts down."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pykafka_broker.cluster.controller import election, reassignment
from pykafka_broker.cluster.controller.events import ElectionType
from pykafka_broker.cluster.view import NO_LEADER
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pykafka_broker.cluster.controller.draft import Draft
    from pykafka_broker.cluster.controller.requests import TopicPartition
    from pykafka_broker.cluster.view import PartitionInfo

_NO_BROKER_EPOCH = -1


def settle(draft: Draft, partitions: Iterable[tuple[TopicPartition, PartitionInfo]]) -> None:
    """Gives a leader to each partition that has none, or never had one, as far as there is one to give."""
    for tp, p in partitions:
        if not p.isr:
            started = election.start(p, draft.online(tp, p))
            if started is not None:
                draft.put(tp, started)
                draft.outbox.host(tp, started.isr, is_new=True)
                reassignment.advance(draft, tp)
        elif _is_leaderless(draft, tp, p):
            online = draft.online(tp, p)
            elected = election.elect(p, online, draft.unclean_allowed(tp[0]))
            if elected is not None:
                draft.put(tp, elected)
                draft.outbox.host(tp, online)


def elect_leaders(
    draft: Draft, kind: ElectionType, asked: Sequence[TopicPartition] | None
) -> dict[TopicPartition, int | KafkaError]:
    """The new leader or the refusal by partition."""
    outcome: dict[TopicPartition, int | KafkaError] = {}
    for tp in [tp for tp, _ in draft.partitions()] if asked is None else asked:
        try:
            outcome[tp] = _elect_one(draft, kind, tp)
        except KafkaError as error:
            if asked is not None or error.code is not ErrorCode.ELECTION_NOT_NEEDED:
                outcome[tp] = error
    return outcome


def balance(draft: Draft) -> None:
    """Moves leaders back to the brokers that lead too few of the partitions they are preferred for."""
    preferred: dict[int, list[TopicPartition]] = defaultdict(list)
    led_by_others: dict[int, list[TopicPartition]] = defaultdict(list)
    for tp, p in draft.partitions():
        broker = p.replicas[0]
        preferred[broker].append(tp)
        if p.isr and p.leader != broker:
            led_by_others[broker].append(tp)
    allowed = draft.settings.leader_imbalance_per_broker_percentage / 100
    for broker, partitions in led_by_others.items():
        if len(partitions) / len(preferred[broker]) > allowed:
            for tp in partitions:
                _try_preferred(draft, tp)


def shut_down(draft: Draft, broker: int, broker_epoch: int) -> tuple[TopicPartition, ...]:
    """Moves leaders away and takes the broker out of ISRs; answers what it still leads with others waiting."""
    known = draft.brokers.get(broker)
    if known is None:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker} does not exist.")
    if broker_epoch not in (_NO_BROKER_EPOCH, known.epoch):
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    draft.shutting_down.add(broker)
    remaining = []
    for tp, p in draft.partitions():
        if broker not in p.replicas or len(p.replicas) == 1 or not p.isr:
            continue
        if p.leader == broker:
            moved = election.elect_without(p, draft.shutting_down, draft.serving(tp, p))
            if moved is None:
                remaining.append(tp)
                continue
            draft.put(tp, moved)
            draft.outbox.host(tp, draft.serving(tp, moved))
        else:
            draft.outbox.stop(tp, [broker], delete=False)
            draft.outbox.tell_everybody(tp)
            shrunk = election.drop(p, [broker])
            if shrunk is not p:
                draft.put(tp, shrunk)
                draft.outbox.host(tp, [r for r in draft.serving(tp, shrunk) if r != broker])
    return tuple(remaining)


def _is_leaderless(draft: Draft, tp: TopicPartition, p: PartitionInfo) -> bool:
    return p.leader == NO_LEADER or not draft.is_serving(tp, p.leader)


def _elect_one(draft: Draft, kind: ElectionType, tp: TopicPartition) -> int:
    p = draft.partition(tp)
    if p is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if tp[0] in draft.deletions:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
    if kind is ElectionType.PREFERRED:
        if p.leader == p.replicas[0]:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
        if not _try_preferred(draft, tp):
            raise KafkaError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                f"Failed to elect leader for partition {tp[0]}-{tp[1]} under strategy "
                "PreferredReplicaPartitionLeaderElectionStrategy",
            )
        return p.replicas[0]
    if not _is_leaderless(draft, tp, p):
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
    online = draft.online(tp, p)
    elected = election.elect(p, online, unclean=True) if p.isr else election.start(p, online)
    if elected is None:
        raise KafkaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"Failed to elect leader for partition {tp[0]}-{tp[1]} under strategy "
            "OfflinePartitionLeaderElectionStrategy(true)",
        )
    draft.put(tp, elected)
    draft.outbox.host(tp, online)
    return elected.leader


def _try_preferred(draft: Draft, tp: TopicPartition) -> bool:
    p = draft.partition(tp)
    assert p is not None
    elected = election.elect_preferred(p, draft.online(tp, p)) if p.isr else None
    if elected is None:
        return False
    draft.put(tp, elected)
    draft.outbox.host(tp, draft.serving(tp, p))
    return True
