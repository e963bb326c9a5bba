"""Who leads a partition: pure functions from one state of it to the next.

`online` are the replicas that are alive and have their disk. A function that finds no leader answers None.
Every change raises the leader epoch, so that whoever still believes the old state is fenced.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pykafka_broker.cluster.view import NO_LEADER, PartitionInfo

if TYPE_CHECKING:
    from collections.abc import Collection


def start(p: PartitionInfo, online: Collection[int]) -> PartitionInfo | None:
    """The first state of a partition: its live replicas in sync, the first of them leads."""
    isr = tuple(r for r in p.replicas if r in online)
    if not isr:
        return None
    epoch = p.leader_epoch if p.partition_epoch < 0 else p.leader_epoch + 1
    return replace(p, leader=isr[0], isr=isr, leader_epoch=epoch)


def elect(p: PartitionInfo, online: Collection[int], unclean: bool) -> PartitionInfo | None:
    """The first replica in order of assignment that is online and in sync; if allowed, one out of sync."""
    for leader in p.replicas:
        if leader in online and leader in p.isr:
            return _led(p, leader, tuple(r for r in p.isr if r in online))
    if unclean:
        for leader in p.replicas:
            if leader in online:
                return replace(_led(p, leader, (leader,)), recovering=True)
    return None


def elect_preferred(p: PartitionInfo, online: Collection[int]) -> PartitionInfo | None:
    """The first replica of the assignment, if it is online and in sync."""
    leader = p.replicas[0]
    return _led(p, leader, p.isr) if leader in online and leader in p.isr else None


def elect_among(
    p: PartitionInfo, candidates: Collection[int], online: Collection[int]
) -> PartitionInfo | None:
    """The first candidate, in their order, that is online and in sync: for the target of a reassignment."""
    for leader in candidates:
        if leader in online and leader in p.isr:
            return _led(p, leader, p.isr)
    return None


def elect_without(
    p: PartitionInfo, leaving: Collection[int], online: Collection[int]
) -> PartitionInfo | None:
    """Moves the leader off brokers that shut down in good order; they leave the ISR with that."""
    for leader in p.replicas:
        if leader in online and leader in p.isr and leader not in leaving:
            return _led(p, leader, tuple(r for r in p.isr if r not in leaving))
    return None


def drop(p: PartitionInfo, gone: Collection[int], back: Collection[int] = ()) -> PartitionInfo:
    """Takes replicas out of the ISR, and the lead from them; the very same object if they had neither.

    The last member stays, dead or not: it has everything that was acknowledged. If all go at once, one that is
    already `back` stays rather than another, and the leader rather than a follower.
    """
    isr = tuple(r for r in p.isr if r not in gone)
    if not isr and p.isr:
        candidates = [r for r in p.isr if r in back] or p.isr
        isr = (p.leader if p.leader in candidates else candidates[0],)
    leader = NO_LEADER if p.leader in gone else p.leader
    return p if (leader, isr) == (p.leader, p.isr) else _led(p, leader, isr)


def bump(p: PartitionInfo) -> PartitionInfo:
    """The same leader and ISR in a new epoch: the leader takes note of another assignment."""
    return _led(p, p.leader, p.isr)


def _led(p: PartitionInfo, leader: int, isr: tuple[int, ...]) -> PartitionInfo:
    # Written out: `replace` costs several times as much, and a broker that dies may have led ten thousand.
    return PartitionInfo(
        leader, p.leader_epoch + 1, isr, p.replicas, p.partition_epoch, p.adding, p.removing, p.recovering
    )  # fmt: skip
