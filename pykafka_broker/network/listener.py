"""Listening sockets and the connections that came through them, with Kafka's limits on both."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pykafka_broker.network.connection import Connection, Dispatch

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)

SCRATCH_BYTES = 256 * 1024
SHUTDOWN_GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    max_frame: int = 100 * 1024 * 1024
    max_connections: int = 2**31 - 1
    max_connections_per_ip: int = 2**31 - 1
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    max_idle_ms: int = 600_000
    send_buffer: int = -1
    """SO_SNDBUF; small, as Kafka's default is, keeps what is sent in the processor's cache. -1 for the system's own."""
    receive_buffer: int = -1
    """SO_RCVBUF, likewise."""


class Listeners:
    """Owner of all listening sockets and connections of one broker; the limits count across them."""

    def __init__(self, limits: Limits, backlog: int = 50) -> None:
        self._dispatch: Dispatch | None = None
        self._limits = limits
        self._backlog = backlog
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._held: dict[Connection, None] = {}  # in the order they came
        self._per_ip: Counter[str] = Counter()
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    async def listen(self, name: str, host: str, port: int) -> tuple[str, int]:
        """Bind one listener; gives the address bound, the real port where 0 was asked."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: self._connection(name),
            host or None,
            port,
            backlog=self._backlog,
            start_serving=False,
        )
        self._servers.append(server)
        for listening in server.sockets:  # what they have, their connections inherit
            for option, size in (
                (socket.SO_SNDBUF, self._limits.send_buffer),
                (socket.SO_RCVBUF, self._limits.receive_buffer),
            ):
                if size >= 0:
                    listening.setsockopt(socket.SOL_SOCKET, option, size)
        bound = server.sockets[0].getsockname()
        return bound[0], bound[1]

    def _connection(self, listener: str) -> Connection:
        assert self._dispatch is not None
        return Connection(
            self._dispatch, self._scratch, self._limits.max_frame, listener, self._admit, self._forget
        )

    async def start(self, dispatch: Dispatch) -> None:
        """From now on requests are answered, by this."""
        self._dispatch = dispatch
        for server in self._servers:
            await server.start_serving()
        if self._limits.max_idle_ms > 0:
            self._sweeper = asyncio.create_task(self._close_idle())

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        for server in self._servers:
            server.close()
        connections = list(self._connections)
        await asyncio.gather(*(connection.drained() for connection in connections))
        for connection in connections:
            connection.close()
        for server in self._servers:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(server.wait_closed(), SHUTDOWN_GRACE_S)

    def _admit(self, connection: Connection) -> bool:
        limits = self._limits
        allowed = limits.per_ip_overrides.get(connection.host, limits.max_connections_per_ip)
        self._connections.add(connection)
        self._per_ip[connection.host] += 1
        if self._per_ip[connection.host] > allowed:
            log.info("refused a connection from %s: more than %d from one address", connection.host, allowed)
            return False
        if len(self._connections) - len(self._held) > limits.max_connections:
            return self._hold(connection)
        return True

    def _hold(self, connection: Connection) -> bool:
        """As in Kafka, one connection too many is not refused but waits for another to end; the queue for that is the
        backlog."""
        if len(self._held) >= self._backlog:
            log.info(
                "refused a connection from %s: %d are served, %d wait",
                connection.host,
                self._limits.max_connections,
                len(self._held),
            )
            return False
        self._held[connection] = None
        connection.hold()
        return True

    def _forget(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.discard(connection)
            self._held.pop(connection, None)
            if self._held and len(self._connections) - len(self._held) < self._limits.max_connections:
                first = next(iter(self._held))
                del self._held[first]
                first.release()
            self._per_ip[connection.host] -= 1
            if not self._per_ip[connection.host]:
                del self._per_ip[connection.host]

    async def _close_idle(self) -> None:
        limit = self._limits.max_idle_ms / 1000
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(max(0.05, min(limit / 10, 10)))
            horizon = loop.time() - limit
            for connection in [c for c in self._connections if c.last_active < horizon]:
                log.info("closing an idle connection from %s", connection.host)
                connection.close()
