"""Whole frames at random: good requests of every API and version served, and what accidents make of them."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

from compat_tests.wire import batch, framed
from pykafka_broker.handlers import ROUTES
from pykafka_broker.protocol.api import RequestHeader, frame_request
from pykafka_broker.protocol.types import Array, Field, Scalar, Sized, WireType, spec_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

ODD_INTEGERS = (
    -1,
    0,
    1,
    2,
    3,
    127,
    255,
    65535,
    1 << 20,
    (1 << 31) - 1,
    -(1 << 31),
    (1 << 63) - 1,
    -(1 << 63),
)
ODD_TEXTS = (
    "",
    "x",
    "..",
    "with space",
    "é" * 100,
    "0" * 300,
    "\0",
    "retention.ms",
    "cleanup.policy",
    "-1",
    "1",
)
PREFIX = 4


class Frames:
    """Draws frames from a seed; owner of its random numbers. `topics` and `ids` make some requests meaningful."""

    def __init__(self, seed: int, topics: Sequence[str], ids: Sequence[UUID]) -> None:
        self._random = random.Random(seed)
        self._topics, self._ids = topics, ids
        self._accidents: tuple[Callable[[bytes], bytes], ...] = (
            self._flip,
            self._cut,
            self._insert,
            self._repeat,
            self._odd_number,
            self._graft,
        )

    def good(self) -> bytes:
        """A request that can be read, whatever it means."""
        draw = self._random
        route = draw.choice(ROUTES)
        version = draw.randint(route.oldest, route.newest)
        header = RequestHeader(route.api.key, version, draw.getrandbits(31), draw.choice((None, "fuzz", "")))
        return b"".join(frame_request(header, self._message(route.api.request, version)))

    def spoilt(self) -> bytes:
        """A good frame after one to three accidents; mostly with its length made right again, to reach further in."""
        draw = self._random
        body = self.good()[PREFIX:]
        for _ in range(draw.randint(1, 3)):
            body = draw.choice(self._accidents)(body)
        if draw.random() < 0.85:
            return framed(body)
        return struct.pack(">i", draw.choice((-1, 0, 1, len(body) - 1, len(body) + 1, 1 << 30))) + body

    def noise(self) -> bytes:
        return self._random.randbytes(self._random.randint(1, 300))

    def burst(self) -> bytes:
        """What one connection sends: a few frames one after the other, or mere noise."""
        draw = self._random
        kinds = (self.good, self.spoilt, self.spoilt, self.spoilt, self.noise)
        return b"".join(draw.choice(kinds)() for _ in range(draw.randint(1, 4)))

    # Accidents

    def _flip(self, body: bytes) -> bytes:
        changed = bytearray(body)
        for _ in range(self._random.randint(1, 4)):
            changed[self._random.randrange(len(changed))] ^= 1 << self._random.randrange(8)
        return bytes(changed)

    def _cut(self, body: bytes) -> bytes:
        return body[: self._random.randint(1, len(body))]

    def _insert(self, body: bytes) -> bytes:
        at = self._random.randint(0, len(body))
        return body[:at] + self._random.randbytes(self._random.randint(1, 9)) + body[at:]

    def _repeat(self, body: bytes) -> bytes:
        start, end = sorted(self._random.randint(0, len(body)) for _ in range(2))
        return body[:end] + body[start:]

    def _odd_number(self, body: bytes) -> bytes:
        code, size = self._random.choice((("b", 1), ("h", 2), ("i", 4), ("q", 8)))
        low, high = -(1 << 8 * size - 1), (1 << 8 * size - 1) - 1
        number = struct.pack(f">{code}", min(max(self._random.choice(ODD_INTEGERS), low), high))
        at = self._random.randint(0, len(body))
        return body[:at] + number + body[at + size :]

    def _graft(self, body: bytes) -> bytes:
        """The head of one request on the body of another."""
        other = self.good()[PREFIX:]
        return body[: self._random.randint(1, len(body))] + other[self._random.randint(0, len(other)) :]

    # Messages from their declarations

    def _message(self, cls: type[Any], version: int) -> Any:
        fields = [field for field in spec_of(cls).fields if version in field.versions]
        return cls(**{field.name: self._value(field, version) for field in fields})

    def _value(self, field: Field, version: int) -> Any:
        if version in field.nullable and self._random.random() < 0.15:
            return None
        if self._random.random() < 0.15 and not isinstance(field.type, Sized):
            return [] if isinstance(field.type, Array) else field.default
        return self._of_type(field.type, version)

    def _of_type(self, wire: WireType, version: int) -> Any:
        draw = self._random
        if isinstance(wire, Array):
            return [self._of_type(wire.element, version) for _ in range(draw.choice((0, 1, 1, 1, 2, 3)))]
        if isinstance(wire, type):
            return self._message(wire, version)
        match wire.name:
            case "string":
                return draw.choice(self._topics) if draw.random() < 0.6 else draw.choice(ODD_TEXTS)
            case "records":
                return self._batch()
            case "bytes":
                return draw.randbytes(draw.randint(0, 30))
            case "uuid":
                return draw.choice(self._ids)
            case "bool":
                return draw.random() < 0.5
            case "float64":
                return draw.random()
        assert isinstance(wire, Scalar)
        low, high = (-(1 << 8 * wire.size - 1), (1 << 8 * wire.size - 1) - 1)
        if not wire.code.islower():
            low, high = 0, (1 << 8 * wire.size) - 1
        number = draw.choice(ODD_INTEGERS) if draw.random() < 0.3 else draw.randint(-1, 3)
        return min(max(number, low), high)

    def _batch(self) -> bytes:
        draw = self._random
        made = batch(
            *(draw.randbytes(10) for _ in range(draw.randint(1, 3))),
            codec=draw.randint(0, 3),
            producer_id=draw.randint(-1, 3),
            epoch=draw.randint(-1, 1),
            sequence=draw.randint(-1, 3),
        )
        return self._flip(bytes(made)) if draw.random() < 0.2 else bytes(made)
