"""Writing a plan to the store: every multi is fenced by the controller's epoch, none is larger than ZooKeeper takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.store import BadVersion, Check, Create, Delete, NoNode, SetData

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from pykafka_broker.cluster.controller.state import Plan
    from pykafka_broker.cluster.store import Op, Store

_MAX_BYTES = 512 * 1024
"""Of one multi; ZooKeeper refuses requests of more than a megabyte."""
_BYTES_PER_OP = 64
"""More than what an operation costs beside its path and data."""


class ControllerMoved(Exception):
    """Another controller has been elected: nothing may be changed any more."""


async def commit(store: Store, epoch_version: int, plan: Plan[Any]) -> None:
    """Commits all of the plan, in several steps if it is large.

    ControllerMoved if the fence did not hold. Any other StoreError means that the tree is not what the plan
    was made for, or that it is not known what became of it; then the tree is to be read again.
    """
    ops: list[Op] = []
    if plan.containers:
        found = await store.get_many(plan.containers)
        ops += [Create(path) for path, node in zip(plan.containers, found, strict=True) if node is None]
    ops += plan.ops
    for path in plan.removals:
        ops += await _deletions(store, path)
    fence = Check(znodes.CONTROLLER_EPOCH, epoch_version)
    for chunk in _chunks(ops):
        try:
            await store.multi([fence, *chunk])
        except BadVersion as error:
            if error.op_index == 0:
                raise ControllerMoved from error
            raise


async def _deletions(store: Store, path: str) -> list[Delete]:
    """The node and everything below it, children first; nothing if it is not there."""
    try:
        names = await store.children(path)
    except NoNode:
        return []
    below = [op for name in names for op in await _deletions(store, f"{path}/{name}")]
    return [*below, Delete(path)]


def _chunks(ops: Sequence[Op]) -> Iterator[list[Op]]:
    chunk: list[Op] = []
    size = 0
    for op in ops:
        cost = _BYTES_PER_OP + len(op.path) + (len(op.data) if isinstance(op, Create | SetData) else 0)
        if chunk and size + cost > _MAX_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(op)
        size += cost
    if chunk:
        yield chunk
