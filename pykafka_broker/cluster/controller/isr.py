"""AlterPartition: a leader wants another ISR."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pykafka_broker.cluster.controller import reassignment
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from pykafka_broker.cluster.controller.draft import Draft
    from pykafka_broker.cluster.view import PartitionInfo

_IDS_AND_NEW_ERRORS = 2
"""From this version on topics go by id, and the codes INELIGIBLE_REPLICA and NEW_LEADER_ELECTED are understood."""
NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class IsrWish:
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...] = ()
    """Of the members of the ISR, as the leader saw them (version 3); -1 or empty where it did not."""
    recovering: bool = False


def alter(
    draft: Draft,
    broker: int,
    broker_epoch: int,
    version: int,
    wishes: Mapping[tuple[str | uuid.UUID, int], IsrWish],
) -> dict[tuple[str | uuid.UUID, int], PartitionInfo | KafkaError]:
    """By topic name before version 2 and topic id from it on. Raises what concerns the whole request."""
    known = draft.brokers.get(broker)
    if known is None or known.epoch != broker_epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    outcome: dict[tuple[str | uuid.UUID, int], PartitionInfo | KafkaError] = {}
    for key, wish in wishes.items():
        try:
            outcome[key] = _alter_one(draft, broker, version, *key, wish)
        except KafkaError as error:
            outcome[key] = error
    return outcome


def _alter_one(
    draft: Draft, broker: int, version: int, topic: str | uuid.UUID, partition: int, wish: IsrWish
) -> PartitionInfo:
    view = draft.view
    found = view.topics.get(topic) if isinstance(topic, str) else view.topics_by_id.get(topic)
    if found is None and not isinstance(topic, str):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    tp = (found.name if found else "", partition)
    now = draft.partition(tp)
    if now is None or not now.isr or tp[0] in draft.deletions:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    draft.outbox.tell_everybody(tp)
    _check_epoch(now, wish)
    wanted = replace(now, isr=wish.isr, recovering=wish.recovering)
    if broker == now.leader and wanted == now:
        return now  # asked again: the first answer was lost
    _check_wish(now, broker, wish)
    _check_members(draft, version, tp, wish)
    draft.put(tp, wanted)
    if reassignment.advance(draft, tp):
        # The leader's epoch is over with that; what comes next it hears by LeaderAndIsr.
        new = version >= _IDS_AND_NEW_ERRORS
        raise KafkaError(ErrorCode.NEW_LEADER_ELECTED if new else ErrorCode.FENCED_LEADER_EPOCH)
    return replace(wanted, partition_epoch=now.partition_epoch + 1)


def _check_epoch(now: PartitionInfo, wish: IsrWish) -> None:
    if wish.partition_epoch > now.partition_epoch or wish.leader_epoch > now.leader_epoch:
        # The leader has heard of a state that is not ours: another controller must have taken over.
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if wish.leader_epoch < now.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)


def _check_wish(now: PartitionInfo, broker: int, wish: IsrWish) -> None:
    if wish.partition_epoch < now.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
    if (
        broker != now.leader
        or broker not in wish.isr
        or len(set(wish.isr)) < len(wish.isr)
        or not set(wish.isr) <= set(now.replicas)
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if wish.recovering and (len(wish.isr) > 1 or not now.recovering):
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def _check_members(draft: Draft, version: int, tp: tuple[str, int], wish: IsrWish) -> None:
    """A member that is gone, or came back since the leader looked, may lack what the leader thinks it has."""
    epochs = wish.broker_epochs or (NO_EPOCH,) * len(wish.isr)
    for replica, epoch in zip(wish.isr, epochs, strict=True):
        if not draft.is_online(tp, replica) or epoch not in (NO_EPOCH, draft.brokers[replica].epoch):
            new = version >= _IDS_AND_NEW_ERRORS
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA if new else ErrorCode.OPERATION_NOT_ATTEMPTED)
