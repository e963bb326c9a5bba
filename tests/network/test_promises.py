"""Responses that are there when the turn of the loop ends: in order with all others, and together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pykafka_broker.network.connection import ProtocolViolation
from pykafka_broker.turn import Soon, Turn
from tests.network.test_connections import Peer, framed, listening

if TYPE_CHECKING:
    from pykafka_broker.network.connection import Client


class Promising:
    """Promises what begins with "soon", in one piece of work for each turn; breaks the promise of "soon broken"."""

    def __init__(self) -> None:
        self.turn = Turn()
        self.promised: list[tuple[Soon, bytes]] = []
        self.kept: list[list[bytes]] = []
        self.release = asyncio.Event()

    def __call__(self, client: Client, frame: memoryview) -> Any:
        body = bytes(frame)
        if body == b"violation":
            raise ProtocolViolation("as asked")
        if body == b"later":
            return self._later(body)
        if not body.startswith(b"soon"):
            return [framed(body)]
        soon = Soon(self.turn)
        soon.frame = lambda response: [framed(response)]
        if not self.promised:
            self.turn.put_off(self._keep)
        self.promised.append((soon, body))
        return soon

    async def _later(self, body: bytes) -> Any:
        await self.release.wait()
        return [framed(body)]

    def _keep(self) -> None:
        promised, self.promised = self.promised, []
        self.kept.append([body for _, body in promised])
        for soon, body in promised:
            soon.response = None if body == b"soon broken" else body


async def test_promises_of_one_turn_are_kept_together() -> None:
    dispatch = Promising()
    async with listening(dispatch) as listeners:
        client = await Peer.connect(listeners)
        client.send(b"soon 1", b"soon 2", b"soon 3")
        assert [await client.receive() for _ in range(3)] == [b"soon 1", b"soon 2", b"soon 3"]
        assert dispatch.kept == [[b"soon 1", b"soon 2", b"soon 3"]]


async def test_answers_keep_the_order_of_their_requests() -> None:
    dispatch = Promising()
    dispatch.release.set()
    bodies = [b"now", b"soon 1", b"soon 2", b"now", b"now", b"soon 3", b"later", b"soon 4", b"now"] * 50
    async with listening(dispatch) as listeners:
        client = await Peer.connect(listeners)
        client.send(*bodies)
        assert [await client.receive() for _ in bodies] == bodies


async def test_a_promise_is_kept_though_a_request_behind_it_waits() -> None:
    dispatch = Promising()
    async with listening(dispatch) as listeners:
        client = await Peer.connect(listeners)
        client.send(b"soon", b"later", b"now")
        assert await client.receive() == b"soon"
        assert await client.is_silent()
        dispatch.release.set()
        assert [await client.receive(), await client.receive()] == [b"later", b"now"]


async def test_what_was_promised_before_a_violation_is_answered() -> None:
    async with listening(Promising()) as listeners:
        client = await Peer.connect(listeners)
        client.send(b"soon 1", b"soon 2", b"violation", b"soon 3")
        assert [await client.receive(), await client.receive()] == [b"soon 1", b"soon 2"]
        assert await client.hung_up_on()


async def test_a_promise_that_is_broken_ends_the_connection() -> None:
    async with listening(Promising()) as listeners:
        client, other = await Peer.connect(listeners), await Peer.connect(listeners)
        client.send(b"soon 1", b"soon broken", b"soon 2")
        assert await client.receive() == b"soon 1"
        assert await client.hung_up_on()
        assert await other.ask(b"soon 3") == b"soon 3"


async def test_a_client_that_hangs_up_is_forgotten() -> None:
    dispatch = Promising()
    async with listening(dispatch) as listeners:
        client, other = await Peer.connect(listeners), await Peer.connect(listeners)
        client.send(*[b"soon"] * 100)
        client.writer.transport.abort()
        assert await other.ask(b"soon 2") == b"soon 2"


async def test_work_that_fails_keeps_nobody_from_theirs() -> None:
    turn, done = Turn(), asyncio.Event()

    def fails() -> None:
        raise ValueError("as asked")

    turn.put_off(fails)
    turn.put_off(done.set)
    turn.afterwards(fails)
    soon = Soon(turn)
    soon.response = "there"
    assert await soon.there() == "there"
    assert done.is_set()
