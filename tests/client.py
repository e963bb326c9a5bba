"""A minimal client over asyncio streams, speaking with our own codec, for tests that need exact requests."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from pykafka_broker.protocol.api import APIS, ApiKey, RequestHeader, frame_request, read_response_header
from pykafka_broker.protocol.codec import decode


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation = 0

    @classmethod
    async def connect(cls, bootstrap: str) -> Client:
        host, _, port = bootstrap.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def send(self, key: ApiKey, version: int, request: object) -> int:
        self._correlation += 1
        self._writer.writelines(
            frame_request(RequestHeader(key, version, self._correlation, "test"), request)
        )
        await self._writer.drain()
        return self._correlation

    async def receive(self, key: ApiKey, version: int) -> Any:
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        frame = memoryview(await self._reader.readexactly(size))
        correlation, pos = read_response_header(key, version, frame)
        assert correlation <= self._correlation
        return decode(APIS[key].response, version, frame, pos)

    async def call(self, key: ApiKey, version: int, request: object) -> Any:
        await self.send(key, version, request)
        return await self.receive(key, version)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()
