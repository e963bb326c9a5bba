"""The store of a cluster: the tree in Apache ZooKeeper (3.6 or later)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import KazooException, NoNodeError
from kazoo.protocol.serialization import GetChildren

from pykafka_broker.cluster.node_tree import check_path
from pykafka_broker.cluster.store import (
    Create,
    Node,
    NodeExists,
    SessionState,
    Store,
    StoreClosed,
    StoreError,
)
from pykafka_broker.cluster.zookeeper_requests import (
    MAX_PATHS_PER_READ,
    Chroot,
    MultiRead,
    Unanswered,
    change_request,
    change_results,
    node_of,
    refusal,
)
from pykafka_broker.cluster.zookeeper_session import Login, ZookeeperSession
from pykafka_broker.cluster.zookeeper_watches import Watches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafka_broker.cluster.store import Op, Result, SessionCallback, Unwatch, WatchCallback
    from pykafka_broker.cluster.zookeeper_requests import Request

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ZookeeperSettings:
    """Where ZooKeeper is and how to talk to it, under the names of Kafka's properties."""

    connect: str
    """zookeeper.connect: `host:port,host:port/chroot`."""
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int | None = None
    """How long to wait for the first connection; the session's timeout if not given."""
    set_acl: bool = False
    login: Login | None = None

    def hosts_and_chroot(self) -> tuple[str, str]:
        hosts, slash, chroot = self.connect.partition("/")
        chroot = (slash + chroot).strip().rstrip("/")
        if chroot:
            check_path(chroot)
        return ",".join(host.strip() for host in hosts.split(",")), chroot


class ZookeeperStore(Store):
    """A Store in ZooKeeper, below the chroot. A session that expired is replaced by a new one.

    Owner: the broker that opened it, on the event loop it was opened on.
    """

    def __init__(self, settings: ZookeeperSettings) -> None:
        """Not yet connected: use `open`."""
        hosts, chroot = settings.hosts_and_chroot()
        self._chroot = Chroot(chroot, settings.set_acl)
        self._session = ZookeeperSession(hosts, settings.session_timeout_ms, settings.login, self._told)
        self._data_watches = Watches(self._session, self._chroot, on_children=False)
        self._child_watches = Watches(self._session, self._chroot, on_children=True)
        self._listeners: list[SessionCallback] = []
        self._closed = False

    @classmethod
    async def open(cls, settings: ZookeeperSettings) -> ZookeeperStore:
        """Connects and creates the chroot where it is missing; StoreError if ZooKeeper cannot be reached."""
        if settings.set_acl and settings.login is None:
            raise StoreError("/", "zookeeper.set.acl is true, but there is no login to own the nodes")
        store = cls(settings)
        try:
            await store._session.start(settings.connection_timeout_ms or settings.session_timeout_ms)
            await store._ensure_chroot(settings.set_acl)
        except BaseException:
            await store.close()
            raise
        return store

    @property
    def session_id(self) -> int:
        return self._session.id

    @property
    def session_state(self) -> SessionState:
        return self._session.state

    def on_session(self, callback: SessionCallback) -> Unwatch:
        self._listeners.append(callback)
        return partial(_discard, self._listeners, callback)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        for path in paths:
            check_path(path)
        full = [self._chroot.full(path) for path in paths]
        starts = range(0, len(full), MAX_PATHS_PER_READ)
        requests = [MultiRead(tuple(full[start : start + MAX_PATHS_PER_READ])) for start in starts]
        self._check_open("/")
        # All leave now, so that this read keeps its place among the requests of its callers.
        sent = [(request, self._session.send(request)) for request in requests]
        answers = await asyncio.gather(*(self._answer(request, answer, "/") for request, answer in sent))
        flat = [answer for some in answers for answer in some]
        return [_found(path, answer) for path, answer in zip(paths, flat, strict=True)]

    async def children(self, path: str) -> list[str]:
        check_path(path)
        self._check_open(path)
        request = GetChildren(self._chroot.full(path), None)
        return sorted(await self._answer(request, self._session.send(request), path))

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        for op in ops:
            # ZooKeeper allows a sequence node with an empty prefix: its path ends in a slash until numbered.
            sequence = isinstance(op, Create) and op.sequence
            check_path(op.path + "0" if sequence else op.path)
        return await self._change(ops, self._chroot)

    async def watch_data(self, path: str, callback: WatchCallback) -> Unwatch:
        return await self._watch(self._data_watches, path, callback)

    async def watch_children(self, path: str, callback: WatchCallback) -> Unwatch:
        return await self._watch(self._child_watches, path, callback)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._listeners.clear()
        await self._data_watches.close()
        await self._child_watches.close()
        await self._session.close()

    async def _ensure_chroot(self, set_acl: bool) -> None:
        top = Chroot("", set_acl)
        for op in self._chroot.missing():
            try:
                await self._change([op], top)
            except NodeExists:
                continue

    async def _watch(self, watches: Watches, path: str, callback: WatchCallback) -> Unwatch:
        check_path(path)
        self._check_open(path)
        try:
            return await watches.add(path, callback)
        except KazooException as error:
            raise refusal(error, path) from error

    async def _answer(self, request: Request, answer: asyncio.Future[Any], path: str) -> Any:
        """The answer to a read, asked for again after every lost connection and session."""
        while True:
            try:
                return await answer
            except Unanswered:
                self._check_open(path)
                answer = self._session.send(request)
            except KazooException as error:
                raise refusal(error, path) from error

    async def _change(self, ops: Sequence[Op], chroot: Chroot) -> list[Result]:
        if not ops:
            return []
        self._check_open(ops[0].path)
        request = change_request(ops, chroot)
        try:
            answers = await self._session.send(request)
        except KazooException as error:
            self._check_open(ops[0].path)
            raise refusal(error, ops[0].path) from error
        return change_results(ops, answers, chroot)

    def _check_open(self, path: str) -> None:
        if self._closed:
            raise StoreClosed(path, "the metadata store is closed")

    def _told(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._data_watches.resume()
            self._child_watches.resume()
        for listener in tuple(self._listeners):
            try:
                listener(state)
            except Exception:  # one listener's mistake is not the others'
                logger.exception("a listener failed on a ZooKeeper session that is %s", state.value)


def _found(path: str, answer: tuple[bytes | None, Any] | Exception) -> Node | None:
    if isinstance(answer, NoNodeError):
        return None
    if isinstance(answer, Exception):
        raise refusal(answer, path) from answer
    return node_of(*answer)


def _discard(listeners: list[SessionCallback], listener: SessionCallback) -> None:
    if listener in listeners:
        listeners.remove(listener)
