"""Connections over real sockets, with a dispatch of our own: order, back-pressure and limits."""

from __future__ import annotations

import asyncio
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pykafka_broker.network.connection import ProtocolViolation
from pykafka_broker.network.listener import SCRATCH_BYTES, Limits, Listeners

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pykafka_broker.network.connection import Client, Dispatch

HOST = "127.0.0.1"
MIB = 1 << 20


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def echo(client: Client, frame: memoryview) -> Any:
    return [framed(bytes(frame))]


@asynccontextmanager
async def listening(dispatch: Dispatch = echo, backlog: int = 50, **limits: Any) -> AsyncIterator[Listeners]:
    listeners = Listeners(Limits(**limits), backlog)
    _, listeners.port = await listeners.listen("PLAINTEXT", HOST, 0)  # type: ignore[attr-defined]
    await listeners.start(dispatch)
    try:
        yield listeners
    finally:
        await listeners.close()


class Peer:
    """One client; reads only when asked to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, listeners: Any, *, read_ahead: int = 65536) -> Peer:
        return cls(*await asyncio.open_connection(HOST, listeners.port, limit=read_ahead))

    def send(self, *bodies: bytes) -> None:
        self.writer.writelines(map(framed, bodies))

    async def receive(self) -> bytes:
        async with asyncio.timeout(10):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def ask(self, body: bytes) -> bytes:
        self.send(body)
        return await self.receive()

    async def hung_up_on(self) -> bool:
        try:
            async with asyncio.timeout(10):
                return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True

    async def is_silent(self) -> bool:
        try:
            async with asyncio.timeout(0.2):
                await self.reader.read(1)
        except TimeoutError:
            return True
        return False

    def leave(self) -> None:
        self.writer.transport.abort()


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 -- sockets give no event for this
            await asyncio.sleep(0.01)


async def test_port_nought_is_bound_to_a_real_one() -> None:
    async with listening() as one, listening() as two:
        assert one.port != two.port
        assert await (await Peer.connect(one)).ask(b"hello") == b"hello"


async def test_a_slow_request_holds_back_the_fast_ones_behind_it() -> None:
    gate = asyncio.Event()

    async def later(body: bytes) -> list[bytes]:
        await gate.wait()
        return [framed(body)]

    def dispatch(client: Client, frame: memoryview) -> Any:
        body = bytes(frame)
        return later(body) if body.startswith(b"slow") else [framed(body)]

    async with listening(dispatch) as listeners:
        peer, other = await Peer.connect(listeners), await Peer.connect(listeners)
        sent = [b"fast 1", b"slow 1", b"fast 2", b"fast 3", b"slow 2", b"fast 4"]
        peer.send(*sent)
        assert await peer.receive() == b"fast 1"
        assert await other.ask(b"me") == b"me", "only the same connection waits"
        gate.set()
        assert [await peer.receive() for _ in sent[1:]] == sent[1:]


async def test_answers_due_to_nobody_are_skipped_and_a_violation_ends_the_connection() -> None:
    def dispatch(client: Client, frame: memoryview) -> Any:
        if frame == b"bad":
            raise ProtocolViolation("as asked")
        return None if frame == b"silent" else [framed(bytes(frame))]

    async with listening(dispatch) as listeners:
        peer = await Peer.connect(listeners)
        peer.send(b"silent", b"loud", b"bad", b"too late")
        assert await peer.receive() == b"loud"
        assert await peer.hung_up_on()


async def test_a_client_that_never_reads_is_not_served_without_bound() -> None:
    asked = 0

    def dispatch(client: Client, frame: memoryview) -> Any:
        nonlocal asked
        asked += 1
        return [framed(bytes(MIB))]

    async with listening(dispatch) as listeners:
        stalled, other = await Peer.connect(listeners), await Peer.connect(listeners)
        stalled.send(*[b"more"] * 1000)
        await until(lambda: asked > 1)
        before = asked
        assert len(await other.ask(b"me")) == MIB
        assert asked - before < 30, "only what the sockets take is answered"
        await asyncio.sleep(0.2)
        assert asked < 30
        for _ in range(40):
            await stalled.receive()
        assert asked > 30, "it goes on as soon as somebody reads"
        stalled.leave()


async def test_a_huge_pipeline_behind_a_slow_request_stays_in_the_clients_hands() -> None:
    gate = asyncio.Event()

    async def later() -> list[bytes]:
        await gate.wait()
        return [framed(b"late")]

    served = 0

    def dispatch(client: Client, frame: memoryview) -> Any:
        nonlocal served
        served += 1
        return later() if frame == b"slow" else [framed(b"")]

    async with listening(dispatch) as listeners:
        peer = await Peer.connect(listeners)
        peer.send(b"slow")
        count = 64 * MIB // 1024
        peer.send(*[bytes(1020)] * count)
        await asyncio.sleep(0.3)
        unsent = peer.writer.transport.get_write_buffer_size()
        assert served == 1
        assert unsent > 40 * MIB, "kernel buffers and one receive are all that was taken"
        gate.set()
        assert await peer.receive() == b"late"
        for _ in range(count):
            assert await peer.receive() == b""


async def test_one_byte_at_a_time_is_a_frame_in_the_end_and_nobody_else_waits() -> None:
    async with listening() as listeners:
        slow, other = await Peer.connect(listeners), await Peer.connect(listeners)
        for byte in framed(b"patience"):
            slow.writer.write(bytes([byte]))
            await slow.writer.drain()
            assert await other.ask(b"quick") == b"quick"
        assert await slow.receive() == b"patience"


async def test_frames_larger_than_the_receive_buffer_pass_between_small_ones() -> None:
    async with listening() as listeners:
        peer = await Peer.connect(listeners)
        bodies = [b"a", bytes(range(256)) * (SCRATCH_BYTES // 64), b"b", b"c" * SCRATCH_BYTES, b""]
        peer.send(*bodies)
        assert [await peer.receive() for _ in bodies] == bodies


async def test_a_flood_from_one_address_is_refused_and_room_made_again() -> None:
    async with listening(max_connections_per_ip=5) as listeners:
        served = [await Peer.connect(listeners) for _ in range(5)]
        flood = [await Peer.connect(listeners) for _ in range(20)]
        assert all([await peer.hung_up_on() for peer in flood])
        assert [await peer.ask(b"x") for peer in served] == [b"x"] * 5
        served[0].leave()
        await until(lambda: listeners.connection_count == 4)
        assert await (await Peer.connect(listeners)).ask(b"y") == b"y"


async def test_an_address_may_have_a_limit_of_its_own() -> None:
    async with listening(max_connections_per_ip=0, per_ip_overrides={HOST: 1}) as listeners:
        assert await (await Peer.connect(listeners)).ask(b"x") == b"x"
        assert await (await Peer.connect(listeners)).hung_up_on()


async def test_one_connection_too_many_waits_for_its_turn() -> None:
    async with listening(max_connections=2, backlog=2) as listeners:
        served = [await Peer.connect(listeners) for _ in range(2)]
        assert [await peer.ask(b"x") for peer in served] == [b"x"] * 2
        first, second = [await Peer.connect(listeners) for _ in range(2)]
        await until(lambda: listeners.connection_count == 4)
        for peer in (first, second):
            peer.send(b"my turn")
            assert await peer.is_silent()
        assert await (await Peer.connect(listeners)).hung_up_on(), "the queue is full"
        served[0].leave()
        assert await first.receive() == b"my turn"
        assert await second.is_silent()
        first.leave()
        assert await second.receive() == b"my turn"


async def test_who_says_nothing_for_long_is_let_go_and_who_speaks_is_not() -> None:
    async with listening(max_idle_ms=300) as listeners:
        idle, busy = await Peer.connect(listeners), await Peer.connect(listeners)
        gone = asyncio.ensure_future(idle.hung_up_on())
        while not gone.done():
            assert await busy.ask(b"here") == b"here"
            await asyncio.sleep(0.02)
        assert gone.result()
        assert await busy.ask(b"still here") == b"still here"


async def test_close_ends_requests_that_wait() -> None:
    never = asyncio.Event()
    ended = asyncio.Event()

    async def later() -> list[bytes]:
        try:
            await never.wait()
        finally:
            ended.set()
        return []

    async with listening(lambda *_: later()) as listeners:
        peer = await Peer.connect(listeners)
        peer.send(b"wait")
        await until(lambda: listeners.connection_count == 1)
        await asyncio.sleep(0.05)
    assert ended.is_set()
    assert await peer.hung_up_on()
