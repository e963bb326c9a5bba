"""Cuts a stream of bytes into Kafka's frames: a 4-byte length, then that many bytes. No I/O.

Most frames are small and arrive whole: they are cut out of the receive buffer without a copy. A frame that is not
there yet gets a buffer of its own, and the rest of it is received straight into place.
"""

from __future__ import annotations

import struct
from typing import Final

PREFIX: Final = 4
AT_FIRST: Final = 1 << 20 | 1 << 16
"""Room for a frame that is not there yet: for nearly all of it is enough. What is larger gets more as it comes."""
_LENGTH: Final = struct.Struct(">i").unpack_from


class FrameError(ValueError):
    """The stream cannot be followed any further: a negative or over-long frame."""


class Framer:
    """Owner: one connection. `receive_into` says where the next bytes belong, `received` that they came, and
    `next_frame` gives what is complete. A frame is valid until the next call to `receive_into`."""

    __slots__ = ("_data", "_filled", "_frame", "_max_frame", "_pos", "_scratch", "_size")

    def __init__(self, scratch: memoryview, max_frame: int) -> None:
        self._scratch = scratch
        self._max_frame = max_frame
        self._data: memoryview = scratch[:0]
        self._pos = 0
        self._frame: memoryview | None = None
        self._filled = self._size = 0

    def receive_into(self) -> memoryview:
        frame = self._frame
        if frame is None:
            return self._scratch
        if self._filled == len(frame) < self._size:
            frame = self._grow(frame)
        return frame[self._filled :]

    def received(self, count: int) -> None:
        if self._frame is not None:
            self._filled += count
        elif self._pos < len(self._data):  # the beginning of a length that came in pieces
            self._data = memoryview(bytearray(self._data[self._pos :]) + self._scratch[:count])
            self._pos = 0
        else:
            self._data = self._scratch[:count]
            self._pos = 0

    def next_frame(self) -> memoryview | None:
        """The next whole frame, writable in place, or None until more bytes are received."""
        if self._frame is not None:
            if self._filled < self._size:
                return None
            frame, self._frame = self._frame, None
            return frame
        data, pos = self._data, self._pos
        left = len(data) - pos
        if left < PREFIX:
            self.keep()
            return None
        (size,) = _LENGTH(data, pos)
        if not 0 <= size <= self._max_frame:
            raise FrameError(f"invalid frame size {size}, the limit is {self._max_frame}")
        start = pos + PREFIX
        if left - PREFIX >= size:
            self._pos = start + size
            return data[start : start + size]
        self._size = size
        self._filled = left - PREFIX
        self._frame = memoryview(bytearray(min(size, max(2 * self._filled, AT_FIRST))))
        self._frame[: self._filled] = data[start:]
        self._data, self._pos = self._scratch[:0], 0
        return None

    def _grow(self, frame: memoryview) -> memoryview:
        """A length alone is easily said: there is room for as much again as has come."""
        larger = self._frame = memoryview(bytearray(min(self._size, 2 * len(frame))))
        larger[: len(frame)] = frame
        return larger

    def keep(self) -> None:
        """Copy what is not yet consumed out of the shared receive buffer, which others are about to use."""
        if self._pos < len(self._data):
            self._data = memoryview(bytearray(self._data[self._pos :]))
        else:
            self._data = self._scratch[:0]
        self._pos = 0
