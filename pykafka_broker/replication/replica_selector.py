"""Which replica a consumer should read from (KIP-392). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafka_broker.config import BrokerConfig
    from pykafka_broker.replication.replica_state import LeaderState

_RACK_AWARE: Final = "RackAwareReplicaSelector"


def selects_by_rack(config: BrokerConfig) -> bool:
    """Whether `replica.selector.class` names Kafka's selector by rack; by default everybody reads from the leader."""
    name = config.replica_selector_class
    return isinstance(name, str) and name.rpartition(".")[2] == _RACK_AWARE


def nearest_replica(
    state: LeaderState, leader_id: int, rack: str, offset: int, racks: Mapping[int, str | None]
) -> int | None:
    """The follower in the client's rack that is furthest, of those in sync that hold `offset`; None where the leader
    is in that rack itself, or nobody is."""
    if racks.get(leader_id) == rack:
        return None
    near = [
        follower
        for follower in state.followers
        if racks.get(follower.id) == rack
        and follower.id in state.isr
        and follower.start_offset <= offset <= follower.end_offset
    ]
    if not near:
        return None
    return max(near, key=lambda follower: (follower.end_offset, follower.caught_up_ms, follower.id)).id
