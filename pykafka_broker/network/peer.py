"""Our client to another broker: one connection, made when it is needed and made again when it was lost.

A request is sent in the highest version both sides know and answered by its correlation id. A peer that does not
answer in time, hangs up or sends nonsense loses the connection, and everybody who waits for an answer is told: as
answers come in order, none behind the missing one would have come either. Nothing is sent twice here; whether a
request may be repeated only its sender knows.
"""

from __future__ import annotations

import asyncio
import random
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from pykafka_broker.network.framing import FrameError, Framer
from pykafka_broker.protocol.api import APIS, ApiKey, RequestHeader, frame_request, read_response_header
from pykafka_broker.protocol.codec import decode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, MalformedError
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafka_broker.protocol.api import Api

_SCRATCH_BYTES: Final = 64 * 1024
_HANDSHAKE_VERSION: Final = 3  # served by every broker that can be in one cluster with us
_LAST_CORRELATION_ID: Final = 2**31 - 1
_API_OF: Final[Mapping[type[Any], Api]] = {api.request: api for api in APIS.values()}


class PeerError(ConnectionError):
    """The peer could not be asked, or did not answer; whether it did what was asked is not known."""


@dataclass(frozen=True, slots=True)
class PeerSettings:
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    max_frame: int = 2**31 - 1


@dataclass(slots=True)
class _Waiting:
    """A request under way. Owner: its connection."""

    api: Api
    version: int
    answer: asyncio.Future[Any]
    timer: asyncio.TimerHandle


class PeerConnection(asyncio.BufferedProtocol):
    """One connection, from its making to its loss. Owner: its Peer."""

    def __init__(self, client_id: str, max_frame: int) -> None:
        self._client_id = client_id
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._framer = Framer(self._scratch, max_frame)
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, _Waiting] = {}
        self._correlation_id = 0
        self._lost: str | None = None
        self.versions: Mapping[int, range] = {ApiKey.API_VERSIONS: range(_HANDSHAKE_VERSION + 1)}

    @property
    def is_open(self) -> bool:
        return self._lost is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"the connection was lost: {exc}" if exc else "the peer hung up")

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 -- the framer knows better
        return self._framer.receive_into()

    def buffer_updated(self, nbytes: int) -> None:
        self._framer.received(nbytes)
        try:
            while (frame := self._framer.next_frame()) is not None:
                # A small frame lies in the buffer that the next receive overwrites, and its reader is not here yet.
                self._receive(memoryview(bytes(frame)) if frame.obj is self._scratch.obj else frame)
        except (FrameError, MalformedError) as error:
            self.abort(f"the peer sent what cannot be read: {error}")
            return
        self._framer.keep()

    def eof_received(self) -> bool:
        return False

    def send(self, api: Api, version: int, request: object, timeout_ms: float) -> asyncio.Future[Any]:
        """The answer to come: PeerError if it does not, in time or at all."""
        answer = self._loop.create_future()
        if self._lost is not None:
            answer.set_exception(PeerError(self._lost))
            return answer
        number = self._correlation_id = (self._correlation_id + 1) & _LAST_CORRELATION_ID
        header = RequestHeader(api.key, version, number, self._client_id)
        self._transport.writelines(frame_request(header, request))
        timer = self._loop.call_later(
            timeout_ms / 1000, self.abort, f"no answer to {type(request).__name__} in {timeout_ms:g} ms"
        )
        self._waiting[number] = _Waiting(api, version, answer, timer)
        return answer

    def _receive(self, frame: memoryview) -> None:
        number = int.from_bytes(frame[:4], "big", signed=True)
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            raise MalformedError(f"an answer to nothing that was asked, with correlation id {number}")
        waiting.timer.cancel()
        try:
            _, start = read_response_header(waiting.api.key, waiting.version, frame)
            response = decode(waiting.api.response, waiting.version, frame, start)
        except MalformedError as error:
            _set(waiting.answer, PeerError(f"the answer cannot be read: {error}"))
            raise
        if not waiting.answer.done():  # else nobody waits for it any more
            waiting.answer.set_result(response)

    def abort(self, reason: str) -> None:
        """Closes the connection; whoever waits is told why."""
        self._fail(reason)
        self._transport.abort()

    def _fail(self, reason: str) -> None:
        if self._lost is None:
            self._lost = reason
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            each.timer.cancel()
            _set(each.answer, PeerError(self._lost))


def _set(answer: asyncio.Future[Any], error: PeerError) -> None:
    if not answer.done():
        answer.set_exception(error)


