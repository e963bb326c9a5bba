"""kazoo's client brought to the event loop: one session after another, and the requests under way.

kazoo works in a thread of its own. Whatever it has to say (answers, watches, states of the session) goes
through one inbox, so the loop hears it in the order ZooKeeper said it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException, SessionExpiredError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import Exists
from kazoo.protocol.states import KazooState, KeeperState

from pykafka_broker.cluster.store import SessionState, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.cluster.zookeeper_requests import Request

logger = logging.getLogger(__name__)

# kazoo wakes its thread by a byte through a socket pair for each request, and blocks when some 278 lie there
# unread, as they do while ZooKeeper does not answer.
_MAX_IN_FLIGHT = 100
_RECONNECT = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 1.0}
_RESTART_SECONDS = 1.0
_CONNECT_SECONDS = 3.0
"""A server that just starts may take a connection and never answer on it; then it is time for the next."""


@dataclass(frozen=True, slots=True)
class Login:
    """How to log in to ZooKeeper: its own `digest` scheme, or SASL's DIGEST-MD5 as Kafka's JAAS file asks for."""

    username: str
    password: str
    scheme: Literal["digest", "sasl"] = "digest"


@dataclass(slots=True, eq=False)
class _Call:
    request: Request
    future: asyncio.Future[Any]


class _Inbox:
    """Calls from kazoo's thread to the loop, in order; a burst wakes the loop once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def put(self, call: Callable[[], None]) -> None:
        self._calls.append(call)
        if not self._scheduled and not self._loop.is_closed():
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        # First: what is put from now on either is seen below or asks for another turn.
        self._scheduled = False
        while self._calls:
            try:
                self._calls.popleft()()
            except Exception:  # the rest of the news must not wait behind one listener's mistake
                logger.exception("an event of the ZooKeeper session was not handled")


class _Direct(SequentialThreadingHandler):  # type: ignore[misc] # kazoo is untyped
    """Runs callbacks at once on the connection's thread: they only fill the inbox, and stay in order."""

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def create_connection(self, *args: Any, timeout: float, **kwargs: Any) -> Any:
        return super().create_connection(*args, timeout=min(timeout, _CONNECT_SECONDS), **kwargs)

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)


