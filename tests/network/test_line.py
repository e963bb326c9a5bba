"""Requests of one kind that wait for others in a line: worked on one behind the other, answered in order."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

from pykafka_broker.network.connection import MOST_IN_LINE, InLine, ProtocolViolation
from pykafka_broker.turn import Soon, Turn
from tests.network.test_connections import Peer, framed, listening, until

if TYPE_CHECKING:
    from pykafka_broker.network.connection import Client


class Lining:
    """What begins with "l" goes in line until it is let go, but for "lnow" and "lbad"; "soon" is promised; all else
    is answered at once."""

    def __init__(self) -> None:
        self.turn = Turn()
        self.seen: list[bytes] = []
        self.gates: dict[bytes, asyncio.Future[bytes]] = {}

    def __call__(self, client: Client, frame: memoryview) -> Any:
        body = bytes(frame)
        self.seen.append(body)
        if body in (b"bad", b"lbad"):
            raise ProtocolViolation("as asked")
        if body.startswith(b"soon"):
            soon = Soon(self.turn)
            soon.response, soon.frame = body, lambda response: [framed(response)]
            return soon
        if not body.startswith(b"l") or body.startswith(b"lnow"):
            return [framed(body)]
        gate = self.gates[body] = asyncio.get_running_loop().create_future()
        return InLine(self._later(gate), b"l")

    async def _later(self, gate: asyncio.Future[bytes]) -> Any:
        body = await gate
        if body == b"violation":
            raise ProtocolViolation("as asked")
        return [framed(body)] if body else None

    def let_go(self, *bodies: bytes) -> None:
        for body in bodies:
            self.gates[body].set_result(body)

    async def saw(self, *bodies: bytes) -> None:
        await until(lambda: self.seen == list(bodies))


async def test_the_line_is_bounded_and_answered_in_order() -> None:
    dispatch = Lining()
    bodies = [b"l%d" % number for number in range(MOST_IN_LINE + 2)]
    async with listening(dispatch) as listeners:
        peer = await Peer.connect(listeners)
        peer.send(*bodies)
        await dispatch.saw(*bodies[:MOST_IN_LINE])
        dispatch.let_go(*bodies[1:MOST_IN_LINE])
        assert await peer.is_silent(), "the first is not there yet"
        assert dispatch.seen == bodies[:MOST_IN_LINE]
        dispatch.let_go(bodies[0])
        assert [await peer.receive() for _ in range(MOST_IN_LINE)] == bodies[:MOST_IN_LINE]
        await dispatch.saw(*bodies)
        dispatch.let_go(*bodies[MOST_IN_LINE:])
        assert [await peer.receive() for _ in range(2)] == bodies[MOST_IN_LINE:]


@pytest.mark.parametrize("size", [5, 1 << 19])
async def test_another_kind_waits_until_the_line_is_over(size: int) -> None:
    dispatch = Lining()
    other = b"other".ljust(size)
    async with listening(dispatch) as listeners:
        peer = await Peer.connect(listeners)
        peer.send(b"l1", b"l2", other, b"l3")
        await dispatch.saw(b"l1", b"l2")
        assert await (await Peer.connect(listeners)).ask(b"me") == b"me", "only the same connection waits"
        dispatch.let_go(b"l1")
        assert await peer.receive() == b"l1"
        assert await peer.is_silent()
        dispatch.let_go(b"l2")
        assert [await peer.receive() for _ in range(2)] == [b"l2", other]
        await dispatch.saw(b"l1", b"l2", b"me", other, b"l3")
        dispatch.let_go(b"l3")
        assert await peer.receive() == b"l3"


async def test_what_is_there_at_once_stands_behind_those_who_wait() -> None:
    dispatch = Lining()
    async with listening(dispatch) as listeners:
        peer = await Peer.connect(listeners)
        peer.send(b"l1", b"lnow", b"l2")
        await dispatch.saw(b"l1", b"lnow", b"l2")
        assert await peer.is_silent()
        dispatch.let_go(b"l1")
        assert [await peer.receive() for _ in range(2)] == [b"l1", b"lnow"]
        dispatch.let_go(b"l2")
        assert await peer.receive() == b"l2"


async def test_a_violation_behind_the_line_ends_the_connection_when_all_are_answered() -> None:
    dispatch = Lining()
    async with listening(dispatch) as listeners:
        peer = await Peer.connect(listeners)
        peer.send(b"l1", b"l2", b"lbad", b"l3")
        await dispatch.saw(b"l1", b"l2", b"lbad")
        dispatch.let_go(b"l2", b"l1")
        assert [await peer.receive() for _ in range(2)] == [b"l1", b"l2"]
        assert await peer.hung_up_on()
        assert dispatch.seen == [b"l1", b"l2", b"lbad"]


async def test_a_violation_in_the_line_ends_the_connection_for_those_behind_it() -> None:
    dispatch = Lining()
    async with listening(dispatch) as listeners:
        peer = await Peer.connect(listeners)
        peer.send(b"l1", b"l2", b"l3")
        await dispatch.saw(b"l1", b"l2", b"l3")
        dispatch.gates[b"l2"].set_result(b"violation")
        dispatch.let_go(b"l1")
        assert await peer.receive() == b"l1"
        assert await peer.hung_up_on()
        await until(dispatch.gates[b"l3"].cancelled)


async def test_answers_due_to_nobody_hold_up_nothing() -> None:
    dispatch = Lining()
    async with listening(dispatch) as listeners:
        peer = await Peer.connect(listeners)
        peer.send(b"l1", b"l2", b"next")
        await dispatch.saw(b"l1", b"l2")
        dispatch.gates[b"l1"].set_result(b"")
        dispatch.let_go(b"l2")
        assert [await peer.receive() for _ in range(2)] == [b"l2", b"next"]


async def test_who_waits_is_abandoned_when_the_client_goes_and_when_the_broker_does() -> None:
    dispatch = Lining()
    async with listening(dispatch) as listeners:
        gone, stays = await Peer.connect(listeners), await Peer.connect(listeners)
        gone.send(b"l1", b"l2")
        await dispatch.saw(b"l1", b"l2")
        gone.leave()
        await until(lambda: dispatch.gates[b"l1"].cancelled() and dispatch.gates[b"l2"].cancelled())
        stays.send(b"l3", b"l4", b"after")
        await dispatch.saw(b"l1", b"l2", b"l3", b"l4")
    assert dispatch.gates[b"l3"].cancelled()
    assert dispatch.gates[b"l4"].cancelled()
    assert await stays.hung_up_on()
    assert dispatch.seen[-1] == b"l4"


@pytest.mark.parametrize("seed", range(5))
async def test_any_mixture_is_answered_in_order(seed: int) -> None:
    dispatch, dice = Lining(), random.Random(seed)
    bodies = [
        dice.choice([b"l%d", b"l%d", b"lnow%d", b"soon%d", b"other%d"]) % number for number in range(500)
    ]

    async def let_go() -> None:
        while True:
            waiting = [body for body, gate in dispatch.gates.items() if not gate.done()]
            if waiting:
                dispatch.let_go(dice.choice(waiting))
            await asyncio.sleep(0)

    async with listening(dispatch) as listeners:
        peer = await Peer.connect(listeners)
        letting_go = asyncio.create_task(let_go())
        for start in range(0, len(bodies), 20):
            peer.send(*bodies[start : start + 20])
            await asyncio.sleep(0)
        assert [await peer.receive() for _ in bodies] == bodies
        letting_go.cancel()
    assert dispatch.seen == bodies