class Peer:
    """Another broker, to be asked. Owner of the connection to it; its own owner closes it.

    After a failed attempt the next one waits a little, longer every time; a call that would wait beyond its own
    timeout fails at once."""

    def __init__(self, host: str, port: int, client_id: str, settings: PeerSettings | None = None) -> None:
        self.host = host
        self.port = port
        self._client_id = client_id
        self._settings = settings or PeerSettings()
        self._connection: PeerConnection | None = None
        self._connecting = asyncio.Lock()
        self._closed = asyncio.Event()
        self._failures = 0
        self._not_before = 0.0

    def __repr__(self) -> str:
        return f"Peer({self.host}:{self.port})"

    async def call(
        self, request: object, *, newest: int | None = None, timeout_ms: float | None = None
    ) -> Any:
        """The answer to `request`, in the highest version both sides know, at most `newest`.

        PeerError if there is none, KafkaError with UNSUPPORTED_VERSION if the sides have no version in common."""
        allowed = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        loop = asyncio.get_running_loop()
        started = loop.time()
        connection = await self._connected(allowed)
        api = _API_OF[type(request)]
        version = _common_version(api, connection, newest)
        left = allowed - (loop.time() - started) * 1000
        return await connection.send(api, version, request, left)

    async def version(self, key: ApiKey, *, newest: int | None = None) -> int:
        """The version in which `call` would speak now."""
        connection = await self._connected(self._settings.request_timeout_ms)
        return _common_version(APIS[key], connection, newest)

    def interrupt(self) -> None:
        """Gives up what is under way: whoever waits gets PeerError, and the next call connects anew, at once."""
        if self._connection is not None:
            self._connection.abort("given up on our side")
            self._connection = None

    def close(self) -> None:
        """Whoever waits is told; nothing can be asked any more."""
        self._closed.set()
        if self._connection is not None:
            self._connection.abort("closed on our side")
            self._connection = None

    async def _connected(self, allowed_ms: float) -> PeerConnection:
        connection = self._connection
        if connection is not None and connection.is_open:
            return connection
        async with self._connecting:
            connection = self._connection
            if connection is None or not connection.is_open:
                await self._back_off(allowed_ms)
                connection = self._connection = await self._connect(allowed_ms)
            return connection

    async def _back_off(self, allowed_ms: float) -> None:
        delay = self._not_before - asyncio.get_running_loop().time()
        if delay * 1000 > allowed_ms:
            raise PeerError(f"{self.host}:{self.port} could not be reached, and is not tried again so soon")
        if delay > 0 and not self._closed.is_set():
            try:
                await asyncio.wait_for(self._closed.wait(), delay)
            except TimeoutError:
                return

    async def _connect(self, allowed_ms: float) -> PeerConnection:
        if self._closed.is_set():
            raise PeerError("closed on our side")
        settings = self._settings
        limit = min(allowed_ms, settings.connect_timeout_ms)
        connection: PeerConnection | None = None
        try:
            async with asyncio.timeout(limit / 1000):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: PeerConnection(self._client_id, settings.max_frame), self.host, self.port
                )
                await _handshake(connection, limit)
            if self._closed.is_set():
                raise PeerError("closed on our side")
        except BaseException as error:
            if connection is not None:
                connection.abort(f"no connection was made: {error}")
            self._note_failure()
            if isinstance(error, OSError):
                raise PeerError(f"{self.host}:{self.port} cannot be reached: {error}") from error
            raise
        self._failures = 0
        self._not_before = 0.0
        return connection

    def _note_failure(self) -> None:
        settings = self._settings
        delay = min(settings.reconnect_backoff_ms * 2**self._failures, settings.reconnect_backoff_max_ms)
        self._failures = min(self._failures + 1, 30)
        spread = random.uniform(0.8, 1.2)  # noqa: S311 -- so that brokers do not come back all at once
        self._not_before = asyncio.get_running_loop().time() + delay * spread / 1000


async def _handshake(connection: PeerConnection, timeout_ms: float) -> None:
    request = ApiVersionsRequest(client_software_name="pykafka-broker", client_software_version="1")
    answer = await connection.send(APIS[ApiKey.API_VERSIONS], _HANDSHAKE_VERSION, request, timeout_ms)
    if answer.error_code != ErrorCode.NONE:
        raise PeerError(f"ApiVersions was refused with error {answer.error_code}")
    connection.versions = {
        each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys
    }


def _common_version(api: Api, connection: PeerConnection, newest: int | None) -> int:
    theirs = connection.versions.get(api.key, range(0))
    ours = api.versions
    common = range(max(ours.start, theirs.start), min(ours.stop, theirs.stop))
    if newest is not None:
        common = range(common.start, min(common.stop, newest + 1))
    if not common:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"no common version of {api.key.name}: ours {ours}, theirs {theirs}",
        )
    return common[-1]
