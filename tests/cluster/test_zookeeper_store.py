"""What only the store in ZooKeeper does, against the real one."""

from __future__ import annotations

import asyncio
import signal
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from kazoo.client import KazooClient

from compat_tests.servers import HOST, Zookeeper, free_port
from pykafka_broker.cluster.store import (
    ConnectionLost,
    Create,
    NotAuthorized,
    SessionExpired,
    SessionState,
    StoreClosed,
    StoreError,
    TooLarge,
)
from pykafka_broker.cluster.zookeeper_session import Login
from pykafka_broker.cluster.zookeeper_store import ZookeeperSettings, ZookeeperStore

from .relay import Relay
from .tree_model import HISTORIES, run_against_model

CONNECTED, SUSPENDED, EXPIRED = SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.EXPIRED


@pytest.fixture
def kind():
    return "zookeeper"


@pytest.fixture
async def relay(zookeeper):
    opened = await Relay(HOST, zookeeper.port).open()
    yield opened
    await opened.cut()


@pytest.fixture
async def far_store(relay, settings):
    """The test's tree, seen over a network that can be cut."""
    chroot = settings.connect.partition("/")[2]
    opened = await ZookeeperStore.open(replace(settings, connect=f"{HOST}:{relay.port}/{chroot}"))
    yield opened
    await opened.close()


@pytest.fixture
async def own_zookeeper(zookeeper, tmp_path):
    """A ZooKeeper that the test may stop; the shared one is asked for so that a machine without Java skips."""
    server = Zookeeper(tmp_path / "own")
    await asyncio.to_thread(server.start)
    yield server
    server.close()


class States:
    """The states a session went through."""

    def __init__(self, store):
        self.told = []
        self._changed = asyncio.Event()
        store.on_session(self._hear)

    def _hear(self, state):
        self.told.append(state)
        self._changed.set()

    async def reach(self, *states):
        async with asyncio.timeout(30):
            while tuple(self.told) != states:
                self._changed.clear()
                await self._changed.wait()


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - a condition of any kind has no event
            await asyncio.sleep(0.01)


def end_session(store, zookeeper):
    """Closes the session of a store that is cut off (or it would take it back): to the store it expired."""
    client = store._session._client
    thief = KazooClient(zookeeper.connect, client_id=(client._session_id, client._session_passwd))
    thief.start()
    thief.stop()
    thief.close()


async def test_the_chroot_is_made_where_it_is_missing_and_nothing_is_seen_of_the_rest(zookeeper):
    name = uuid.uuid4().hex
    inner = await ZookeeperStore.open(ZookeeperSettings(f"{zookeeper.connect}/{name}/in/side/"))
    outer = await ZookeeperStore.open(ZookeeperSettings(f" {zookeeper.connect} , {zookeeper.connect}/{name}"))
    heard = []
    await inner.watch_children("/", heard.append)
    await outer.create("/in/side/a", b"1")
    assert (await inner.get("/a")).data == b"1"
    assert await inner.create("/s-", sequence=True) == "/s-0000000001"
    assert await inner.multi([Create("/b"), Create("/b/c")]) == ["/b", "/b/c"]
    assert await outer.children("/in/side") == ["a", "b", "s-0000000001"]
    await until(lambda: heard == ["/"] * 3)
    await outer.close()
    await inner.close()


async def test_an_expired_session_is_told_and_replaced_and_the_watches_stay(far_store, relay, zookeeper):
    store, states, heard, first = far_store, States(far_store), [], far_store.session_id
    await store.create("/mine", ephemeral=True)
    await store.create("/kept")
    await store.watch_data("/mine", heard.append)
    await store.watch_data("/kept", heard.append)
    await relay.cut()
    await states.reach(SUSPENDED)
    await asyncio.to_thread(end_session, store, zookeeper)
    await relay.open()
    await states.reach(SUSPENDED, EXPIRED, CONNECTED)
    assert store.session_id not in (0, first)
    assert not await store.exists("/mine")
    await until(lambda: "/mine" in heard)
    assert heard == ["/mine"], "what did not change is not told"
    await store.create("/mine", ephemeral=True)
    assert (await store.get("/mine")).ephemeral_owner == store.session_id
    await store.set("/kept", b"1")
    assert heard == ["/mine", "/mine", "/kept"]


