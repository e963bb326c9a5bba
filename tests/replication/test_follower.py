"""The loop of a follower, against a leader that a test plays: errors, damage, and answers that come too late."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pykafka_broker.clock import SystemClock
from pykafka_broker.network.peer import PeerError
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pykafka_broker.replication.follower import Fetcher
from pykafka_broker.replication.follower_ports import FollowerSettings
from pykafka_broker.replication.follower_state import Phase
from tests.replication.mini_cluster import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOPIC_ID = UUID(int=5)
KEY = (TOPIC_ID, 0)


class Replica:
    """A log of nothing but its end."""

    topic, index, topic_id = "topic", 0, TOPIC_ID

    def __init__(self, end: int = 10, epoch: int = 3) -> None:
        self.leader_epoch = epoch
        self.log_start_offset = 0
        self.log_end_offset = end
        self.high_watermark = 0
        self.latest_epoch = 2
        self.refuse: Exception | None = None
        self.done: list[tuple[str, int]] = []

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        return (epoch, self.log_end_offset) if epoch <= self.latest_epoch else (-1, -1)

    def truncate_to(self, offset: int) -> None:
        self.done.append(("cut", offset))
        self.log_end_offset = min(offset, self.log_end_offset)

    def restart_at(self, offset: int) -> None:
        self.done.append(("anew", offset))
        self.log_start_offset = self.log_end_offset = offset

    def append_fetched(self, records: Any, high_watermark: int, log_start_offset: int) -> None:
        if self.refuse is not None:
            refuse, self.refuse = self.refuse, None
            raise refuse
        self.log_end_offset += len(records)
        self.high_watermark = high_watermark


class Leader:
    """Answers with what was laid out for it, then keeps the fetch waiting."""

    def __init__(self) -> None:
        self.asked: list[FetchRequest] = []
        self.answers: deque[Any] = deque()
        self.offsets: dict[int, int | ErrorCode] = {}
        self.more = asyncio.Event()

    def say(self, *answers: Any) -> None:
        self.answers += answers
        self.more.set()

    async def call(self, request: Any, *, newest: int | None = None, timeout_ms: float | None = None) -> Any:
        if not isinstance(request, FetchRequest):
            return self._offset(request)
        self.asked.append(request)
        while not self.answers:
            self.more.clear()
            await self.more.wait()
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _offset(self, request: Any) -> Any:
        found = self.offsets[request.topics[0].partitions[0].timestamp]
        answer = (
            ListOffsetsPartitionResponse(error_code=found)
            if isinstance(found, ErrorCode)
            else ListOffsetsPartitionResponse(offset=found)
        )
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(partitions=[answer])])

    def interrupt(self) -> None:
        self.say(PeerError("interrupted"))

    def close(self) -> None: ...

    @property
    def named(self) -> list[list[tuple[int, int, int]]]:
        """Offset, epoch and last epoch of what each request names."""
        return [
            [
                (p.fetch_offset, p.current_leader_epoch, p.last_fetched_epoch)
                for topic in request.topics
                for p in topic.partitions
            ]
            for request in self.asked
        ]


def about(records: bytes = b"", code: int = 0, session: int = 9, **more: Any) -> FetchResponse:
    data = PartitionData(partition_index=0, error_code=code, records=records, log_start_offset=0, **more)
    return FetchResponse(
        session_id=session, responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])]
    )


@asynccontextmanager
async def following(replica: Replica) -> AsyncIterator[tuple[Fetcher, Leader]]:
    leader = Leader()
    fetcher = Fetcher(1, leader, FollowerSettings(2, backoff_ms=10), SystemClock())
    fetcher.add(replica)  # type: ignore[arg-type]
    fetcher.start()
    try:
        yield fetcher, leader
    finally:
        await fetcher.close()


async def asked(leader: Leader, times: int) -> None:
    await eventually(lambda: len(leader.asked) >= times)


async def test_what_comes_is_appended_and_the_next_is_asked_for() -> None:
    replica = Replica()
    async with following(replica) as (fetcher, leader):
        leader.say(about(b"12345", high_watermark=12), about())
        await asked(leader, 3)
        assert leader.named == [[(10, 3, 2)], [(15, 3, 2)], []]
        assert leader.asked[0].replica_state is not None
        assert leader.asked[0].replica_state.replica_id == leader.asked[0].replica_id == 2
        assert replica.high_watermark == 0
        progress = fetcher.progress(KEY)
        assert progress is not None
        assert progress.is_in_sync


async def test_a_log_without_epochs_is_cut_to_what_is_committed_before_the_first_fetch() -> None:
    replica = Replica()
    replica.latest_epoch, replica.high_watermark = -1, 6
    async with following(replica) as (_, leader):
        await asked(leader, 1)
        assert replica.done == [("cut", 6)]
        assert leader.named == [[(6, 3, -1)]]


async def test_where_the_logs_part_the_log_is_cut_and_nothing_else_is_taken() -> None:
    replica = Replica()
    async with following(replica) as (_, leader):
        diverging = EpochEndOffset(epoch=2, end_offset=7)
        leader.say(about(b"not to be taken", high_watermark=99, diverging_epoch=diverging))
        await asked(leader, 2)
        assert (replica.done, replica.high_watermark) == ([("cut", 7)], 0)
        assert leader.named[1] == [(7, 3, 2)]


async def test_a_leader_that_is_not_ready_is_asked_again_after_a_pause() -> None:
    replica = Replica()
    async with following(replica) as (_, leader):
        for code in (
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.KAFKA_STORAGE_ERROR,
        ):
            leader.say(about(code=code))
        leader.say(about(b"123"))
        await eventually(lambda: replica.log_end_offset == 13)


async def test_a_fenced_follower_waits_for_the_controller() -> None:
    replica = Replica()
    async with following(replica) as (fetcher, leader):
        leader.say(about(code=ErrorCode.FENCED_LEADER_EPOCH))
        progress = fetcher.progress(KEY)
        assert progress is not None
        await eventually(lambda: progress.phase is Phase.FAILED)
        assert len(leader.asked) == 1
        replica.leader_epoch = 4
        fetcher.add(replica)  # type: ignore[arg-type]
        await asked(leader, 2)
        assert leader.named[1] == [(10, 4, 2)]


async def test_damaged_records_are_fetched_again_and_a_broken_disk_is_not() -> None:
    replica = Replica()
    replica.refuse = KafkaError(ErrorCode.CORRUPT_MESSAGE)
    async with following(replica) as (fetcher, leader):
        leader.say(about(b"123"), about(b"123"))
        await eventually(lambda: replica.log_end_offset == 13)
        replica.refuse = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        leader.say(about(b"123"))
        progress = fetcher.progress(KEY)
        assert progress is not None
        await eventually(lambda: progress.phase is Phase.FAILED)


async def test_a_shorter_leader_is_followed_to_its_end() -> None:
    replica = Replica()
    async with following(replica) as (_, leader):
        leader.offsets = {-1: 4}
        leader.say(about(code=ErrorCode.OFFSET_OUT_OF_RANGE))
        await asked(leader, 2)
        assert replica.done == [("cut", 4)]


async def test_a_leader_without_what_comes_next_makes_the_log_begin_anew() -> None:
    replica = Replica()
    async with following(replica) as (_, leader):
        leader.offsets = {-1: 90, -2: 40}
        leader.say(about(code=ErrorCode.OFFSET_OUT_OF_RANGE))
        await asked(leader, 2)
        assert replica.done == [("anew", 40)]
        assert leader.named[1][0][0] == 40


async def test_a_leader_that_cannot_tell_its_offsets_is_asked_again_later() -> None:
    replica = Replica()
    async with following(replica) as (_, leader):
        leader.offsets = {-1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
        leader.say(about(code=ErrorCode.OFFSET_OUT_OF_RANGE))
        await asked(leader, 2)
        assert not replica.done
        assert leader.named[-1] == [(10, 3, 2)]


async def test_a_lost_connection_makes_everything_be_said_anew() -> None:
    replica = Replica()
    async with following(replica) as (_, leader):
        leader.say(about(b"123"), PeerError("gone"))
        await asked(leader, 3)
        assert [(request.session_id, request.session_epoch) for request in leader.asked] == [
            (0, 0),
            (9, 1),
            (9, 0),
        ]
        assert leader.named[2] == [(13, 3, 2)]


async def test_an_answer_about_a_partition_that_was_removed_is_not_listened_to() -> None:
    replica = Replica()
    async with following(replica) as (fetcher, leader):
        await asked(leader, 1)
        fetcher.remove(KEY)
        leader.say(about(b"123"))
        await eventually(lambda: not leader.answers)
        assert replica.log_end_offset == 10
        assert len(fetcher) == 0


async def test_a_fetch_that_waits_is_given_up_for_what_is_new() -> None:
    replica = Replica()
    async with following(replica) as (fetcher, leader):
        leader.say(about())
        await asked(leader, 2)
        other = Replica(end=77)
        other.index = 1
        fetcher.add(other)  # type: ignore[arg-type]
        await asked(leader, 3)
        assert leader.named[2] == [(10, 3, 2), (77, 3, 2)]
        assert leader.asked[2].session_epoch == 0
        await asyncio.sleep(0.05)
        assert len(leader.asked) == 3, "given up once, not again and again"


async def test_an_answer_under_an_older_epoch_is_not_listened_to() -> None:
    replica = Replica()
    async with following(replica) as (fetcher, leader):
        await asked(leader, 1)
        replica.leader_epoch = 4
        fetcher.add(replica)  # type: ignore[arg-type]
        leader.say(about(b"123"))
        await asked(leader, 2)
        assert replica.log_end_offset == 10
        assert leader.named[1] == [(10, 4, 2)]


async def test_a_surprise_does_not_end_the_loop() -> None:
    replica = Replica()
    async with following(replica) as (_, leader):
        leader.say(ValueError("nobody foresaw this"), about(b"123"))
        await eventually(lambda: replica.log_end_offset == 13)
