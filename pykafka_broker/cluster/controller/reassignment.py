"""Moving partitions between brokers, as Kafka does it.

The assignment first grows to the target followed by what it was; `adding` and `removing` say what is new and what
shall go. When the whole target is in sync the assignment becomes the target, the leader moves into it, and the
replicas that go are deleted. The topic's node always tells how far that is, so another controller can carry on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from pykafka_broker.cluster.controller import election
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pykafka_broker.cluster.controller.draft import Draft
    from pykafka_broker.cluster.controller.requests import TopicPartition
    from pykafka_broker.cluster.view import PartitionInfo


def is_reassigning(p: PartitionInfo) -> bool:
    return bool(p.adding or p.removing)


def origin(p: PartitionInfo) -> tuple[int, ...]:
    return tuple(r for r in p.replicas if r not in p.adding)


def target(p: PartitionInfo) -> tuple[int, ...]:
    return tuple(r for r in p.replicas if r not in p.removing)


def towards(p: PartitionInfo, wanted: Sequence[int]) -> PartitionInfo:
    """The assignment on its way to the wanted one; what an earlier reassignment was adding is not part of it."""
    before = origin(p)
    replicas = tuple(dict.fromkeys((*wanted, *before)))
    return replace(
        p,
        replicas=replicas,
        adding=tuple(r for r in replicas if r not in before),
        removing=tuple(r for r in replicas if r not in wanted),
    )


def alter(
    draft: Draft, wishes: Mapping[TopicPartition, Sequence[int] | None], keep_size: bool = False
) -> dict[TopicPartition, KafkaError | None]:
    """AlterPartitionReassignments: where each partition shall go, None to cancel. None is the answer of success."""
    outcome: dict[TopicPartition, KafkaError | None] = {}
    for tp, wanted in wishes.items():
        try:
            p = _existing(draft, tp)
            if wanted is None:
                if not is_reassigning(p):
                    raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
                wanted = origin(p)
            else:
                _check_replicas(draft, p, wanted)
                if keep_size:
                    _check_size(p, wanted)
            # The latest wish wins over one that was left in the tree.
            draft.tree_reassignments.pop(tp, None)
            _begin(draft, tp, wanted)
            outcome[tp] = None
        except KafkaError as error:
            outcome[tp] = error
    return outcome


def asked_in_tree(draft: Draft, found: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    """The content of /admin/reassign_partitions; what cannot be done is taken out of it."""
    draft.found_reassignments = found
    draft.tree_reassignments = dict(found)
    for tp, wanted in found.items():
        p = draft.partition(tp)
        if p is not None and is_reassigning(p) and target(p) == wanted:
            continue
        try:
            if not wanted:
                raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
            _begin(draft, tp, wanted)
        except KafkaError:
            draft.tree_reassignments.pop(tp, None)


def advance(draft: Draft, tp: TopicPartition) -> bool:
    """Finishes the reassignment if its target is in sync; says whether it did."""
    p = draft.partition(tp)
    if p is None or not is_reassigning(p) or not _can_finish(draft, tp, p):
        return False
    _finish(draft, tp, p)
    return True


def resume(draft: Draft, arrived: Collection[int] | None = None) -> None:
    """Carries on with what a broker of the target may have held up; None for all that are under way."""
    for tp, p in list(draft.partitions()):
        concerned = is_reassigning(p) and (arrived is None or any(r in arrived for r in target(p)))
        if concerned and not advance(draft, tp):
            _announce(draft, tp, p)


def in_progress(
    draft: Draft, asked: Collection[TopicPartition] | None
) -> dict[TopicPartition, PartitionInfo]:
    """ListPartitionReassignments; None asks for all."""
    found = draft.partitions() if asked is None else ((tp, draft.partition(tp)) for tp in asked)
    return {tp: p for tp, p in found if p is not None and is_reassigning(p)}


def _existing(draft: Draft, tp: TopicPartition) -> PartitionInfo:
    p = draft.partition(tp)
    if p is None or tp[0] in draft.deletions:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    return p


def _check_replicas(draft: Draft, p: PartitionInfo, wanted: Sequence[int]) -> None:
    listed = f"[{', '.join(map(str, wanted))}]"
    if not wanted:
        _refuse("Empty replica list specified in partition reassignment.")
    if len(set(wanted)) < len(wanted):
        _refuse(f"Duplicate replica ids in partition reassignment replica list: {listed}")
    if min(wanted) < 0:
        _refuse(f"Invalid broker id in replica list: {listed}")
    before = origin(p)
    alive = [b for b in draft.brokers if b not in draft.shutting_down]
    added = [r for r in wanted if r not in before]
    if not set(added) <= set(alive):
        _refuse(
            "Replica assignment has brokers that are not alive. "
            f"Replica list: {added}, live broker list: {sorted(alive)}"
        )


def _check_size(p: PartitionInfo, wanted: Sequence[int]) -> None:
    """Counted from where a move that is under way shall end."""
    before = len(target(p))
    if before != len(wanted):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {before} to {len(wanted)}",
        )


def _refuse(message: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _begin(draft: Draft, tp: TopicPartition, wanted: Sequence[int]) -> None:
    p = _existing(draft, tp)
    moved = towards(p, wanted)
    dropped = [r for r in p.replicas if r not in moved.replicas]
    if p.isr and not set(p.isr) - set(dropped):
        # Kafka 3.9 leaves such a partition without a leader for good; refuse it, as Kafka does in KRaft mode.
        _refuse(f"Cannot move {tp[0]}-{tp[1]}: no replica that stays is in sync.")
    if dropped:
        moved = election.drop(moved, dropped)
        draft.outbox.stop(tp, dropped, delete=True)
    draft.put(tp, moved)
    if not is_reassigning(moved) or _can_finish(draft, tp, moved):
        _finish(draft, tp, moved)
    else:
        _announce(draft, tp, moved)


def _can_finish(draft: Draft, tp: TopicPartition, p: PartitionInfo) -> bool:
    """The target is in sync, and one of it can lead."""
    wanted = target(p)
    return set(wanted) <= set(p.isr) and any(draft.is_online(tp, r) for r in wanted)


def _announce(draft: Draft, tp: TopicPartition, p: PartitionInfo) -> None:
    """The leader lets the new replicas fetch, and they start, in a new epoch."""
    p = draft.partition(tp) or p
    if not p.isr:
        return  # it never had a leader: its first one will know the assignment
    draft.put(tp, election.bump(p))
    draft.outbox.host(tp, origin(p))
    draft.outbox.host(tp, p.adding, is_new=True)


def _finish(draft: Draft, tp: TopicPartition, p: PartitionInfo) -> None:
    wanted, leaving = target(p), p.removing
    done = replace(p, replicas=wanted, adding=(), removing=())
    if p.isr:
        online = draft.online(tp, done)
        stays = p.leader in wanted and draft.is_serving(tp, p.leader)
        done = election.bump(done) if stays else (election.elect_among(done, wanted, online) or done)
        done = election.drop(done, leaving)
    draft.put(tp, done)
    draft.outbox.host(tp, wanted)
    draft.outbox.stop(tp, leaving, delete=True)
    if draft.tree_reassignments.get(tp) == wanted:
        del draft.tree_reassignments[tp]
