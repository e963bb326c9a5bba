"""The tree as a plain dict, to hold the histories of real stores against."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from pykafka_broker.cluster.store import (
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

PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/p", "/b/s-"])
VERSIONS = st.sampled_from([-1, -1, 0, 1, 2])
OPS = st.one_of(
    st.builds(Create, PATHS, st.binary(max_size=3), st.booleans(), st.booleans()),
    st.builds(SetData, PATHS, st.binary(max_size=3), VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(Check, PATHS, VERSIONS),
)
REOPEN = "reopen"
HISTORIES = st.lists(st.one_of(st.lists(OPS, min_size=1, max_size=4), st.just(REOPEN)), max_size=15)


class Model:
    """The tree as a dict of path -> [data, version, ephemeral], and sequence counters by parent."""

    def __init__(self):
        self.nodes = {"/": [b"", 0, False]}
        self.created = {"/": 0}

    def copy(self):
        other = Model()
        other.nodes = {path: list(node) for path, node in self.nodes.items()}
        other.created = dict(self.created)
        return other

    def children(self, path):
        prefix = "/" if path == "/" else path + "/"
        return sorted(
            p[len(prefix) :] for p in self.nodes if p != "/" and p.rpartition("/")[0] + "/" == prefix
        )

    def apply(self, op):
        if isinstance(op, Create):
            return self.create(op)
        if op.path not in self.nodes:
            raise NoNode(op.path, "")
        node = self.nodes[op.path]
        if op.version not in (-1, node[1]):
            raise BadVersion(op.path, "")
        if isinstance(op, SetData):
            node[0], node[1] = op.data, node[1] + 1
            return node[1]
        if isinstance(op, Delete):
            if self.children(op.path):
                raise NotEmpty(op.path, "")
            del self.nodes[op.path], self.created[op.path]
        return None

    def create(self, op):
        parent = op.path.rpartition("/")[0] or "/"
        if parent not in self.nodes:
            raise NoNode(op.path, "")
        if self.nodes[parent][2]:
            raise NoChildrenForEphemerals(op.path, "")
        path = f"{op.path}{self.created[parent]:010d}" if op.sequence else op.path
        if path in self.nodes:
            raise NodeExists(path, "")
        self.nodes[path], self.created[path] = [op.data, 0, op.ephemeral], 0
        self.created[parent] += 1
        return path

    def end_session(self):
        for path in [p for p, node in self.nodes.items() if node[2]]:
            del self.nodes[path], self.created[path]


async def agree(store, model):
    found = await store.get_many(list(model.nodes))
    assert [(n.data, n.version, n.ephemeral_owner != 0) for n in found] == [
        tuple(node) for node in model.nodes.values()
    ]
    for path in model.nodes:
        assert await store.children(path) == model.children(path)


async def run_against_model(open_store, steps):
    """`open_store` opens the same tree, empty at first, as a new session each time."""
    store, model = await open_store(), Model()
    for step in steps:
        if step == REOPEN:
            await store.close()
            store = await open_store()
            model.end_session()
        else:
            attempt = model.copy()
            try:
                expected = [attempt.apply(op) for op in step]
            except StoreError as error:
                with pytest.raises(type(error)):
                    await store.multi(step)
            else:
                assert await store.multi(step) == expected
                model = attempt
        await agree(store, model)
    await store.close()
