"""What a coordinator asks of the world: records to append, replies to give. It touches nothing itself.

A coordinator decides; the runtime appends what was decided, replays it into the coordinator's state, and gives the
replies when it is committed. Requests carry a token, a reply names the token it answers; what stands behind a token
(a waiting client) only the runtime knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Token = int
"""Names one waiting request, unique within a runtime."""


@dataclass(slots=True)
class Caller:
    """Who sent a request, as far as a coordinator cares."""

    token: Token
    version: int
    client_id: str
    client_host: str


class Record(NamedTuple):
    """One change of durable state: a key, and a value or a tombstone. Both are messages of `coordinator.records`.

    A tuple, because one is made for every offset that is loaded; so are what follows, made for every request."""

    key: Any
    value: Any | None


@dataclass(slots=True)
class Reply:
    """The response to the request that came with `token`."""

    token: Token
    response: Any


@dataclass(slots=True)
class Effects:
    """The outcome of one event. The records are appended in one batch, all or none; the replies are given when
    they are committed, at once if there are none. If the append fails, the coordinator's `failed` hears of it."""

    records: Sequence[Record] = ()
    replies: Sequence[Reply] = ()
    can_wait: bool = False
    """Whether nothing is decided otherwise before these records are replayed, but by those who look at offsets: then
    several such effects may be written together. There is one reply then."""
    is_divisible: bool = False
    """Whether each record is right without the others, and nobody waits for them: then there may be any number."""