class ZookeeperSession:
    """A connection that comes back, and a session that is replaced when it expires.

    Owner: the store, on its event loop. `told` hears each new state on the loop; by then it is the state.
    """

    def __init__(
        self, hosts: str, timeout_ms: int, login: Login | None, told: Callable[[SessionState], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._inbox = _Inbox(self._loop)
        self._told = told
        self.state = SessionState.SUSPENDED
        self.id = 0
        self._usable = False
        self._waiting: deque[_Call] = deque()
        self._in_flight: set[_Call] = set()
        self._connected = asyncio.Event()
        self._closing = False
        self._failure: str | None = None
        self._restarting: asyncio.Task[None] | None = None
        self._client = KazooClient(
            _enough(hosts, timeout_ms),
            timeout_ms / 1000,
            handler=_Direct(),
            connection_retry=_RECONNECT,
            **_login(login),
        )
        self._client.add_listener(self._state_changed)

    async def start(self, timeout_ms: int) -> None:
        """Connected, or StoreError after the time given; it is to be closed in either case."""
        self._client.start_async()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._connected.wait()
                await self._answered_once()
        except (TimeoutError, KazooException):
            why = self._failure or f"not connected within {timeout_ms} ms"
            raise StoreError("/", f"cannot reach ZooKeeper: {why}") from None

    async def _answered_once(self) -> None:
        """The login comes after the connection: only an answer shows that it was good."""
        while True:
            try:
                await self.send(Exists("/", None))
                break
            except ConnectionLoss:
                continue

    def send(self, request: Request) -> asyncio.Future[Any]:
        """Queues a request; the future has kazoo's answer or error. Requests are served in order."""
        call = _Call(request, self._loop.create_future())
        self._waiting.append(call)
        self._pump()
        return call.future

    def from_thread(self, call: Callable[[], None]) -> None:
        """Runs a call on the loop, behind everything kazoo said before."""
        self._inbox.put(call)

    async def close(self) -> None:
        """Ends the session; what is under way fails."""
        self._closing = True
        if self._restarting is not None:
            self._restarting.cancel()
            await asyncio.gather(self._restarting, return_exceptions=True)
        await asyncio.to_thread(self._stop)
        self._fail_all()

    def _pump(self) -> None:
        while self._waiting and self._usable and len(self._in_flight) < _MAX_IN_FLIGHT:
            call = self._waiting.popleft()
            if call.future.done():
                continue  # its caller went away
            self._in_flight.add(call)
            result = self._client.handler.async_result()
            result.rawlink(lambda answer, call=call: self._inbox.put(partial(self._answered, call, answer)))
            self._client._call(call.request, result)  # noqa: SLF001 - the public calls rewrite our paths

    def _answered(self, call: _Call, answer: Any) -> None:
        if call not in self._in_flight:
            return
        self._in_flight.discard(call)
        if isinstance(answer.exception, ConnectionLoss):
            # The news of the broken connection is right behind: what is sent before it only fails too.
            self._usable = False
        if not call.future.done():
            if answer.successful():
                call.future.set_result(answer.value)
            else:
                call.future.set_exception(answer.exception)
        self._pump()

    def _fail_all(self) -> None:
        failed = [*self._in_flight, *self._waiting]
        self._in_flight.clear()
        self._waiting.clear()
        for call in failed:
            if not call.future.done():
                call.future.set_exception(SessionExpiredError())

    def _state_changed(self, state: str) -> None:
        """On kazoo's thread."""
        client_id = self._client.client_id
        session_id = client_id[0] if client_id else 0
        self._inbox.put(partial(self._apply_state, state, self._client.client_state, session_id))

    def _apply_state(self, state: str, detail: str, session_id: int) -> None:
        if self._closing:
            return
        self._usable = state == KazooState.CONNECTED
        if state == KazooState.CONNECTED:
            self.id = session_id
            self.state = SessionState.CONNECTED
            self._connected.set()
            logger.info("connected to ZooKeeper, session 0x%x", session_id & (1 << 64) - 1)
        elif state == KazooState.SUSPENDED:
            self.state = SessionState.SUSPENDED
            logger.warning("the connection to ZooKeeper broke")
        else:
            self.state = SessionState.EXPIRED
            logger.warning("the ZooKeeper session ended (%s)", detail)
            self._fail_all()
            if detail != KeeperState.EXPIRED_SESSION:
                # kazoo's thread gave up: refused login, or an answer that it could not read.
                self._failure = f"the login was refused ({detail})"
                self._restarting = self._loop.create_task(self._restart())
        self._told(self.state)
        self._pump()

    async def _restart(self) -> None:
        await asyncio.sleep(_RESTART_SECONDS)
        await asyncio.to_thread(self._client.start_async)

    def _stop(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except (KazooException, OSError, AttributeError) as error:
            # A server that hangs holds kazoo's thread for a while; the session then ends by its timeout.
            logger.warning("the ZooKeeper session was not closed in order: %r", error)


def _enough(hosts: str, timeout_ms: int) -> str:
    """kazoo gives an answer to its greeting the session's timeout divided by the hosts, so name them again."""
    times = math.ceil(timeout_ms / 1000 / _CONNECT_SECONDS / (hosts.count(",") + 1))
    return ",".join([hosts] * max(times, 1))


def _login(login: Login | None) -> dict[str, Any]:
    if login is None:
        return {}
    if login.scheme == "digest":
        return {"auth_data": [("digest", f"{login.username}:{login.password}")]}
    options = {"mechanism": "DIGEST-MD5", "username": login.username, "password": login.password}
    return {"sasl_options": options}
