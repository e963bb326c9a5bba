"""Fetch 0-18, with incremental sessions from version 7 on.

One loop serves every fetch: subscribe to the partitions, look, and answer when `min_bytes` are there, something failed,
or `max_wait_ms` is over; otherwise wait to be woken. Looking finds slices of segments by their indexes and costs no
reading; the bytes are read once, when the answer is due, in a thread where they are not in memory.

The first partition with data gives at least one whole batch (before version 3: nothing), whatever the limits say. A cut
batch may end a slice.

Followers fetch through the same loop: they see everything there is, and where they read tells what they have. A
consumer may read from a follower (from version 11), and is sent to one in its rack where that is configured (KIP-392).

Up to version 3 the records are made into messages of an old format, in the thread that reads them. A topic packed with
Zstandard is not for clients that do not know it (before version 10).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from pykafka_broker.handlers.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    Interest,
)
from pykafka_broker.handlers.services import Call, Services, error_code
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.conversion import downgrade
from pykafka_broker.replication.replica_selector import nearest_replica, selects_by_rack

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pykafka_broker.log.partition_log import Slice
    from pykafka_broker.replication.partition import Partition
    from pykafka_broker.replication.partitions import Partitions

_TOPIC_IDS_SINCE: Final = 13
_ANY_REPLICA_SINCE: Final = 11
_ZSTD_SINCE: Final = 10
_BATCHES_SINCE: Final = 4
_WHOLE_BATCH_SINCE: Final = 3
_TIMESTAMPS_SINCE: Final = 2
_READ_COMMITTED: Final = 1
_NO_EPOCH: Final = -1
_NOWHERE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


@dataclass(slots=True)
class _Found:
    """What one look at one partition gave."""

    interest: Interest
    data: PartitionData
    partition: Partition | None = None
    slice: Slice | None = None


class _Fetch:
    """One request under way; `look` may be repeated until the answer is due."""

    def __init__(
        self, services: Services, version: int, request: FetchRequest, session: FetchSession
    ) -> None:
        self._services = services
        self._find = _finder(services.partitions, session, leader_only=version < _ANY_REPLICA_SINCE)
        self._request = request
        self._session = session
        self._committed = request.isolation_level == _READ_COMMITTED
        self._by_rack = bool(request.rack_id) and selects_by_rack(services.config)
        self._max_bytes = min(request.max_bytes, services.config.fetch_max_bytes)
        self._knows_zstd = version >= _ZSTD_SINCE
        self._found: list[_Found] = []
        self._failed = False
        self._size = 0

    def look(self) -> bool:
        """Whether the answer is due without more waiting."""
        found: list[_Found] = []
        left = self._max_bytes
        self._size = 0
        self._failed = False
        for interest in tuple(self._session.pending.values()):
            entry = self._look_at(interest, left)
            if entry.slice is not None:
                self._size += entry.slice.size
                left -= entry.slice.size
            elif entry.partition is not None and not _is_news(entry) and self._may_rest(entry.partition):
                interest.watch(entry.partition)
                del self._session.pending[interest.key]
                continue
            found.append(entry)
        self._found = found
        return self._failed or self._size >= self._request.min_bytes

    def _look_at(self, interest: Interest, left: int) -> _Found:
        wanted = interest.wanted
        try:
            partition = self._find(*interest.key)
            partition.check_epoch(max(wanted.current_leader_epoch, _NO_EPOCH))
            return self._serve(interest, partition, max(min(left, wanted.partition_max_bytes), 0))
        except Exception as error:  # noqa: BLE001 -- one partition's failure is its own
            self._failed = True
            code = error_code(error)
            if code is ErrorCode.UNKNOWN_TOPIC_ID and (interest.seen or interest.high_watermark >= 0):
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # the session remembers it
            interest.seen |= code is not ErrorCode.UNKNOWN_TOPIC_ID
            data = PartitionData(
                partition_index=wanted.partition,
                error_code=code,
                high_watermark=-1,
                aborted_transactions=[] if code in _NOWHERE else None,
            )
            return _Found(interest, data)

    def _serve(self, interest: Interest, partition: Partition, room: int) -> _Found:
        wanted = interest.wanted
        if not self._knows_zstd:
            self._check_codec(partition)
        data = _state_of(partition, wanted.partition)
        if self._differs(partition, wanted, data) or (
            self._by_rack and self._sent_elsewhere(partition, wanted, data)
        ):
            return _Found(interest, data)
        part = partition.read(
            wanted.fetch_offset, room, committed=self._committed, at_least_one=self._size == 0
        )
        return _Found(interest, data, partition, part if part.size else None)

    def _check_codec(self, partition: Partition) -> None:
        """For clients from before Zstandard."""
        if partition.log.config.compression is Codec.ZSTD:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)

    def _differs(self, partition: Partition, wanted: FetchPartition, data: PartitionData) -> bool:
        if wanted.last_fetched_epoch < 0:
            return False
        data.diverging_epoch = _divergence(partition, wanted)
        if data.diverging_epoch is None:
            return False
        self._failed = True
        return True

    def _sent_elsewhere(self, partition: Partition, wanted: FetchPartition, data: PartitionData) -> bool:
        """Whether the client has a replica nearer to it; it is told at once, and reads there from now on."""
        state = partition.replica_state
        if state is None:
            return False
        brokers = self._services.metadata.view.brokers
        racks = {number: broker.rack for number, broker in brokers.items()}
        nearer = nearest_replica(
            state, self._services.broker_id, self._request.rack_id, wanted.fetch_offset, racks
        )
        if nearer is None:
            return False
        data.preferred_read_replica = nearer
        self._failed = True
        return True

    def _may_rest(self, partition: Partition) -> bool:  # noqa: ARG002 -- followers look closer
        """Whether a partition without news need not be looked at before it changes."""
        return True

    async def wait(self) -> FetchResponse:
        """The answer when it is due or the time is over. A client may go away first."""
        try:
            await self._until_due()
            return await self._answer_from_disk(self._load_from_memory())
        finally:
            self._end_without_session()

    async def _until_due(self) -> None:
        """Look again at every wake."""
        woken = asyncio.Event()
        over = False

        def end() -> None:
            nonlocal over
            over = True  # said by the timer: by the loop's rounded clock it may fire a little before its time
            woken.set()

        self._session.wake = woken.set
        timer = asyncio.get_running_loop().call_later(self._request.max_wait_ms / 1000, end)
        try:
            due = self.look()  # once more: this coroutine may have begun a little later than it was made
            while not due:
                self._watch_found()
                await woken.wait()
                woken.clear()
                due = self.look() or over
        finally:
            timer.cancel()
            if self._session.wake == woken.set:
                self._session.wake = None

    def _watch_found(self) -> None:
        """What has something to tell, but not enough, may get more."""
        for entry in self._found:
            if entry.partition is not None:
                entry.interest.watch(entry.partition)

    def answer_now(self) -> FetchResponse | Coroutine[Any, Any, FetchResponse]:
        """What the first look found. Without a session it has left nothing to be woken by: all was new."""
        cold = self._load_from_memory()
        return self._answer_from_disk(cold) if cold else self._answer()

    async def _answer_from_disk(self, cold: list[_Found]) -> FetchResponse:
        if cold:
            await asyncio.to_thread(self._load, cold)
        return self._answer()

    def _end_without_session(self) -> None:
        """Nobody else will take back what a fetch without a session has left with its partitions."""
        if self._session.id == NO_SESSION:
            self._session.close()

    def _load_from_memory(self) -> list[_Found]:
        cold = []
        unseen = self._services.writes_unseen
        for entry in self._found:
            if entry.slice is not None:
                try:
                    records = entry.slice.view_nowait() if unseen else entry.slice.read_nowait()
                except KafkaError as error:
                    _fail(entry, error)
                    continue
                if records is None:
                    cold.append(entry)
                else:
                    entry.data.records = records
        return cold

    def _load(self, cold: list[_Found]) -> None:
        """In a thread: the disk may take its time."""
        for entry in cold:
            assert entry.slice is not None
            try:
                entry.data.records = entry.slice.read()
            except KafkaError as error:
                _fail(entry, error)

    def _answer(self) -> FetchResponse:
        topics: dict[str | UUID, FetchableTopicResponse] = {}
        session = self._session
        for entry in self._found:
            data = entry.data
            if self._committed and not data.error_code and entry.partition is not None:
                data.aborted_transactions = _aborted(entry)
            if entry.slice is None:
                if not _is_news(entry):
                    continue
                data.records = b""
            elif len(session.pending) > 1 and session.pending.pop(entry.interest.key, None) is not None:
                session.pending[entry.interest.key] = entry.interest
            _remember(entry)
            name = entry.interest.key[0]
            topic = topics.get(name)
            if topic is None:
                topic = FetchableTopicResponse()
                if isinstance(name, UUID):
                    topic.topic_id = name
                else:
                    topic.topic = name
                topics[name] = topic
            topic.partitions.append(data)
        return FetchResponse(session_id=session.id, responses=list(topics.values()))


class _FollowerFetch(_Fetch):
    """A replica fetches. Its position counts as it was when the request came, and once."""

    def __init__(
        self,
        services: Services,
        version: int,
        request: FetchRequest,
        session: FetchSession,
        who: ReplicaState,
    ) -> None:
        super().__init__(services, version, request, session)
        self._find = _finder(services.partitions, session, leader_only=True)
        self._max_bytes = request.max_bytes
        self._who = who
        self._arrived = True

    def look(self) -> bool:
        due = super().look()
        self._arrived = False
        return due

    def _serve(self, interest: Interest, partition: Partition, room: int) -> _Found:
        wanted = interest.wanted
        partition.check_follower(self._who.replica_id, wanted.current_leader_epoch)
        offset = wanted.fetch_offset
        data = _state_of(partition, wanted.partition)
        if self._differs(partition, wanted, data):
            return _Found(interest, data)
        part = partition.read(offset, room, committed=False, at_least_one=self._size == 0, as_replica=True)
        if self._arrived:
            partition.follower_fetched(
                self._who.replica_id, offset, wanted.log_start_offset, self._who.replica_epoch, interest
            )
            data.high_watermark = partition.high_watermark
            data.last_stable_offset = partition.last_stable_offset
        nothing = not part.size or partition.is_withheld(self._who.replica_id)
        return _Found(interest, data, partition, None if nothing else part)

    def _answer(self) -> FetchResponse:
        for entry in self._found:
            if entry.slice is not None and entry.partition is not None:
                entry.partition.sent_to_follower(entry.slice.size)
        return super()._answer()

    def _may_rest(self, partition: Partition) -> bool:
        """Who is yet to join the ISR is looked at with every fetch: whether it may is not up to the partition alone."""
        state = partition.replica_state
        return state is not None and self._who.replica_id in state.isr


class _OldFetch(_Fetch):
    """A client that knows no batches: it gets messages of format 0 or 1, made when the answer is due."""

    def __init__(
        self, services: Services, version: int, request: FetchRequest, session: FetchSession
    ) -> None:
        super().__init__(services, version, request, session)
        self._magic = 1 if version >= _TIMESTAMPS_SINCE else 0
        self._whole_batch = version >= _WHOLE_BATCH_SINCE

    def _serve(self, interest: Interest, partition: Partition, room: int) -> _Found:
        self._check_codec(partition)
        if not partition.log.config.down_conversion:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        wanted = interest.wanted
        data = _state_of(partition, wanted.partition)
        at_least_one = self._whole_batch and self._size == 0
        part = partition.read(wanted.fetch_offset, room, committed=False, at_least_one=at_least_one)
        return _Found(interest, data, partition, part if part.size else None)

    def _load_from_memory(self) -> list[_Found]:
        return [entry for entry in self._found if entry.slice is not None]

    def _load(self, cold: list[_Found]) -> None:
        for entry in cold:
            assert entry.slice is not None
            wanted = entry.interest.wanted
            try:
                entry.data.records = downgrade(
                    entry.slice.read(), self._magic, wanted.fetch_offset, wanted.partition_max_bytes
                )
            except KafkaError as error:
                _fail(entry, error)
                entry.data.high_watermark = -1


def handle(
    services: Services, call: Call, request: FetchRequest
) -> FetchResponse | Coroutine[Any, Any, FetchResponse]:
    topic_ids = call.version >= _TOPIC_IDS_SINCE
    session: FetchSession | None = None
    if request.session_epoch == FINAL_EPOCH:
        services.fetch_sessions.close(request.session_id)
    elif request.session_epoch == INITIAL_EPOCH:
        session = services.fetch_sessions.open(request, topic_ids=topic_ids)
    else:
        session = services.fetch_sessions.resume(request, topic_ids=topic_ids)
    if session is None:  # one that lasts as long as its only request
        session = FetchSession(NO_SESSION, uses_topic_ids=topic_ids)
        session.begin(request)
        if not session.pending:
            return FetchResponse()
    who = request.replica_state or ReplicaState(replica_id=request.replica_id)
    if who.replica_id >= 0:
        session.is_follower = True
        session.asked_ms = services.clock.monotonic() * 1000
        fetch: _Fetch = _FollowerFetch(services, call.version, request, session, who)
    elif call.version < _BATCHES_SINCE:
        fetch = _OldFetch(services, call.version, request, session)
    else:
        fetch = _Fetch(services, call.version, request, session)
    if fetch.look() or request.max_wait_ms <= 0 or session.is_empty:
        return fetch.answer_now()
    return fetch.wait()


def _finder(
    partitions: Partitions, session: FetchSession, *, leader_only: bool
) -> Callable[[Any, int], Partition]:
    """How this client's partitions are looked up: by name or by topic id, led here or not."""
    if session.uses_topic_ids:
        return partitions.leader_by_id if leader_only else partitions.replica_by_id
    return partitions.leader if leader_only else partitions.replica


