"""Offset commits by the thousand: sockets that are kept full, and answers compared as bytes.

An answer costs this client less than a request costs a broker: answers are all alike, so they are compared in the
pieces they come in and never parsed.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from typing import TYPE_CHECKING

from benchmarks import groups_wire
from benchmarks.wire import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

RECEIVE = 1 << 16
PATIENCE_SECONDS = 60.0


class _Flow:
    """One connection that keeps `window` requests under way until all of its frames are answered."""

    def __init__(self, address: tuple[str, int], frames: Sequence[bytes], answer: bytes, window: int) -> None:
        self._socket = socket.create_connection(address, PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = frames
        self._window = window
        self._sent = 0
        self._size = len(answer)
        self._expected = answer * (RECEIVE // len(answer) + 2)
        self._received = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def fill(self) -> None:
        """Send what may be under way beside what is not answered."""
        upto = min(self._received // self._size + self._window, len(self._frames))
        if upto > self._sent:
            self._socket.sendall(b"".join(self._frames[self._sent : upto]))
            self._sent = upto

    def receive(self) -> None:
        """Take what has come; anything but the expected answer is an error."""
        data = self._socket.recv(RECEIVE)
        start = self._received % self._size
        if not data or data != self._expected[start : start + len(data)]:
            raise WireError(f"a commit was refused: {data[:60].hex()}")
        self._received += len(data)

    @property
    def done(self) -> bool:
        return self._received == self._size * len(self._frames)


def commit_all(
    address: tuple[str, int], flows: list[list[bytes]], topic: str, partitions: range, window: int
) -> float:
    """Send each list of OffsetCommits (all for these partitions) on a connection of its own: the seconds it took."""
    answer = groups_wire.offset_committed(topic, partitions)
    with selectors.DefaultSelector() as ready, contextlib.ExitStack() as ending:
        running = [_Flow(address, frames, answer, window) for frames in flows]
        for flow in running:
            ending.callback(flow.close)
            ready.register(flow, selectors.EVENT_READ)
        started = time.perf_counter()
        for flow in running:
            flow.fill()
        while ready.get_map():
            events = ready.select(PATIENCE_SECONDS)
            if not events:
                raise WireError(f"no answer for {PATIENCE_SECONDS:g} s")
            for key, _ in events:
                flow = key.fileobj
                assert isinstance(flow, _Flow)
                flow.receive()
                flow.fill()
                if flow.done:
                    ready.unregister(flow)
        return time.perf_counter() - started
