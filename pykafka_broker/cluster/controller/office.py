"""The office of the controller: an ephemeral node, and an epoch that fences whoever held it before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.store import BadVersion, Check, Create, Delete, NodeExists, NoNode, SetData

if TYPE_CHECKING:
    from pykafka_broker.cluster.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """One term of office. The version of /controller_epoch fences everything that is written in it."""

    epoch: int
    epoch_version: int


async def claim(store: Store, broker_id: int, wall_ms: int) -> Claim | None:
    """Takes the office if it is free; None if somebody has it.

    The ephemeral node and the epoch change in one multi, so two brokers never hold the same epoch. A claim that
    was made and never answered is recognised by its session.
    """
    holder, epoch_node = await store.get_many([znodes.CONTROLLER, znodes.CONTROLLER_EPOCH])
    if epoch_node is None:
        raise NoNode(znodes.CONTROLLER_EPOCH, "the tree was never set up")
    if holder is not None:
        ours = holder.ephemeral_owner == store.session_id
        return Claim(int(epoch_node.data), epoch_node.version) if ours else None
    epoch = int(epoch_node.data) + 1
    try:
        await store.multi(
            [
                Create(znodes.CONTROLLER, znodes.encode_controller(broker_id, wall_ms), ephemeral=True),
                SetData(znodes.CONTROLLER_EPOCH, str(epoch).encode(), epoch_node.version),
            ]
        )
    except (NodeExists, BadVersion):
        return None
    return Claim(epoch, epoch_node.version + 1)


async def give_up(store: Store, held: Claim) -> None:
    """Leaves the office to others, if it is still ours."""
    try:
        await store.multi(
            [Check(znodes.CONTROLLER_EPOCH, held.epoch_version), Delete(znodes.CONTROLLER)]
        )  # fmt: skip
    except (BadVersion, NoNode):
        return
