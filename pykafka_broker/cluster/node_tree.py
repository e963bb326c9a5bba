"""The rules of the tree, apart from where it is kept: one transaction staged over committed nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from pykafka_broker.cluster.store import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SetData,
    StoreError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafka_broker.cluster.store import Op, Result

ROOT = "/"


def check_path(path: str) -> None:
    """Refuses what ZooKeeper refuses, before anything is touched."""
    if path == ROOT:
        return
    if not path.startswith("/") or path.endswith("/") or "//" in path or "\0" in path:
        raise ValueError(f"not a node path: {path!r}")
    if "/./" in path + "/" or "/../" in path + "/":
        raise ValueError(f"relative names are not allowed in a node path: {path!r}")


def parent_of(path: str) -> str:
    return path[: path.rindex("/")] or ROOT


@dataclass(frozen=True, slots=True)
class Row:
    """A node with the book-keeping its children need."""

    data: bytes
    version: int
    cversion: int
    created_children: int
    """Children ever created: the next sequence number. Deletions do not count, as in ZooKeeper."""
    child_count: int
    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    ephemeral_owner: int


def new_row(data: bytes, zxid: int, now_ms: int, owner: int = 0) -> Row:
    return Row(data, 0, 0, 0, 0, zxid, zxid, now_ms, now_ms, owner)


class Transaction:
    """Operations applied in order over a lookup of committed nodes; owned by the store that commits it.

    Nothing is visible outside until the owner writes `changed` down. A failed operation leaves the
    transaction unusable: it is to be thrown away.
    """

    def __init__(self, committed: Callable[[str], Row | None], zxid: int, now_ms: int, session: int) -> None:
        self._committed = committed
        self._zxid = zxid
        self._now_ms = now_ms
        self._session = session
        self._read: dict[str, Row | None] = {}
        self.changed: dict[str, Row | None] = {}
        """The outcome by path; None where the node is gone."""
        self.data_events: dict[str, None] = {}
        self.children_events: dict[str, None] = {}

    def row(self, path: str) -> Row | None:
        if path in self.changed:
            return self.changed[path]
        if path not in self._read:
            self._read[path] = self._committed(path)
        return self._read[path]

    def apply(self, ops: Sequence[Op]) -> list[Result]:
        results: list[Result] = []
        for index, op in enumerate(ops):
            try:
                results.append(self._apply_one(op))
            except StoreError as error:
                raise type(error)(error.path, error.detail, index) from None
        return results

    def _apply_one(self, op: Op) -> Result:
        match op:
            case Create():
                return self._create(op)
            case SetData():
                row = self._expect(op.path, op.version)
                version, now_ms = row.version + 1, self._now_ms
                changed = replace(row, data=op.data, version=version, mzxid=self._zxid, mtime_ms=now_ms)
                self._put(op.path, changed)
                self.data_events[op.path] = None
                return version
            case Delete():
                self.delete(op.path, op.version)
                return None
            case Check():
                self._expect(op.path, op.version)
                return None
            case _:
                assert_never(op)

    def _create(self, op: Create) -> str:
        if op.path == ROOT:
            raise NodeExists(ROOT, "the root is always there")
        parent_path = parent_of(op.path)
        parent = self.row(parent_path)
        if parent is None:
            raise NoNode(op.path, f"parent {parent_path} does not exist")
        if parent.ephemeral_owner:
            raise NoChildrenForEphemerals(op.path, f"parent {parent_path} is ephemeral")
        path = f"{op.path}{parent.created_children:010d}" if op.sequence else op.path
        if self.row(path) is not None:
            raise NodeExists(path, "node already exists")
        self._put(path, new_row(op.data, self._zxid, self._now_ms, self._session if op.ephemeral else 0))
        self._put(
            parent_path,
            replace(
                parent,
                cversion=parent.cversion + 1,
                created_children=parent.created_children + 1,
                child_count=parent.child_count + 1,
            ),
        )
        self.data_events[path] = None
        self.children_events[parent_path] = None
        return path

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        if path == ROOT:
            raise NotEmpty(ROOT, "the root cannot be deleted")
        row = self._expect(path, version)
        if row.child_count:
            raise NotEmpty(path, f"node has {row.child_count} children")
        parent_path = parent_of(path)
        parent = self.row(parent_path)
        assert parent is not None, "a node outlived its parent"
        self._put(path, None)
        self._put(
            parent_path, replace(parent, cversion=parent.cversion + 1, child_count=parent.child_count - 1)
        )
        self.data_events[path] = None
        self.children_events[parent_path] = None

    def _expect(self, path: str, version: int) -> Row:
        row = self.row(path)
        if row is None:
            raise NoNode(path, "node does not exist")
        if version not in (ANY_VERSION, row.version):
            raise BadVersion(path, f"expected version {version}, found {row.version}")
        return row

    def _put(self, path: str, row: Row | None) -> None:
        self.changed[path] = row
