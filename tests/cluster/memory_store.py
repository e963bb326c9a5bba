"""A tree in memory, and sessions on it that expire when told to: a Store for tests of several brokers."""

from __future__ import annotations

from pykafka_broker.cluster.node_tree import Transaction, new_row, parent_of
from pykafka_broker.cluster.store import (
    ANY_VERSION,
    Create,
    Delete,
    Node,
    NoNode,
    SessionExpired,
    SessionState,
    SetData,
)


class MemoryTree:
    """What all sessions share."""

    def __init__(self):
        self.rows = {"/": new_row(b"", 0, 0)}
        self.zxid = 0
        self.stores = []
        self.multis = []
        """Every change that was made, in order."""

    def open(self):
        store = MemoryStore(self, len(self.stores) + 1)
        self.stores.append(store)
        return store

    def commit(self, ops, session):
        staged = Transaction(self.rows.get, self.zxid + 1, 0, session)
        results = staged.apply(ops)
        self.zxid += 1
        for path, row in staged.changed.items():
            if row is None:
                del self.rows[path]
            else:
                self.rows[path] = row
        self.multis.append(list(ops))
        for store in self.stores:
            store.tell(staged.data_events, staged.children_events)
        return results

    def end_session(self, session):
        owned = [path for path, row in self.rows.items() if row.ephemeral_owner == session]
        if owned:
            self.commit([Delete(path) for path in owned], session)


class MemoryStore:
    """One session. Nothing waits, so a test may also drive its coroutines by hand."""

    def __init__(self, tree, session):
        self.tree = tree
        self.session_id = session
        self.session_state = SessionState.CONNECTED
        self.before_multi = None
        """Called with the ops of each multi before it happens; may raise."""
        self._watches = {"data": {}, "children": {}}
        self._listeners = []

    def on_session(self, callback):
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def expire(self):
        """Ends the session; `reconnect` begins the next."""
        self.session_state = SessionState.EXPIRED
        self.tree.end_session(self.session_id)
        for callback in tuple(self._listeners):
            callback(SessionState.EXPIRED)

    def reconnect(self):
        self.session_id += 1000
        self.session_state = SessionState.CONNECTED
        for callback in tuple(self._listeners):
            callback(SessionState.CONNECTED)

    async def get(self, path):
        node = (await self.get_many([path]))[0]
        if node is None:
            raise NoNode(path, "")
        return node

    async def get_many(self, paths):
        rows = [self.tree.rows.get(path) for path in paths]
        return [
            None
            if r is None
            else Node(
                r.data, r.version, r.cversion, r.czxid, r.mzxid, r.ctime_ms, r.mtime_ms, r.ephemeral_owner
            )
            for r in rows
        ]

    async def exists(self, path):
        return path in self.tree.rows

    async def children(self, path):
        if path not in self.tree.rows:
            raise NoNode(path, "")
        return sorted(p.rpartition("/")[2] for p in self.tree.rows if p != "/" and parent_of(p) == path)

    async def create(self, path, data=b"", *, ephemeral=False, sequence=False):
        return (await self.multi([Create(path, data, ephemeral, sequence)]))[0]

    async def set(self, path, data, version=ANY_VERSION):
        return (await self.multi([SetData(path, data, version)]))[0]

    async def delete(self, path, version=ANY_VERSION):
        await self.multi([Delete(path, version)])

    async def multi(self, ops):
        if self.session_state is SessionState.EXPIRED:
            raise SessionExpired(ops[0].path, "")
        if self.before_multi is not None:
            self.before_multi(ops)
        return self.tree.commit(ops, self.session_id)

    async def watch_data(self, path, callback):
        return self._watch("data", path, callback)

    async def watch_children(self, path, callback):
        return self._watch("children", path, callback)

    def _watch(self, kind, path, callback):
        self._watches[kind].setdefault(path, []).append(callback)
        return lambda: self._watches[kind][path].remove(callback)

    def tell(self, data_paths, children_paths):
        for kind, paths in (("data", data_paths), ("children", children_paths)):
            for path in paths:
                for callback in tuple(self._watches[kind].get(path, ())):
                    callback(path)

    async def close(self):
        self.session_state = SessionState.EXPIRED
        self._watches = {"data": {}, "children": {}}
        self._listeners.clear()
        self.tree.end_session(self.session_id)
