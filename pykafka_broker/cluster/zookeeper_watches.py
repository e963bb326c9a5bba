"""Watches that last, on ZooKeeper's, which fire once.

A watch that fired is set again before anybody is told. Requests of a connection are served in order, so
whoever reads after being told reads behind the new watch: no change falls between the two. After a broken
connection all are set again, and those are told whose node is not as it was when they were last set.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import NoNodeError
from kazoo.protocol.serialization import Exists, GetChildren2
from kazoo.protocol.states import EventType

from pykafka_broker.cluster.zookeeper_requests import Unanswered

if TYPE_CHECKING:
    from pykafka_broker.cluster.store import Unwatch, WatchCallback
    from pykafka_broker.cluster.zookeeper_requests import Chroot
    from pykafka_broker.cluster.zookeeper_session import ZookeeperSession

logger = logging.getLogger(__name__)

_NEVER_SEEN = object()


@dataclass(slots=True, eq=False)
class _Watch:
    """One path and those who listen; `seen` is what tells one state of the node from another, None if absent."""

    path: str
    callbacks: list[WatchCallback] = field(default_factory=list)
    seen: object = _NEVER_SEEN


class Watches:
    """All watches of one kind: on the data of nodes, or on their children. Owner: the store."""

    def __init__(self, session: ZookeeperSession, chroot: Chroot, *, on_children: bool) -> None:
        self._session = session
        self._chroot = chroot
        self._on_children = on_children
        self._watches: dict[str, _Watch] = {}
        self._arming: set[asyncio.Task[None]] = set()

    async def add(self, path: str, callback: WatchCallback) -> Unwatch:
        """Returns when the watch is set; kazoo's error if it cannot be."""
        watch = self._watches.get(path)
        if watch is not None:
            watch.callbacks.append(callback)
            return partial(self._remove, watch, callback)
        watch = self._watches[path] = _Watch(path, [callback])
        try:
            await asyncio.shield(self._arm(watch, tell_changes=False))
        except BaseException:
            self._remove(watch, callback)
            raise
        return partial(self._remove, watch, callback)

    def resume(self) -> None:
        """Sets all watches again, on a new connection."""
        for watch in self._watches.values():
            self._arm_or_log(watch, tell_changes=True)

    async def close(self) -> None:
        self._watches.clear()
        for task in self._arming:
            task.cancel()
        await asyncio.gather(*self._arming, return_exceptions=True)

    def _remove(self, watch: _Watch, callback: WatchCallback) -> None:
        if callback in watch.callbacks:
            watch.callbacks.remove(callback)
        # What is set at ZooKeeper stays until it fires, and then finds nobody.
        if not watch.callbacks and self._watches.get(watch.path) is watch:
            del self._watches[watch.path]

    def _happened(self, event: Any) -> None:
        """On kazoo's thread. Events of type NONE are about the connection, which `resume` sees to."""
        if event.type != EventType.NONE:
            self._session.from_thread(partial(self._fired, self._chroot.within(event.path)))

    def _fired(self, path: str) -> None:
        watch = self._watches.get(path)
        if watch is not None:
            self._arm_or_log(watch, tell_changes=False)
            self._tell(watch)

    def _tell(self, watch: _Watch) -> None:
        for callback in tuple(watch.callbacks):
            try:
                callback(watch.path)
            except Exception:  # one watcher's mistake is not the others'
                logger.exception("a watch on %s failed", watch.path)

    def _arm(self, watch: _Watch, *, tell_changes: bool) -> asyncio.Task[None]:
        full = self._chroot.full(watch.path)
        # The request leaves now, ahead of any read that follows; only its answer is waited for.
        request = GetChildren2 if self._on_children else Exists
        answer = self._session.send(request(full, self._happened))
        task = asyncio.get_running_loop().create_task(self._armed(watch, answer, tell_changes))
        self._arming.add(task)
        task.add_done_callback(self._arming.discard)
        return task

    def _arm_or_log(self, watch: _Watch, *, tell_changes: bool) -> None:
        self._arm(watch, tell_changes=tell_changes).add_done_callback(partial(_log_failure, watch.path))

    async def _armed(self, watch: _Watch, answer: asyncio.Future[Any], tell_changes: bool) -> None:
        try:
            seen = await answer
            if self._on_children:
                stat = seen[1]
                now: object = (stat.czxid, stat.pzxid)
            else:
                now = None if seen is None else (seen.czxid, seen.mzxid)
        except NoNodeError:
            await self._await_creation(watch, tell_changes)
            return
        except Unanswered:
            return  # set again by `resume`
        self._saw(watch, now, tell_changes)

    async def _await_creation(self, watch: _Watch, tell_changes: bool) -> None:
        """Children of a node that is not there: wait for the node."""
        self._saw(watch, None, tell_changes)
        try:
            found = await self._session.send(Exists(self._chroot.full(watch.path), self._happened))
        except Unanswered:
            return
        if found is not None and self._watches.get(watch.path) is watch:
            # It came in between, perhaps with children that nobody has heard of.
            self._fired(watch.path)

    def _saw(self, watch: _Watch, now: object, tell_changes: bool) -> None:
        changed = now != watch.seen
        watch.seen = now
        if tell_changes and changed:
            self._tell(watch)


def _log_failure(path: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("the watch on %s could not be set again: %r", path, error)
