"""The port to cluster metadata: a small versioned tree with watches, ephemerals and atomic multi.

The shape is ZooKeeper's, reduced to what the broker needs, so that the embedded store and ZooKeeper are
interchangeable. A node without data and a node with empty data are the same thing here.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ANY_VERSION = -1


@dataclass(frozen=True, slots=True)
class Node:
    """One node as last committed; zxids order all changes of the tree."""

    data: bytes
    version: int
    cversion: int
    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    ephemeral_owner: int
    """The session that created an ephemeral node, 0 for a persistent one."""


@dataclass(frozen=True, slots=True)
class Create:
    """Adds a node; a sequence node gets ten digits appended, never used before under that parent."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Changes nothing; the multi fails unless the node has this version. This is how writers are fenced."""

    path: str
    version: int


Op: TypeAlias = Create | SetData | Delete | Check
Result: TypeAlias = str | int | None
"""What an op answers: Create the path, SetData the new version, Delete and Check nothing."""

Unwatch: TypeAlias = "Callable[[], None]"
WatchCallback: TypeAlias = "Callable[[str], None]"
SessionCallback: TypeAlias = "Callable[[SessionState], None]"


class SessionState(enum.Enum):
    """What became of the session that the ephemeral nodes hang on."""

    CONNECTED = "connected"
    """Connected (again). `session_id` tells whether the session is the old one or a new one."""
    SUSPENDED = "suspended"
    """The connection broke. The session and its ephemeral nodes may outlive that, or may not."""
    EXPIRED = "expired"
    """The session ended and its ephemeral nodes are gone. A new one is on its way: CONNECTED follows."""


class StoreError(Exception):
    """A refused operation. `op_index` is its place in its multi; nothing of that multi happened."""

    def __init__(self, path: str, detail: str, op_index: int | None = None) -> None:
        where = "" if op_index is None else f" (operation {op_index} of the multi)"
        super().__init__(f"{path}: {detail}{where}")
        self.path = path
        self.detail = detail
        self.op_index = op_index


class NoNode(StoreError):
    """The node, or the parent of a node to create, is not there."""


class NodeExists(StoreError):
    """The node to create is already there."""


class BadVersion(StoreError):
    """The node has another version than the caller expected."""


class NotEmpty(StoreError):
    """A node with children cannot be deleted."""


class NoChildrenForEphemerals(StoreError):
    """An ephemeral node cannot be a parent."""


class NotAuthorized(StoreError):
    """The node's access list does not allow this."""


class TooLarge(StoreError):
    """The store cannot take so much in one operation; nothing happened."""


class ConnectionLost(StoreError):
    """The connection broke while a change was under way: it may have happened or not, read to find out."""


class SessionExpired(ConnectionLost):
    """The session ended while a change was under way; if it happened, its ephemeral nodes are gone again."""


class StoreClosed(StoreError):
    """The store was closed; nothing happened."""


class Store(Protocol):
    """What the broker asks of its metadata store. All calls belong to one event loop.

    Requests take effect in the order they were made. While there is no connection they wait for one. A read
    whose connection breaks is asked again, however long it takes; a change is never repeated and ends with
    ConnectionLost or SessionExpired instead.
    """

    @property
    def session_id(self) -> int:
        """The session that owns the ephemeral nodes created now: what `Node.ephemeral_owner` will say."""

    @property
    def session_state(self) -> SessionState: ...

    def on_session(self, callback: SessionCallback) -> Unwatch:
        """Calls back on the event loop with each new state of the session, until the answer is called.

        When EXPIRED is told, every change under way has failed: none of the old session can succeed later.
        When CONNECTED is told, all watches are set again, so what is read from then on is watched.
        """

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """The nodes in the order asked, None where there is none; one trip however many."""

    async def children(self, path: str) -> list[str]:
        """Names (not paths) of the children, sorted; NoNode if the node itself is absent."""

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        """All of the operations in order, or none; the error names the operation that was refused."""

    async def watch_data(self, path: str, callback: WatchCallback) -> Unwatch:
        """Calls back with the path after the node was created, changed or deleted, until unwatched.

        Like every watch it says that something may have changed, not what: several changes may be told as
        one, and now and then one is told twice. Callbacks run on the event loop, after the change is durable
        and before an answer that shows it. Subscribe first, then read: what the read does not show is told.
        Watches outlive connections and sessions; what changed in between is told when connected again.
        """

    async def watch_children(self, path: str, callback: WatchCallback) -> Unwatch:
        """Calls back with the path after a child was added or removed, until unwatched."""

    async def close(self) -> None:
        """Ends the session: its ephemeral nodes vanish. Closing twice is harmless."""

    # One node at a time, by the above.

    async def get(self, path: str) -> Node:
        """The node, or NoNode."""
        (node,) = await self.get_many([path])
        if node is None:
            raise NoNode(path, "node does not exist")
        return node

    async def exists(self, path: str) -> bool:
        return (await self.get_many([path]))[0] is not None

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        """Creates a node whose parent exists and returns its path, which differs for a sequence node."""
        return str(await self._single(Create(path, data, ephemeral, sequence)))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Replaces the data and returns the new version."""
        new_version = await self._single(SetData(path, data, version))
        assert isinstance(new_version, int)
        return new_version

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._single(Delete(path, version))

    async def _single(self, op: Op) -> Result:
        try:
            return (await self.multi([op]))[0]
        except StoreError as error:
            if error.op_index is None:
                raise
            raise type(error)(error.path, error.detail) from None
