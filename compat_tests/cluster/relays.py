"""Every road of a cluster led through relays, so that a broker can be cut off without rights on the machine.

A broker is reached through its relay, and reaches ZooKeeper through another. Who opened a connection to a
relay is found among the sockets of the brokers' processes: a broker that is cut off reaches nobody either.
What was under way when the road was cut is held, as TCP would, and passes when it is mended.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

import psutil

from compat_tests.cluster.places import Place
from compat_tests.servers import HOST, free_port

if TYPE_CHECKING:
    from compat_tests.servers import Zookeeper

ZOOKEEPER = 0
"""ZooKeeper's number among those of the brokers."""


class Relays:
    """Owner of the relays, their event loop and its thread."""

    def __init__(self, zookeeper: Zookeeper) -> None:
        self._zookeeper = zookeeper
        self._pids: dict[int, int] = {}
        self._cut: set[int] = set()
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._links: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def place(self, number: int) -> Place:
        port = free_port()
        advertised = self._open(None, number, port)
        road = self._open(number, ZOOKEEPER, self._zookeeper.port)
        return Place(port, advertised, f"{HOST}:{road}")

    def knows(self, number: int, pid: int) -> None:
        self._pids[number] = pid

    def cut(self, number: int) -> None:
        self._cut.add(number)

    def mend(self, number: int) -> None:
        self._cut.discard(number)
        self._loop.call_soon_threadsafe(self._wake)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _open(self, source: int | None, target: int, target_port: int) -> int:
        """A relay that stays; without a source it is open to all."""

        async def opened() -> int:
            def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                link = self._loop.create_task(self._link(reader, writer, source, target, target_port))
                self._links.add(link)
                link.add_done_callback(self._links.discard)

            server = await asyncio.start_server(connected, HOST, free_port())
            self._servers.append(server)
            return server.sockets[0].getsockname()[1]

        return asyncio.run_coroutine_threadsafe(opened(), self._loop).result(10)

    async def _link(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        source: int | None,
        target: int,
        target_port: int,
    ) -> None:
        if source is None:
            source = self._who_speaks_from(writer.get_extra_info("peername")[1])
        await self._open_road(source, target)
        try:
            back_reader, back_writer = await asyncio.open_connection(HOST, target_port)
        except OSError:
            writer.transport.abort()
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pass(reader, back_writer, source, target))
            group.create_task(self._pass(back_reader, writer, source, target))

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: int | None, target: int
    ) -> None:
        with contextlib.suppress(OSError):
            while some := await reader.read(65536):
                await self._open_road(source, target)
                writer.write(some)
                await writer.drain()
            await self._open_road(source, target)
        writer.close()

    async def _open_road(self, source: int | None, target: int) -> None:
        """Wait until what is sent between the two arrives; a broker always reaches itself."""
        while source != target and self._cut & {source, target}:
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _who_speaks_from(self, port: int) -> int | None:
        """The broker whose process has the other end of a connection; None for a client."""
        for number, pid in self._pids.items():
            with contextlib.suppress(psutil.Error):
                if any(s.laddr.port == port for s in psutil.Process(pid).net_connections("tcp")):
                    return number
        return None

    async def _shut(self) -> None:
        for server in self._servers:
            server.close()
        for link in self._links:
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
