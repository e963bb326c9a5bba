"""What both stores promise."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.cluster.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionState,
    SetData,
    StoreClosed,
)


async def test_a_node_keeps_its_data_and_counts_its_changes(store):
    await store.create("/a", b"one")
    created = await store.get("/a")
    assert (created.data, created.version, created.czxid) == (b"one", 0, created.mzxid)
    assert created.ctime_ms == created.mtime_ms
    assert await store.set("/a", b"two", version=0) == 1
    changed = await store.get("/a")
    assert (changed.data, changed.version) == (b"two", 1)
    assert changed.czxid == created.czxid < changed.mzxid
    assert changed.ctime_ms == created.ctime_ms <= changed.mtime_ms


async def test_refusals_have_their_own_errors(store):
    await store.create("/a")
    await store.create("/a/b")
    await store.create("/e", ephemeral=True)
    for refused, attempt in [
        (NodeExists, store.create("/a")),
        (NoNode, store.create("/x/y")),
        (NoNode, store.get("/x")),
        (NoNode, store.children("/x")),
        (NotEmpty, store.delete("/a")),
        (NoNode, store.delete("/x")),
        (BadVersion, store.set("/a", b"", version=7)),
        (BadVersion, store.delete("/a/b", version=7)),
        (NoChildrenForEphemerals, store.create("/e/child")),
        (NodeExists, store.create("/")),
        (NotEmpty, store.delete("/")),
    ]:
        with pytest.raises(refused) as info:
            await attempt
        assert info.value.op_index is None


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/a/../b", "/.", "/a\0"])
async def test_a_malformed_path_is_a_mistake_of_the_caller(store, path):
    with pytest.raises(ValueError, match="path"):
        await store.create(path)


async def test_sequence_numbers_count_creations_and_not_deletions(store):
    """As seen on ZooKeeper 3.8."""
    await store.create("/t")
    assert await store.create("/t/s-", sequence=True) == "/t/s-0000000000"
    await store.create("/t/x")
    await store.delete("/t/x")
    assert await store.create("/t/s-", sequence=True) == "/t/s-0000000002"
    assert (await store.get("/t")).cversion == 4


async def test_a_refused_multi_changes_nothing_and_names_the_operation(store):
    await store.create("/a", b"old")
    with pytest.raises(BadVersion, match="operation 2 of the multi") as info:
        await store.multi([SetData("/a", b"new"), Create("/b"), Check("/a", 9), Create("/c")])
    assert (info.value.op_index, info.value.path) == (2, "/a")
    assert (await store.get("/a")).data == b"old"
    assert await store.children("/") == ["a"]


async def test_later_operations_of_a_multi_see_the_earlier_ones(store):
    results = await store.multi(
        [Create("/a"), Create("/a/b", b"1"), SetData("/a/b", b"2", 0), Check("/a/b", 1), Delete("/a/b", 1)]
    )
    assert results == ["/a", "/a/b", 1, None, None]
    assert await store.children("/a") == []


async def test_ephemerals_vanish_with_the_session_and_the_rest_stays(open_store):
    first = await open_store()
    await first.create("/keep", b"x")
    await first.create("/gone", ephemeral=True)
    assert (await first.get("/gone")).ephemeral_owner == first.session_id != 0
    await first.close()
    second = await open_store()
    assert await second.children("/") == ["keep"]
    assert second.session_id != first.session_id


async def test_watches_fire_after_the_commit_and_before_the_caller_goes_on(store):
    await store.create("/a")
    heard = []
    await store.watch_data("/a", lambda path: heard.append(("data", path)))
    stop = await store.watch_children("/a", lambda path: heard.append(("children", path)))
    await store.set("/a", b"x")
    assert heard == [("data", "/a")]
    await store.multi([Create("/a/1"), Create("/a/2")])
    assert heard[1:] == [("children", "/a")]
    stop()
    await store.delete("/a/1")
    assert len(heard) == 2


async def test_a_refused_change_wakes_nobody(store):
    heard = []
    await store.watch_children("/", heard.append)
    with pytest.raises(NodeExists):
        await store.multi([Create("/a"), Create("/a")])
    await store.exists("/a")
    assert heard == []


async def test_a_watch_that_fails_does_not_silence_the_others(store, caplog):
    heard = []
    await store.watch_children("/", lambda path: 1 / 0)
    await store.watch_children("/", heard.append)
    await store.create("/a")
    assert heard == ["/"]
    assert "ZeroDivisionError" in caplog.text


async def test_a_closed_store_says_so(store):
    await store.close()
    await store.close()
    for attempt in (store.get("/"), store.create("/a"), store.watch_data("/a", print)):
        with pytest.raises(StoreClosed):
            await attempt


async def test_many_nodes_are_read_in_the_order_asked(store):
    await store.multi([Create(f"/{number}", str(number).encode()) for number in range(2500)])
    found = await store.get_many([f"/{number}" for number in reversed(range(2501))])
    assert [node and node.data for node in found] == [None, *(b"%d" % n for n in reversed(range(2500)))]
    assert await store.get_many([]) == []


async def test_nothing_to_do_is_done_at_once(store):
    assert await store.multi([]) == []


async def test_a_sequence_node_may_have_no_name_of_its_own(store):
    await store.create("/queue")
    assert await store.create("/queue/", sequence=True) == "/queue/0000000000"


async def test_data_is_watched_from_before_the_node_exists_until_after_it_is_gone(store):
    heard = []
    stop = await store.watch_data("/a", heard.append)
    await store.create("/a")
    await store.set("/a", b"1")
    await store.create("/a/child")
    await store.delete("/a/child")
    await store.delete("/a")
    await store.create("/a")
    assert heard == ["/a"] * 4
    stop()
    stop()
    await store.delete("/a")
    assert len(heard) == 4


async def test_children_of_a_node_that_comes_later_are_watched(store):
    heard = []
    await store.watch_children("/late", heard.append)
    await store.multi([Create("/late"), Create("/late/1")])
    await store.exists("/late")
    assert heard
    heard.clear()
    await store.create("/late/2")
    assert heard == ["/late"]


async def test_every_listener_of_a_path_hears_until_it_leaves(store):
    first, second = [], []
    stop = await store.watch_data("/a", first.append)
    await store.watch_data("/a", second.append)
    await store.create("/a")
    stop()
    await store.set("/a", b"1")
    assert (first, second) == (["/a"], ["/a", "/a"])


async def test_whoever_reads_when_told_ends_up_with_the_last_state(store):
    """Changes race with reads: the reader must never stop at a state that is not the last."""
    await store.create("/a", b"0")
    news, seen = asyncio.Event(), []
    await store.watch_data("/a", lambda path: news.set())

    async def follow():
        while not seen or seen[-1] != b"99":
            await news.wait()
            news.clear()
            seen.append((await store.get("/a")).data)

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(follow())
        for number in range(1, 100):
            tasks.create_task(store.set("/a", b"%d" % number))
    assert seen[-1] == b"99"


async def test_a_session_that_lives_says_so(store):
    assert store.session_state is SessionState.CONNECTED
    assert store.session_id != 0
    store.on_session(print)()
