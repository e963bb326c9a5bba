"""What a follower decides: where it begins, where it cuts its log, what it makes of errors, what it says next."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.follower_session import FollowerSession
from pykafka_broker.replication.follower_state import (
    Next,
    Phase,
    Start,
    begin,
    judge,
    pause_ms,
    start_after_begin,
    start_after_end,
    truncation_offset,
)

TOPIC = UUID(int=7)


@dataclass
class Log:
    """A log as a list of the epoch of each record."""

    epochs: list[int] = field(default_factory=list)
    high_watermark: int = 0
    log_start_offset: int = 0
    knows_epochs: bool = True

    @property
    def log_end_offset(self) -> int:
        return len(self.epochs)

    @property
    def latest_epoch(self) -> int:
        return self.epochs[-1] if self.epochs and self.knows_epochs else -1

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """As LeaderEpochs.end_offset_for."""
        if epoch < 0 or epoch > self.latest_epoch:
            return -1, -1
        below = [known for known in self.epochs if known <= epoch]
        return (below[-1] if below else epoch), len(below)

    def as_leader(self, epoch: int, leader_epoch: int) -> tuple[int, int]:
        """As LeaderEpochs.end_offset_as_leader: the leader's own epoch begins at the end."""
        if epoch > self.latest_epoch:
            return (epoch if epoch == leader_epoch else self.latest_epoch), self.log_end_offset
        return self.epoch_end(epoch)


def test_a_log_with_epochs_is_compared_and_one_without_is_cut_to_what_is_committed() -> None:
    known = begin("t", 0, TOPIC, 3, Log([1, 1, 2]))
    assert (known.phase, known.offset, known.last_epoch) == (Phase.FETCHING, 3, 2)
    unknown = begin("t", 0, TOPIC, 3, Log([1, 1, 2], high_watermark=1, knows_epochs=False))
    assert (unknown.phase, unknown.offset, unknown.last_epoch) == (Phase.TRUNCATING, 1, -1)


@pytest.mark.parametrize(
    ("epochs", "diverging", "cut_to", "why"),
    [
        ([1, 1, 2, 2], (2, 3), 3, "the leader has less of an epoch that both know"),
        ([1, 1, 3, 3], (2, 9), 2, "an epoch that is not known here: back to where ours below it ended"),
        ([1, 1, 1], (1, 9), 3, "never beyond the own end"),
        ([5, 5], (3, 1), 0, "all epochs here are newer than the leader's"),
        ([], (3, 1), 0, "nothing here"),
        ([1, 1, 2], (-1, 2), 2, "a leader that does not name epochs"),
    ],
)
def test_logs_are_cut_where_they_part(
    epochs: list[int], diverging: tuple[int, int], cut_to: int, why: str
) -> None:
    assert truncation_offset(Log(epochs), *diverging) == cut_to, why


def test_without_any_word_of_the_leader_only_what_is_committed_is_kept() -> None:
    assert truncation_offset(Log([1, 1, 1], high_watermark=2), -1, -1) == 2


@given(
    common=st.lists(st.integers(0, 4), max_size=6),
    ours=st.lists(st.integers(0, 9), max_size=6),
    theirs=st.lists(st.integers(0, 9), max_size=6),
)
def test_any_two_histories_come_together_exactly_where_they_part(
    common: list[int], ours: list[int], theirs: list[int]
) -> None:
    """Two leaders never write in the same epoch, so records of equal epoch and offset are equal: ours are of odd
    epochs from here on, theirs of even ones."""
    common = sorted(common)
    mine = Log(common + sorted(5 + 2 * epoch for epoch in ours))
    leader = Log(common + sorted(6 + 2 * epoch for epoch in theirs))
    leader_epoch = 100
    for _ in range(20):
        if mine.latest_epoch < 0:
            break
        epoch, end = leader.as_leader(mine.latest_epoch, leader_epoch)
        if (epoch, end) == (-1, -1) or not (epoch < mine.latest_epoch or end < mine.log_end_offset):
            break
        cut = truncation_offset(mine, epoch, end)
        assert cut < mine.log_end_offset
        assert cut >= len(common), "what both have is never cut"
        del mine.epochs[cut:]
    else:
        pytest.fail("the logs never agreed")
    assert mine.epochs == leader.epochs[: len(mine.epochs)]


