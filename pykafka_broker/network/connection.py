"""One client's connection.

Requests are answered in order, one at a time, as Kafka does: while one waits (a long poll, a slow disk, a client that
does not read) nothing more is read from that client, so what is buffered is bounded. Only requests whose work is done
but for the waiting (`InLine`) let a few of their kind go to work behind them; Kafka does not even do that. Responses
that are ready at once leave together, one write for each receive; with those that are there when the turn of the loop
ends (`Soon`), one for each turn.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pykafka_broker.network.framing import FrameError, Framer
from pykafka_broker.turn import Soon

if TYPE_CHECKING:
    from pykafka_broker.protocol.types import Buffer

log = logging.getLogger(__name__)

WRITE_HIGH_WATER = 1 << 20
SEND_AT_ONCE = 64 * 1024
"""Small responses leave together, up to this many bytes; the transport then says whether the client takes them."""


MOST_IN_LINE = 5
"""Requests of a client that wait for others at a time: as many as producers have under way."""


class ProtocolViolation(Exception):
    """The client sent what cannot be answered; the connection is closed, as Kafka does."""


@dataclass(frozen=True, slots=True)
class Client:
    """Who is on the other end, as handlers see it."""

    host: str
    port: int
    listener: str


Reply = Coroutine[Any, Any, "list[Buffer] | None"]


@dataclass(frozen=True, slots=True)
class InLine:
    """The reply to a request that only waits for others. What comes behind it and begins alike, so that it is of the
    same kind, may be worked on meanwhile; it is answered after it. The reply does not keep the request's frame."""

    reply: Reply
    kind: bytes


Dispatch = Callable[[Client, memoryview], "list[Buffer] | Soon | InLine | Reply | None"]