async def test_changes_under_way_fail_with_the_session_and_reads_carry_on(
    far_store, relay, settings, zookeeper
):
    states = States(far_store)
    relay.hold_answers()
    read = asyncio.create_task(far_store.children("/"))
    change = asyncio.create_task(far_store.create("/a"))
    observer = await ZookeeperStore.open(settings)
    made = asyncio.Event()
    await observer.watch_children("/", lambda path: made.set())
    if not await observer.exists("/a"):
        await asyncio.wait_for(made.wait(), 30)
    await relay.cut()
    with pytest.raises(ConnectionLost):
        await change
    waiting = asyncio.create_task(far_store.create("/b"))
    await states.reach(SUSPENDED)
    await asyncio.to_thread(end_session, far_store, zookeeper)
    await relay.open()
    with pytest.raises(SessionExpired):
        await waiting
    assert await read == ["a"]
    assert states.told[1:2] == [EXPIRED]
    await observer.close()


async def test_what_changed_while_cut_off_is_told_when_connected_again(far_store, relay, settings):
    near = await ZookeeperStore.open(settings)
    for path in ("/data", "/same", "/parent", "/quiet"):
        await near.create(path)
    states, heard, session = States(far_store), [], far_store.session_id
    await far_store.watch_data("/data", heard.append)
    await far_store.watch_data("/same", heard.append)
    await far_store.watch_data("/new", heard.append)
    await far_store.watch_children("/parent", heard.append)
    await far_store.watch_children("/quiet", heard.append)
    await far_store.watch_children("/absent", heard.append)
    await relay.cut()
    await states.reach(SUSPENDED)
    await near.set("/data", b"1")
    await near.create("/new")
    await near.create("/parent/child")
    await near.create("/absent")
    await near.create("/absent/child")
    await near.set("/quiet", b"not about its children")
    await relay.open()
    await states.reach(SUSPENDED, CONNECTED)
    await until(lambda: len(heard) >= 4)
    assert await far_store.get_many(["/data"])
    assert sorted(set(heard)) == ["/absent", "/data", "/new", "/parent"]
    assert far_store.session_id == session
    heard.clear()
    await near.create("/quiet/child")
    await near.set("/same", b"1")
    await until(lambda: sorted(heard) == ["/quiet", "/same"])
    await near.close()


async def test_zookeeper_may_be_stopped_and_started_again(own_zookeeper):
    store = await ZookeeperStore.open(ZookeeperSettings(own_zookeeper.connect, session_timeout_ms=30_000))
    states, heard = States(store), []
    await store.create("/a", b"kept", ephemeral=True)
    await store.watch_data("/a", heard.append)
    await asyncio.to_thread(own_zookeeper.stop)
    await states.reach(SUSPENDED)
    read, change = asyncio.create_task(store.get("/a")), asyncio.create_task(store.set("/a", b"new"))
    await asyncio.to_thread(own_zookeeper.start)
    assert (await read).data == b"kept"
    assert await change == 1
    await states.reach(SUSPENDED, CONNECTED)
    assert (await store.get("/a")).ephemeral_owner == store.session_id
    await until(lambda: heard)
    await store.close()


async def test_a_change_that_zookeeper_died_on_has_an_unknown_outcome(own_zookeeper):
    store = await ZookeeperStore.open(ZookeeperSettings(own_zookeeper.connect, session_timeout_ms=30_000))
    own_zookeeper._process.send_signal(signal.SIGSTOP)
    changes = [asyncio.create_task(store.create(f"/{number}")) for number in range(500)]
    await asyncio.sleep(0)  # they are on their way, as many as may be
    own_zookeeper.kill()
    done, _ = await asyncio.wait(changes, timeout=30, return_when=asyncio.FIRST_EXCEPTION)
    assert {type(task.exception()) for task in done} == {ConnectionLost}
    await asyncio.to_thread(own_zookeeper.start)
    outcomes = await asyncio.gather(*changes, return_exceptions=True)
    made = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert made, "those that had not been sent waited"
    assert set(made) <= {f"/{name}" for name in await store.children("/")}
    await store.close()


async def test_closing_ends_what_is_under_way_even_without_zookeeper(own_zookeeper):
    store = await ZookeeperStore.open(ZookeeperSettings(own_zookeeper.connect))
    own_zookeeper.kill()
    reading, writing = asyncio.create_task(store.get("/")), asyncio.create_task(store.create("/a"))
    await until(lambda: store.session_state is SUSPENDED)
    async with asyncio.timeout(15):
        await store.close()
    for task in (reading, writing):
        with pytest.raises((StoreClosed, ConnectionLost)):
            await task


