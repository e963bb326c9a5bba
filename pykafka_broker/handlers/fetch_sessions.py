"""Incremental fetch sessions (KIP-227): a client names its partitions once, then only what changed travels.

A session remembers what the client asks of each partition and what it was last told, and which partitions are worth a
look: a session over thousands of quiet partitions costs as much as one over a few. It belongs to one connection's
requests at a time because clients send them in order, fenced by the session epoch.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest
    from pykafka_broker.replication.partition import Partition

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
NO_SESSION: Final = 0
_MAX_EPOCH: Final = 2**31 - 1

PartitionKey = tuple["str | UUID", int]
"""Topic name, or topic id from version 13 on, and partition index."""


class Interest:
    """What one client wants of one partition, and what it was last told about it. Its owner is the session.

    While a partition has nothing to tell, the session forgets about it and leaves a call behind to be woken by. Of a
    follower it is also the sign of life (`replica_state.Pulse`) for such a partition."""

    __slots__ = (
        "_left_ms",
        "_session",
        "_watched",
        "fresh",
        "high_watermark",
        "key",
        "log_start_offset",
        "seen",
        "wanted",
    )

    def __init__(self, session: FetchSession, key: PartitionKey, wanted: FetchPartition) -> None:
        self._session = session
        self._watched: Partition | None = None
        self._left_ms: float | None = None
        self.key = key
        self.wanted = wanted
        self.high_watermark = -1
        self.log_start_offset = -1
        self.fresh = True
        self.seen = False  # that there is such a topic, whatever was wrong with the partition

    def watch(self, partition: Partition) -> None:
        """From now on a change of the partition makes it worth a look."""
        if self._watched is not partition:
            self.unwatch()
            if self._session.is_follower:
                partition.subscribe(self._noted, self._changed)
            else:
                partition.subscribe(self._changed)
            self._watched = partition

    def unwatch(self) -> None:
        if self._watched is not None:
            self._watched.unsubscribe(self._noted)
            self._watched.unsubscribe(self._changed, self._changed)
            self._watched = None

    def leave(self) -> None:
        """The client has lost interest, or has been lost."""
        self._left_ms = self._session.asked_ms
        self.unwatch()

    @property
    def asked_ms(self) -> float:
        return self._session.asked_ms if self._left_ms is None else self._left_ms

    def _changed(self) -> None:
        session = self._session
        session.pending[self.key] = self
        if session.wake is not None:
            session.wake()

    def _noted(self) -> None:
        """That more is committed a follower learns by the way: it is no reason to end its wait for records."""
        self._session.pending[self.key] = self


class FetchSession:
    """Owner: the cache, or the one request it was made for. `pending` are the partitions worth a look, in the order in
    which they are served; those that gave data go to the back, so that none starves. All others are quiet and cost
    nothing, however many there are."""

    __slots__ = (
        "_interests",
        "asked_ms",
        "epoch",
        "id",
        "is_follower",
        "pending",
        "uses_topic_ids",
        "wake",
    )

    def __init__(self, session_id: int, *, uses_topic_ids: bool) -> None:
        self.id = session_id
        self.epoch = 1
        self.uses_topic_ids = uses_topic_ids
        self._interests: dict[PartitionKey, Interest] = {}
        self.pending: dict[PartitionKey, Interest] = {}
        self.wake: Callable[[], None] | None = None
        self.is_follower = False
        self.asked_ms = 0.0

    @property
    def is_empty(self) -> bool:
        return not self._interests

    def begin(self, request: FetchRequest) -> None:
        """The first request: what it says of partitions to forget has no meaning."""
        self._name(request)

    def update(self, request: FetchRequest) -> None:
        """The client names partitions, new ones or with a new position, and those it has lost interest in."""
        self._name(request)
        by_id = self.uses_topic_ids
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if by_id else forgotten.topic
            for index in forgotten.partitions:
                gone = self._interests.pop((name, index), None)
                if gone is not None:
                    gone.leave()
                    self.pending.pop(gone.key, None)

    def _name(self, request: FetchRequest) -> None:
        by_id = self.uses_topic_ids
        for topic in request.topics:
            name = topic.topic_id if by_id else topic.topic
            for wanted in topic.partitions:
                key = (name, wanted.partition)
                known = self._interests.get(key)
                if known is None:
                    known = self._interests[key] = Interest(self, key, wanted)
                else:
                    # Under another epoch the client begins anew, and what it was told before may not count.
                    known.fresh |= wanted.current_leader_epoch != known.wanted.current_leader_epoch
                    known.wanted = wanted
                self.pending[key] = known

    def close(self) -> None:
        for interest in self._interests.values():
            interest.leave()


class FetchSessions:
    """The sessions of one broker, bounded (`max.incremental.fetch.session.cache.slots`): the one longest unused makes
    room. A client whose session is gone is told FETCH_SESSION_ID_NOT_FOUND and starts a new one."""

    def __init__(self, slots: int, rng: random.Random | None = None) -> None:
        self._slots = slots
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._rng = rng or random.SystemRandom()

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, *, topic_ids: bool) -> FetchSession | None:
        """A new session for a full request, replacing the one it names; None where sessions are switched off."""
        self.close(request.session_id)
        if self._slots <= 0:
            return None
        while len(self._sessions) >= self._slots:
            self._sessions.popitem(last=False)[1].close()
        session_id = self._rng.randint(1, _MAX_EPOCH)
        while session_id in self._sessions:
            session_id = self._rng.randint(1, _MAX_EPOCH)
        session = FetchSession(session_id, uses_topic_ids=topic_ids)
        session.begin(request)
        self._sessions[session_id] = session
        return session

    def resume(self, request: FetchRequest, *, topic_ids: bool) -> FetchSession | None:
        """The session the request goes on with; None where it leaves nothing of it, which ends it."""
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if session.epoch == _MAX_EPOCH else session.epoch + 1
        self._sessions.move_to_end(session.id)
        session.update(request)
        if session.is_empty:
            self.close(session.id)
            return None
        return session

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()