class Connection(asyncio.BufferedProtocol):
    """Owner: its listener. The scratch buffer is shared by all connections of the loop: it holds bytes only between
    a receive and the return of `buffer_updated`."""

    def __init__(
        self,
        dispatch: Dispatch,
        scratch: memoryview,
        max_frame: int,
        listener: str,
        on_made: Callable[[Connection], bool],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self._dispatch = dispatch
        self._framer = Framer(scratch, max_frame)
        self._listener = listener
        self._on_made = on_made
        self._on_lost = on_lost
        self._out: list[Buffer] = []
        self._out_bytes = 0
        self._held = False
        self._promised: list[Soon | list[Buffer]] = []
        """Responses that are there at the end of this turn, in order, and at most one that stands behind them."""
        self._stalled = False
        """Until then nothing more is answered."""
        self._refused: Exception | None = None
        """Why the connection is closed then."""
        self._waiting: asyncio.Task[None] | None = None
        self._line: deque[asyncio.Task[list[Buffer] | None] | list[Buffer]] = deque()
        """Responses to come, in order, and such as are there but stand behind one that is not."""
        self._line_kind = b""
        self._aside: memoryview | None = None
        """A frame of another kind, for when the line is over."""
        self._write_paused = False
        self._reading_paused = False
        self._loop = asyncio.get_running_loop()
        self.last_active = self._loop.time()
        self.host = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername") or ("", 0)
        self.host = peer[0]
        self._client = Client(peer[0], peer[1], self._listener)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)
        if not self._on_made(self):
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- a reset is an ordinary end
        self._abandon()
        self._on_lost(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 -- the framer knows better
        return self._framer.receive_into()

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active = self._loop.time()
        self._framer.received(nbytes)
        if self._busy:  # one receive ahead is kept, no more
            self._framer.keep()
            self._reading_paused = True
            self._transport.pause_reading()
        else:
            self._serve()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        if self._waiting is None:
            self._serve()
            self._read_on()

    def hold(self) -> None:
        """Answer nothing until `release`."""
        self._held = True

    def release(self) -> None:
        self._held = False
        self.last_active = self._loop.time()
        self._serve()
        self._read_on()

    def close(self) -> None:
        self._transport.close()

    async def drained(self) -> None:
        """Ends when the requests under way, if any, have been abandoned."""
        await asyncio.gather(*self._abandon(), return_exceptions=True)

    def _abandon(self) -> list[asyncio.Task[Any]]:
        """Answer nothing any more. Gives what is about to end."""
        tasks: list[asyncio.Task[Any]] = [entry for entry in self._line if isinstance(entry, asyncio.Task)]
        self._line.clear()
        if self._waiting is not None:
            tasks.append(self._waiting)
        for task in tasks:
            task.cancel()
        return tasks

    @property
    def _busy(self) -> bool:
        return (
            self._waiting is not None
            or self._write_paused
            or self._held
            or self._stalled
            or (bool(self._line) and (self._aside is not None or len(self._line) >= MOST_IN_LINE))
        )

    def _serve(self) -> None:
        """Answer every whole frame that can be answered now."""
        try:
            while not self._busy and not self._transport.is_closing():
                frame = self._next_frame()
                if frame is None:
                    break
                self._take(self._dispatch(self._client, frame))
        except (FrameError, ProtocolViolation) as error:
            self._hang_up(error)
            return
        self._send()
        self._framer.keep()

    def _next_frame(self) -> memoryview | None:
        frame = self._aside
        if frame is not None:
            self._aside = None
            return frame
        frame = self._framer.next_frame()
        if frame is not None and self._line and frame[: len(self._line_kind)] != self._line_kind:
            self._aside = memoryview(bytearray(frame))
            return None
        return frame

    def _take(self, reply: list[Buffer] | Soon | InLine | Reply | None) -> None:
        if reply is None:
            return
        if isinstance(reply, list):
            self._add(reply)
        elif isinstance(reply, Soon):
            if not self._promised:
                reply.turn.afterwards(self._keep_promises)
            self._promised.append(reply)
        elif isinstance(reply, InLine) and not self._promised:
            self._send()
            task = self._loop.create_task(reply.reply)
            task.add_done_callback(self._move_up)
            self._line.append(task)
            self._line_kind = reply.kind
        else:
            self._send()
            pending = reply.reply if isinstance(reply, InLine) else reply
            self._waiting = self._loop.create_task(self._finish(pending))

    def _add(self, buffers: list[Buffer]) -> None:
        if self._line:
            self._line.append(buffers)
            return
        if self._promised:
            self._promised.append(buffers)
            self._stalled = True
            return
        self._out += buffers
        self._out_bytes += sum(map(len, buffers))
        if self._out_bytes > SEND_AT_ONCE:
            self._send()

    def _keep_promises(self) -> None:
        promised, self._promised = self._promised, []
        if self._transport.is_closing():
            return
        try:
            for reply in promised:
                self._out += reply if isinstance(reply, list) else _frame(reply)
        except ProtocolViolation as error:
            self._hang_up(error)
            return
        stalled, self._stalled = self._stalled, False
        self._send()
        if self._refused is not None:
            self._hang_up(self._refused)
        elif stalled and not self._busy:
            self._serve()
            self._read_on()

    def _move_up(self, ended: asyncio.Task[list[Buffer] | None]) -> None:
        """Send what is there at the head of the line."""
        if ended.cancelled() or self._transport.is_closing():
            return
        while self._line:
            head = self._line[0]
            if isinstance(head, asyncio.Task) and not head.done():
                break
            self._line.popleft()
            try:
                buffers = head if isinstance(head, list) else head.result()
            except ProtocolViolation as error:
                self._abandon()
                self._hang_up(error)
                return
            if buffers is not None:
                self._out += buffers
        self.last_active = self._loop.time()
        self._send()
        if self._refused is not None and not self._line:
            self._hang_up(self._refused)
        elif not self._busy:
            self._serve()
            self._read_on()

    def _hang_up(self, error: Exception) -> None:
        """What can be answered is."""
        if self._promised or self._line:
            self._refused, self._stalled = error, True
            return
        log.warning("closing the connection from %s: %s", self.host, error)
        self._send()
        self._transport.close()

    async def _finish(self, reply: Reply) -> None:
        try:
            buffers = await reply
        except ProtocolViolation as error:
            self._hang_up(error)
            return
        finally:
            self._waiting = None
        if self._transport.is_closing():
            return
        if buffers is not None:
            self._add(buffers)
        self.last_active = self._loop.time()
        self._send()
        if not self._busy:
            self._serve()
        self._read_on()

    def _read_on(self) -> None:
        if self._reading_paused and not self._busy and not self._transport.is_closing():
            self._reading_paused = False
            self._transport.resume_reading()

    def _send(self) -> None:
        if self._out and not self._promised:
            out, self._out = self._out, []
            self._out_bytes = 0
            self._transport.writelines(out)


def _frame(soon: Soon) -> list[Buffer]:
    if soon.response is None or soon.frame is None:
        raise ProtocolViolation("a request failed")
    return soon.frame(soon.response)