def test_errors_pass_except_that_a_newer_leader_was_elected() -> None:
    assert judge(ErrorCode.NONE) is Next.TAKE
    assert judge(ErrorCode.OFFSET_OUT_OF_RANGE) is Next.LOOK_FOR_START
    assert judge(ErrorCode.FENCED_LEADER_EPOCH) is Next.FAIL
    for code in (
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ):
        assert judge(code) is Next.DELAY
    assert judge(31_000) is Next.DELAY, "a code of a later time"


def test_pauses_grow_to_the_longest() -> None:
    assert [pause_ms(n, 1000) for n in (0, 1, 2, 5, 100)] == [50, 100, 200, 1000, 1000]


def test_out_of_range_follows_a_shorter_leader_and_begins_anew_where_nothing_joins_on() -> None:
    assert start_after_end(10, 7) == Start(7, cut=True)
    assert start_after_end(10, 10) is None
    assert start_after_begin(10, 4) == Start(10)
    assert start_after_begin(10, 25) == Start(25, anew=True)


A, B = (uuid4(), 0), (uuid4(), 3)


def test_a_session_says_everything_once_and_then_only_what_changed() -> None:
    session = FollowerSession()
    session.put(A)
    session.put(B)
    assert session.turn() == (0, 0, (A, B), ())
    assert session.answered(ErrorCode.NONE, 77)
    assert session.turn() == (77, 1, (), ())
    assert session.answered(ErrorCode.NONE, 77)
    session.put(B)
    session.drop(A)
    assert session.turn() == (77, 2, (B,), (A,))


def test_what_changes_while_a_request_is_under_way_goes_into_the_next() -> None:
    session = FollowerSession()
    session.put(A)
    session.turn()
    session.put(B)
    session.put(A)
    session.answered(ErrorCode.NONE, 5)
    assert session.turn() == (5, 1, (B, A), ())


def test_a_partition_dropped_and_taken_up_again_is_not_missed_by_the_leader() -> None:
    """It would not repeat what it has told already, and we did not listen to."""
    session = FollowerSession()
    session.put(A)
    session.put(B)
    session.turn()
    session.answered(ErrorCode.NONE, 5)
    session.turn()
    session.drop(A)
    session.put(A)
    session.answered(ErrorCode.NONE, 5)
    assert session.turn() == (5, 0, (B, A), ())


def test_after_any_trouble_everything_is_said_anew() -> None:
    session = FollowerSession()
    session.put(A)
    session.turn()
    session.answered(ErrorCode.NONE, 5)
    session.turn()
    assert not session.answered(ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert session.turn() == (5, 0, (A,), ()), "the old session is named so that it can be closed"
    session.answered(ErrorCode.NONE, 6)
    session.turn()
    assert not session.answered(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert session.turn() == (0, 0, (A,), ())
    session.lost()
    assert session.turn() == (0, 0, (A,), ())


def test_a_leader_without_room_for_sessions_is_told_everything_every_time() -> None:
    session = FollowerSession()
    session.put(A)
    for _ in range(2):
        assert session.turn() == (0, 0, (A,), ())
        assert session.answered(ErrorCode.NONE, 0)


def test_the_epoch_of_a_session_begins_again_at_one() -> None:
    session = FollowerSession()
    session.put(A)
    session.turn()
    session.answered(ErrorCode.NONE, 5)
    session._epoch = 2**31 - 1
    session.turn()
    session.answered(ErrorCode.NONE, 5)
    assert session.turn().epoch == 1
