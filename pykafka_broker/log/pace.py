"""How fast a thread may work beside an event loop that has to answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import threading

_SLICE_SECONDS: Final = 0.001
_PAUSE_SECONDS: Final = 0.0005
"""Long enough for the interpreter's lock to be taken by a loop that waits for it: it need not wait five milliseconds
until the interpreter takes it from us."""


class Stopped(Exception):
    """The work is to end here, and begin anew some other time."""


class Pace:
    """Owner of one thread's allowance: so many bytes a second, and pauses in between; used by that thread."""

    __slots__ = ("_free_at", "_pause_at", "_seconds_per_byte", "_stop")

    def __init__(self, stop: threading.Event, bytes_per_second: float = float("inf")) -> None:
        self._stop = stop
        self._seconds_per_byte = 1 / bytes_per_second
        self._pause_at = self._free_at = time.monotonic()

    def spend(self, count: int) -> None:
        """Notes that `count` bytes are read or written, and waits as long as that means. Stopped if told to."""
        now = time.monotonic()
        self._free_at = max(self._free_at, now) + count * self._seconds_per_byte
        owed = self._free_at - now
        if now < self._pause_at and owed < _SLICE_SECONDS:
            return
        if self._stop.wait(max(owed, _PAUSE_SECONDS)):
            raise Stopped
        self._pause_at = time.monotonic() + _SLICE_SECONDS