def _state_of(partition: Partition, index: int) -> PartitionData:
    return PartitionData(
        partition_index=index,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        aborted_transactions=None,
    )


def _is_news(entry: _Found) -> bool:
    """Whether an incremental response has to mention this partition."""
    interest, data = entry.interest, entry.data
    return (
        interest.fresh
        or entry.slice is not None
        or data.error_code != ErrorCode.NONE
        or data.diverging_epoch is not None
        or data.preferred_read_replica >= 0
        or interest.high_watermark != data.high_watermark
        or interest.log_start_offset != data.log_start_offset
    )


def _remember(entry: _Found) -> None:
    interest, data = entry.interest, entry.data
    interest.high_watermark = data.high_watermark
    interest.log_start_offset = data.log_start_offset
    # An error, or that the logs part, is followed by the state, once it is over: until then nobody listens to it.
    interest.fresh = data.error_code != ErrorCode.NONE or data.diverging_epoch is not None


def _aborted(entry: _Found) -> list[AbortedTransaction]:
    if entry.slice is None or entry.partition is None:
        return []
    return [
        AbortedTransaction(producer_id=producer_id, first_offset=first)
        for producer_id, first in entry.partition.log.aborted_transactions(
            entry.interest.wanted.fetch_offset, entry.data.last_stable_offset
        )
    ]


def _divergence(partition: Partition, wanted: FetchPartition) -> EpochEndOffset | None:
    """Where a reader's history leaves ours, if it names the epoch of the last record it has (v12+)."""
    epoch, end = partition.log.end_offset_for_epoch(wanted.last_fetched_epoch, partition.leader_epoch)
    if epoch < 0 or end < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if wanted.fetch_offset < partition.log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < wanted.last_fetched_epoch or end < wanted.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end)
    return None


def _fail(entry: _Found, error: KafkaError) -> None:
    """The disk did not give what the index promised: this partition has an error, the others are answered."""
    entry.slice = None
    entry.data.error_code = error.code
