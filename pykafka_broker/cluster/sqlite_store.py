"""The embedded store: the tree in one SQLite file, for a broker that stands alone."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from pykafka_broker.cluster.node_tree import ROOT, Row, Transaction, check_path, new_row, parent_of
from pykafka_broker.cluster.store import (
    Create,
    Delete,
    Node,
    NoNode,
    SessionState,
    Store,
    StoreClosed,
    StoreError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pykafka_broker.clock import Clock
    from pykafka_broker.cluster.store import Op, Result, SessionCallback, Unwatch, WatchCallback

T = TypeVar("T")
logger = logging.getLogger(__name__)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS nodes (
    path TEXT PRIMARY KEY, parent TEXT NOT NULL, data BLOB NOT NULL, version INTEGER NOT NULL,
    cversion INTEGER NOT NULL, created_children INTEGER NOT NULL, child_count INTEGER NOT NULL,
    czxid INTEGER NOT NULL, mzxid INTEGER NOT NULL, ctime_ms INTEGER NOT NULL,
    ephemeral_owner INTEGER NOT NULL, mtime_ms INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS nodes_by_parent ON nodes (parent);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO counters VALUES ('zxid', 0), ('session', 0);
"""
_SELECT = (
    "SELECT data, version, cversion, created_children, child_count, czxid, mzxid, ctime_ms, mtime_ms,"
    " ephemeral_owner FROM nodes WHERE path = ?"
)
_UPSERT = "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class _Database:
    """The file. Owner: the store's one thread; nobody else calls a method."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        # isolation_level None: transactions are begun and ended here, not guessed by the driver.
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        # Exclusive: a second broker on the same file is refused instead of fighting over sessions.
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        self._connection.executescript("BEGIN IMMEDIATE;" + _SCHEMA + "COMMIT;")
        if "mtime_ms" not in {column[1] for column in run("PRAGMA table_info(nodes)")}:
            run("ALTER TABLE nodes ADD COLUMN mtime_ms INTEGER NOT NULL DEFAULT 0")  # a file made before
        self._zxid = self._counter("zxid")
        self.session = self._counter("session") + 1
        run("UPDATE counters SET value = ? WHERE name = 'session'", (self.session,))
        if self.row(ROOT) is None:
            run(_UPSERT, self._values(ROOT, new_row(b"", 0, self._clock.wall_ms())))
        self.drop_ephemerals()

    def _counter(self, name: str) -> int:
        value = self._connection.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()[0]
        return int(value)

    def row(self, path: str) -> Row | None:
        found = self._connection.execute(_SELECT, (path,)).fetchone()
        return None if found is None else Row(*found)

    def nodes(self, paths: Sequence[str]) -> list[Node | None]:
        return [None if (row := self.row(path)) is None else _node(row) for path in paths]

    def children(self, path: str) -> list[str]:
        if self.row(path) is None:
            raise NoNode(path, "node does not exist")
        rows = self._connection.execute("SELECT path FROM nodes WHERE parent = ? ORDER BY path", (path,))
        return [child.rpartition("/")[2] for (child,) in rows]

    def commit(self, ops: Sequence[Op]) -> tuple[list[Result], Transaction]:
        staged = Transaction(self.row, self._zxid + 1, self._clock.wall_ms(), self.session)
        results = staged.apply(ops)
        self._write(staged)
        return results, staged

    def drop_ephemerals(self) -> None:
        """Removes every ephemeral: those of this session, and those a killed process left behind."""
        paths = self._connection.execute("SELECT path FROM nodes WHERE ephemeral_owner != 0").fetchall()
        if paths:
            self.commit([Delete(path) for (path,) in paths])

    def _write(self, staged: Transaction) -> None:
        if not staged.changed:
            return
        gone = [(path,) for path, row in staged.changed.items() if row is None]
        kept = [self._values(path, row) for path, row in staged.changed.items() if row is not None]
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            self._connection.executemany("DELETE FROM nodes WHERE path = ?", gone)
            self._connection.executemany(_UPSERT, kept)
            run("UPDATE counters SET value = ? WHERE name = 'zxid'", (self._zxid + 1,))
            run("COMMIT")
        except BaseException:
            # A full disk may have ended the transaction already.
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise
        self._zxid += 1

    @staticmethod
    def _values(path: str, row: Row) -> tuple[object, ...]:
        return (
            path, "" if path == ROOT else parent_of(path), row.data, row.version, row.cversion,
            row.created_children, row.child_count, row.czxid, row.mzxid, row.ctime_ms, row.ephemeral_owner,
            row.mtime_ms,
        )  # fmt: skip

    def close(self) -> None:
        try:
            self.drop_ephemerals()
        finally:
            self._connection.close()


def _node(row: Row) -> Node:
    return Node(
        row.data, row.version, row.cversion, row.czxid, row.mzxid, row.ctime_ms, row.mtime_ms,
        row.ephemeral_owner,
    )  # fmt: skip


class SqliteStore(Store):
    """A Store in one file. Every change is on disk before it is answered or told to a watch.

    Owner: the broker that opened it, on the event loop it was opened on.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: ThreadPoolExecutor, db: _Database) -> None:
        self._loop = loop
        self._thread = thread
        self._db = db
        self._closed = False
        self._data_watches: dict[str, list[WatchCallback]] = {}
        self._child_watches: dict[str, list[WatchCallback]] = {}

    @classmethod
    async def open(cls, path: Path, clock: Clock) -> SqliteStore:
        """Opens or creates the file as a new session; StoreError if it is in use or not a store."""
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata-store")
        try:
            db = await loop.run_in_executor(thread, _Database, path, clock)
        except sqlite3.Error as error:
            thread.shutdown(wait=False)
            raise StoreError(str(path), f"cannot open the metadata store: {error}") from error
        return cls(loop, thread, db)

    @property
    def session_id(self) -> int:
        return self._db.session

    @property
    def session_state(self) -> SessionState:
        return SessionState.CONNECTED

    def on_session(self, callback: SessionCallback) -> Unwatch:  # noqa: ARG002 - there is nothing to tell
        """A session in our own file neither breaks nor expires."""
        return lambda: None

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        for path in paths:
            check_path(path)
        return await self._in_thread(lambda: self._db.nodes(paths))

    async def children(self, path: str) -> list[str]:
        check_path(path)
        return await self._in_thread(lambda: self._db.children(path))

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        for op in ops:
            # ZooKeeper allows a sequence node with an empty prefix: its path ends in a slash until numbered.
            sequence = isinstance(op, Create) and op.sequence
            check_path(op.path + "0" if sequence else op.path)
        return await self._in_thread(lambda: self._commit_and_tell(ops))

    async def watch_data(self, path: str, callback: WatchCallback) -> Unwatch:
        return self._watch(self._data_watches, path, callback)

    async def watch_children(self, path: str, callback: WatchCallback) -> Unwatch:
        return self._watch(self._child_watches, path, callback)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._data_watches.clear()
        self._child_watches.clear()
        try:
            await self._loop.run_in_executor(self._thread, self._db.close)
        finally:
            self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise StoreClosed(ROOT, "the metadata store is closed")
        try:
            return await self._loop.run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise StoreError(ROOT, f"the metadata store failed: {error}") from error

    def _commit_and_tell(self, ops: Sequence[Op]) -> list[Result]:
        results, staged = self._db.commit(ops)
        # From the thread, not from the awaiting task: a caller that was cancelled must not swallow the news.
        self._loop.call_soon_threadsafe(self._tell, list(staged.data_events), list(staged.children_events))
        return results

    def _tell(self, data_paths: Iterable[str], child_paths: Iterable[str]) -> None:
        for watches, paths in ((self._data_watches, data_paths), (self._child_watches, child_paths)):
            for path in paths:
                for callback in tuple(watches.get(path, ())):
                    try:
                        callback(path)
                    except Exception:  # one watcher's mistake is not the others'
                        logger.exception("a watch on %s failed", path)

    def _watch(self, watches: dict[str, list[WatchCallback]], path: str, callback: WatchCallback) -> Unwatch:
        check_path(path)
        if self._closed:
            raise StoreClosed(path, "the metadata store is closed")
        watches.setdefault(path, []).append(callback)

        def unwatch() -> None:
            callbacks = watches.get(path, [])
            if callback in callbacks:
                callbacks.remove(callback)
            if not callbacks:
                watches.pop(path, None)

        return unwatch
