"""Records that show every shape a record may take, for all clients alike."""

from __future__ import annotations

import random
from typing import NamedTuple

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
DELIVERY: tuple[tuple[int | str, bool], ...] = ((0, False), (1, False), ("all", False), ("all", True))
"""Acknowledgement and idempotence, as they may be combined."""
SHAPES = (
    "connect and negotiate",
    "produce: codecs",
    "produce: headers",
    "produce: timestamps",
    "empty and null values",
    "consume assigned",
)
"""The features shown by a client that reads the samples as it sent them, in every codec."""
BEGIN_MS = 1_700_000_000_000
BIG = random.Random(1).randbytes(900 * 1024)  # no codec shrinks these


class Sample(NamedTuple):
    """One record as a client sends it, and must read it back."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int


def samples(*, all_null: bool = True) -> list[Sample]:
    """Keys and values present, empty and null; headers none, several, repeated, empty; times that go back.

    Some clients refuse a record whose key and value are both null: they ask for none.
    """
    shapes: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes], ...]]] = [
        (b"key", b"value", ()),
        (b"key", None, ()),
        (None, b"value", ()),
        (None, None, ()),
        (b"", b"", ()),
        (b"\x00\xff", bytes(range(256)), (("trace", b"1"), ("trace", b"2"))),
        ("klíč".encode(), "hodnota ✓".encode(), (("žluťoučký", "kůň".encode()), ("empty", b""))),
        (b"repeats", b"compress me " * 2000, (("content-type", b"text/plain"),)),
    ]
    shapes += [(b"key-%d" % n, b"value-%d" % n * (n % 7), ()) for n in range(50)]
    if not all_null:
        shapes.remove((None, None, ()))
    return [Sample(*shape, timestamp=BEGIN_MS + (n * 37) % 1000) for n, shape in enumerate(shapes)]
