"""A stretch of network between a client and a server that a test can cut and mend."""

from __future__ import annotations

import asyncio
import contextlib


class Relay:
    """Passes bytes between its own port and the server's; owned by the test that opened it."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.StreamWriter] = set()
        self._answering = asyncio.Event()
        self._answering.set()
        self.port = 0

    async def open(self) -> Relay:
        """Begins to pass, on the same port each time."""
        self._server = await asyncio.start_server(self._connected, self._target[0], self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self._answering.set()
        return self

    def hold_answers(self) -> None:
        """What the server says is held back from now on, until the next `open`."""
        self._answering.clear()

    async def cut(self) -> None:
        """Breaks every connection and refuses new ones."""
        assert self._server is not None
        self._server.close()
        for link in self._links:
            link.transport.abort()
        await asyncio.sleep(0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            server_reader, server_writer = await asyncio.open_connection(*self._target)
            self._links |= {writer, server_writer}
            answers = asyncio.create_task(self._pass(server_reader, writer, self._answering))
            await self._pass(reader, server_writer)
            await answers

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        allowed: asyncio.Event | None = None,
    ) -> None:
        with contextlib.suppress(OSError):
            while some := await reader.read(65536):
                if allowed is not None:
                    await allowed.wait()
                writer.write(some)
        self._links.discard(writer)
        writer.close()