async def test_a_zookeeper_that_is_not_there_is_reported_in_time():
    settings = ZookeeperSettings(f"{HOST}:{free_port()}", connection_timeout_ms=300)
    with pytest.raises(StoreError, match="cannot reach ZooKeeper"):
        await ZookeeperStore.open(settings)


async def test_nodes_belong_to_the_login_and_secrets_are_hidden(settings, zookeeper):
    """The access lists are those of Kafka with zookeeper.set.acl."""
    kafka = replace(settings, set_acl=True, login=Login("kafka", "secret"))
    owner = await ZookeeperStore.open(kafka)
    stranger = await ZookeeperStore.open(settings)
    await owner.multi([Create("/config"), Create("/config/users"), Create("/config/topics", b"x")])
    await owner.create("/config/users/alice", b"hash")
    assert (await stranger.get("/config/topics")).data == b"x"
    for attempt in (
        stranger.get("/config/users/alice"),
        stranger.set("/config/topics", b"y"),
        stranger.create("/config/topics/t"),
        stranger.watch_children("/config/users", print),
    ):
        with pytest.raises(NotAuthorized):
            await attempt
    again = await ZookeeperStore.open(kafka)
    assert (await again.get("/config/users/alice")).data == b"hash"
    for store in (owner, stranger, again):
        await store.close()


class SaslZookeeper(Zookeeper):
    """Knows one user, as ZooKeeper beside a secured Kafka does."""

    def _command(self):
        jaas = self.directory / "jaas.conf"
        module = "org.apache.zookeeper.server.auth.DigestLoginModule"
        jaas.write_text(f'Server {{ {module} required user_kafka="secret"; }};')
        java, *rest = super()._command()
        return [java, f"-Djava.security.auth.login.config={jaas}", *rest]


async def test_a_login_by_sasl_is_kafkas_own(zookeeper, tmp_path):
    provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    server = SaslZookeeper(tmp_path, {"authProvider.1": provider})
    try:
        await asyncio.to_thread(server.start)
        good = ZookeeperSettings(server.connect, set_acl=True, login=Login("kafka", "secret", "sasl"))
        owner = await ZookeeperStore.open(good)
        await owner.create("/a")
        stranger = await ZookeeperStore.open(ZookeeperSettings(server.connect))
        with pytest.raises(NotAuthorized):
            await stranger.set("/a", b"1")
        assert ("sasl", "kafka") in await asyncio.to_thread(owners, server, "/a")
        with pytest.raises(StoreError, match="login was refused"):
            await ZookeeperStore.open(replace(good, login=Login("kafka", "wrong", "sasl")))
        await owner.close()
        await stranger.close()
    finally:
        server.close()


def owners(server, path):
    client = KazooClient(server.connect)
    client.start()
    acl, _ = client.get_acls(path)
    client.stop()
    client.close()
    return [tuple(entry.id) for entry in acl]


async def test_a_login_outlives_its_connection(far_store, relay, settings):
    chroot = settings.connect.partition("/")[2]
    kafka = ZookeeperSettings(
        f"{HOST}:{relay.port}/{chroot}",
        set_acl=True,
        login=Login("kafka", "secret"),
        session_timeout_ms=10_000,
    )
    store = await ZookeeperStore.open(kafka)
    states = States(store)
    await store.create("/a")
    await relay.cut()
    await states.reach(SUSPENDED)
    await relay.open()
    assert await store.set("/a", b"1") == 1
    await store.close()


async def test_access_lists_need_somebody_to_own_the_nodes(settings):
    with pytest.raises(StoreError, match="login"):
        await ZookeeperStore.open(replace(settings, set_acl=True))


async def test_too_much_for_one_request_is_refused_before_it_costs_the_connection(store):
    states = States(store)
    with pytest.raises(TooLarge):
        await store.multi([Create(f"/{number}", b"x" * 1000) for number in range(1000)])
    with pytest.raises(TooLarge):
        await store.create("/a", b"x" * (1 << 20))
    await store.create("/a", b"x" * 1_000_000)
    assert await store.children("/") == ["a"]
    assert states.told == []


@hypothesis_settings(max_examples=20)
@given(HISTORIES)
def test_any_history_matches_a_plain_model(zookeeper, steps):
    settings = ZookeeperSettings(f"{zookeeper.connect}/{uuid.uuid4().hex}")
    asyncio.run(run_against_model(lambda: ZookeeperStore.open(settings), steps))
