"""The follower's side of an incremental fetch session (KIP-227): what has to be said in the next request. Pure.

The leader remembers where every partition is read. Only what changed since is named again, so that a fetch over
thousands of quiet partitions is a few bytes. When anything goes wrong, the next request names everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pykafka_broker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

PartitionKey = tuple["UUID", int]
"""Topic id and partition index."""

NO_SESSION: Final = 0
_FULL: Final = 0
_MAX_EPOCH: Final = 2**31 - 1


class Turn(NamedTuple):
    """One request: which session, which partitions are named in it, and which ones are dropped."""

    session_id: int
    epoch: int
    named: tuple[PartitionKey, ...]
    dropped: tuple[PartitionKey, ...]


class FollowerSession:
    """Owner: the Fetcher of one leader. One request at a time: `turn`, then `answered` or `lost`."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = _FULL
        self._wanted: dict[PartitionKey, None] = {}
        self._changed: dict[PartitionKey, None] = {}
        self._dropped: dict[PartitionKey, None] = {}
        self._anew = False

    def __len__(self) -> int:
        """How many partitions are fetched."""
        return len(self._wanted)

    @property
    def has_unsaid(self) -> bool:
        """Whether something is fetched anew since the last turn."""
        return bool(self._changed)

    def put(self, key: PartitionKey) -> None:
        """Fetch this one too, or from another place than before."""
        self._wanted[key] = self._changed[key] = None
        if key in self._dropped:
            # The leader has not heard that we began anew, and would not repeat what it told us before.
            del self._dropped[key]
            self._anew = True

    def drop(self, key: PartitionKey) -> None:
        """Fetch it no more."""
        if key in self._wanted:
            del self._wanted[key]
            self._changed.pop(key, None)
            self._dropped[key] = None

    def turn(self) -> Turn:
        """The next request. What it names is as it is now; later changes go into the one after it."""
        if self._anew:
            self._anew, self._epoch = False, _FULL
        full = self._epoch == _FULL
        named: Iterable[PartitionKey] = self._wanted if full else self._changed
        turn = Turn(self._id, self._epoch, tuple(named), () if full else tuple(self._dropped))
        self._changed.clear()
        self._dropped.clear()
        return turn

    def answered(self, error_code: int, session_id: int) -> bool:
        """Whether the answer tells anything about partitions; if not, everything is said anew next time."""
        if error_code != ErrorCode.NONE:
            if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            self._epoch = _FULL
            return False
        self._id = session_id
        if session_id == NO_SESSION:
            self._epoch = _FULL
        else:
            self._epoch = 1 if self._epoch == _MAX_EPOCH else self._epoch + 1
        return True

    def lost(self) -> None:
        """No answer came: the leader closes the session it may have when it is asked for everything anew."""
        self._epoch = _FULL
