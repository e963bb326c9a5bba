"""The leader's view of its replicas: when records are committed, who is in sync, what the controller is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.replica_state import (
    NOTHING,
    Accepted,
    Decision,
    Leadership,
    LeaderState,
    Proposal,
)

LAG_MS = 30_000
LEADER, TWO, THREE = 1, 2, 3


def leading(
    *,
    isr: tuple[int, ...] = (1, 2, 3),
    replicas: tuple[int, ...] = (1, 2, 3),
    end: int = 10,
    high_watermark: int = 10,
    **more: Any,
) -> LeaderState:
    return LeaderState(
        LEADER,
        Leadership(leader_epoch=5, partition_epoch=7, replicas=replicas, isr=isr),
        end=end,
        high_watermark=high_watermark,
        now_ms=0,
        lag_ms=LAG_MS,
        **more,
    )


def accept(state: LeaderState, proposal: Proposal | None, now_ms: int = 0) -> Decision:
    assert proposal is not None
    answer = Accepted(proposal.isr, proposal.leader_epoch, proposal.partition_epoch + 1)
    return state.answered(proposal, answer, now_ms)


@dataclass
class Heard:
    asked_ms: float


def test_records_are_committed_when_the_last_member_of_the_isr_has_them() -> None:
    state = leading()
    assert not state.appended(20, 0)
    assert state.fetched(TWO, 20, 1) == NOTHING
    assert state.high_watermark == 10
    assert state.fetched(THREE, 15, 2).moved
    assert state.high_watermark == 15
    assert state.fetched(THREE, 20, 3).moved
    assert state.high_watermark == 20


def test_a_leader_alone_in_the_isr_commits_as_it_appends() -> None:
    state = leading(isr=(1,))
    assert state.appended(20, 0)
    assert state.high_watermark == 20


def test_a_member_that_was_never_heard_of_holds_the_watermark_back() -> None:
    state = leading(isr=(1, 2), high_watermark=4)
    assert state.high_watermark == 4
    assert state.fetched(TWO, 10, 1).moved
    assert state.high_watermark == 10


def test_a_member_that_falls_back_does_not_pull_the_watermark_down() -> None:
    state = leading(isr=(1, 2))
    state.fetched(TWO, 10, 1)
    assert state.fetched(TWO, 3, 2) == NOTHING
    assert state.high_watermark == 10


def test_a_follower_that_has_all_that_is_committed_is_proposed_for_the_isr() -> None:
    state = leading(isr=(1, 2))
    state.fetched(TWO, 10, 0)
    assert state.fetched(THREE, 9, 0) == NOTHING
    proposal = state.fetched(THREE, 10, 0).proposal
    assert proposal is not None
    assert (proposal.isr, proposal.joining) == ((1, 2, 3), 3)
    assert (proposal.leader_epoch, proposal.partition_epoch) == (5, 7)
    accept(state, proposal)
    assert (state.isr, state.partition_epoch) == ((1, 2, 3), 8)


def test_the_watermark_counts_with_who_is_about_to_join() -> None:
    state = leading(isr=(1,))
    proposal = state.fetched(TWO, 10, 0).proposal
    assert not state.appended(20, 0)
    assert state.high_watermark == 10
    assert (state.isr, state.maximal_isr) == ((1,), (1, 2))
    accept(state, proposal)
    assert state.fetched(TWO, 20, 0).moved


def test_a_follower_joins_only_when_it_has_what_former_leaders_left() -> None:
    """Committed records may lie above the watermark that a new leader knows of."""
    state = leading(isr=(1, 2), end=10, high_watermark=4)
    assert state.fetched(THREE, 9, 0) == NOTHING
    assert state.fetched(THREE, 10, 0).proposal is not None


def test_a_follower_that_keeps_up_by_time_is_waited_for_before_it_joins() -> None:
    state = leading(isr=(1,))
    state.appended(100, 0)
    assert state.high_watermark == 100
    state.fetched(TWO, 90, 0)  # behind, and not yet known to keep up
    state.appended(110, 1)
    assert state.high_watermark == 110
    state.fetched(TWO, 110, 2)  # asks for the ISR; the controller does not want it yet
    assert state.pending is not None
    state.answered(state.pending, ErrorCode.INELIGIBLE_REPLICA, 2)
    assert not state.appended(120, 3)
    assert state.high_watermark == 110
    assert state.appended(130, LAG_MS + 3)
    assert state.high_watermark == 130


def test_a_broker_that_is_not_alive_neither_joins_nor_is_waited_for() -> None:
    alive: set[int] = set()
    state = leading(isr=(1,), is_alive=alive.__contains__)
    assert state.fetched(TWO, 10, 0) == NOTHING
    assert state.appended(20, 1)
    alive.add(TWO)
    assert state.fetched(TWO, 20, 2).proposal is not None


def waiting_for_an_outsider(**more: Any) -> LeaderState:
    """Two kept up, left the ISR, and has yet to fetch what was appended last."""
    state = leading(isr=(1, 2), **more)
    state.fetched(TWO, 10, 0)
    state.changed(replace(state.leadership, partition_epoch=8, isr=(1,)), 10, 0)
    assert not state.appended(20, 1)
    return state


def test_a_broker_that_goes_is_not_waited_for_any_more() -> None:
    alive = {TWO}
    state = waiting_for_an_outsider(is_alive=alive.__contains__)
    assert not state.replicas_went(2)
    alive.clear()
    assert state.replicas_went(3)
    assert state.high_watermark == 20


def test_a_replica_that_is_offline_is_waited_for_only_in_the_isr() -> None:
    """Its broker shuts down in good order: it is alive, and fetches nothing any more."""
    offline: set[int] = set()
    state = waiting_for_an_outsider(is_offline=offline.__contains__)
    offline.add(TWO)
    assert state.replicas_went(2)
    assert state.high_watermark == 20
    assert state.appended(30, 3)

    member = leading(isr=(1, 2), is_offline=offline.__contains__)
    member.fetched(TWO, 10, 0)
    assert not member.appended(20, 1)
    assert not member.replicas_went(2)


def test_who_was_asked_for_counts_even_when_it_goes() -> None:
    """The controller may have let it in already."""
    alive = {TWO}
    state = leading(isr=(1,), is_alive=alive.__contains__, is_offline=lambda _: True)
    proposal = state.fetched(TWO, 10, 0).proposal
    assert not state.appended(20, 1)
    alive.clear()
    assert not state.replicas_went(2)
    assert not state.time_passed(2 * LAG_MS).moved
    assert proposal is not None
    assert state.answered(proposal, ErrorCode.INELIGIBLE_REPLICA, 3).moved
    assert state.high_watermark == 20


def test_a_follower_that_falls_asleep_outside_the_isr_is_waited_for_only_so_long() -> None:
    state = waiting_for_an_outsider()
    assert state.time_passed(LAG_MS) == NOTHING
    assert state.time_passed(LAG_MS + 1).moved
    assert state.high_watermark == 20


def test_who_lags_for_too_long_is_proposed_to_leave_and_counts_until_the_controller_says_so() -> None:
    state = leading()
    state.appended(20, 0)
    state.fetched(TWO, 20, LAG_MS)
    assert state.time_passed(LAG_MS) == NOTHING
    proposal = state.time_passed(LAG_MS + 1).proposal
    assert proposal is not None
    assert (proposal.isr, proposal.leaving) == ((1, 2), frozenset({THREE}))
    assert (state.isr, state.high_watermark) == ((1, 2, 3), 10)
    assert accept(state, proposal, LAG_MS + 1).moved
    assert (state.isr, state.high_watermark) == ((1, 2), 20)


def test_who_has_everything_never_lags() -> None:
    state = leading(isr=(1, 2))
    state.fetched(TWO, 10, 0)
    assert state.time_passed(100 * LAG_MS) == NOTHING


def test_who_always_reaches_the_end_of_a_fetch_ago_keeps_up() -> None:
    """Under a steady stream of small writes a follower is never quite at the end."""
    state = leading(isr=(1, 2))
    end, now = 10, 0
    for _ in range(10):
        state.fetched(TWO, end, now)
        end += 5
        state.appended(end, now)
        now += LAG_MS // 2
        state.fetched(TWO, end - 1, now)  # all but the newest record
        now += LAG_MS // 2
    assert state.time_passed(now) == NOTHING


def test_a_quiet_partition_s_follower_is_known_by_its_other_fetches() -> None:
    state = leading(isr=(1, 2))
    heard = Heard(0)
    state.fetched(TWO, 10, 0, pulse=heard)
    heard.asked_ms = 10 * LAG_MS
    state.appended(20, 10 * LAG_MS + 400)
    assert state.time_passed(10 * LAG_MS + 500) == NOTHING
    assert state.time_passed(11 * LAG_MS + 1).proposal is not None


def test_one_proposal_at_a_time() -> None:
    state = leading(isr=(1,))
    first = state.fetched(TWO, 10, 0).proposal
    assert state.fetched(THREE, 10, 0).proposal is None
    assert state.time_passed(10 * LAG_MS) == NOTHING
    accept(state, first)
    second = state.fetched(THREE, 10, 0).proposal
    assert second is not None
    assert second.isr == (1, 2, 3)


@pytest.mark.parametrize("code", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA])
def test_a_proposal_that_was_not_carried_out_is_forgotten(code: ErrorCode) -> None:
    state = leading(isr=(1,))
    proposal = state.fetched(TWO, 10, 0).proposal
    assert proposal is not None
    assert state.answered(proposal, code, 0).proposal is None
    assert (state.pending, state.maximal_isr) == (None, (1,))
    assert state.fetched(TWO, 10, 0).proposal is not None


@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID]
)
def test_who_is_out_of_date_waits_for_the_controller_to_speak(code: ErrorCode) -> None:
    state = leading(isr=(1,))
    proposal = state.fetched(TWO, 10, 0).proposal
    assert proposal is not None
    assert state.answered(proposal, code, 0) == NOTHING
    assert state.pending is proposal
    assert state.maximal_isr == (1, 2)
    state.changed(replace(state.leadership, partition_epoch=9, isr=(1, 3)), 10, 0)
    assert (state.pending, state.isr, state.maximal_isr) == (None, (1, 3), (1, 3))


def test_what_is_known_already_says_nothing_of_a_proposal_under_way() -> None:
    """A new controller repeats what it found, and carries out the next moment what it was asked before."""
    state = leading(isr=(1,))
    proposal = state.fetched(TWO, 10, 0).proposal
    assert not state.changed(state.leadership, 10, 0)
    assert (state.pending, state.maximal_isr) == (proposal, (1, 2))
    state.appended(20, 2 * LAG_MS)
    assert state.high_watermark == 10
    accept(state, proposal)
    assert (state.isr, state.partition_epoch) == ((1, 2), 8)


def test_what_is_known_already_ends_a_proposal_that_came_to_nothing() -> None:
    state = leading(isr=(1,))
    proposal = state.fetched(TWO, 10, 0).proposal
    assert proposal is not None
    state.answered(proposal, ErrorCode.UNKNOWN_TOPIC_ID, 0)
    state.changed(state.leadership, 10, 0)
    assert (state.pending, state.maximal_isr) == (None, (1,))


def test_any_other_refusal_is_asked_again() -> None:
    state = leading(isr=(1,))
    proposal = state.fetched(TWO, 10, 0).proposal
    assert proposal is not None
    assert state.answered(proposal, ErrorCode.UNKNOWN_SERVER_ERROR, 0) == Decision(False, proposal)
    accept(state, proposal)
    assert state.isr == (1, 2)


def test_an_answer_that_comes_after_the_controller_spoke_is_not_listened_to() -> None:
    state = leading(isr=(1,))
    proposal = state.fetched(TWO, 10, 0).proposal
    state.changed(replace(state.leadership, partition_epoch=9, isr=(1,)), 10, 0)
    assert accept(state, proposal) == NOTHING
    assert (state.isr, state.partition_epoch) == ((1,), 9)


def test_word_from_before_what_is_known_is_not_listened_to() -> None:
    state = leading(isr=(1,))
    accept(state, state.fetched(TWO, 10, 0).proposal)
    assert not state.changed(replace(state.leadership, isr=(1, 3)), 10, 0)
    assert state.isr == (1, 2)


def test_below_min_insync_replicas_nothing_is_committed() -> None:
    state = leading(isr=(1,), min_isr=2)
    assert state.is_under_min_isr
    assert not state.appended(20, 0)
    accept(state, state.fetched(TWO, 20, 0).proposal)
    assert not state.is_under_min_isr
    assert state.high_watermark == 20


def test_more_in_sync_replicas_than_there_are_cannot_be_asked_for() -> None:
    assert not leading(replicas=(1, 2), isr=(1, 2), min_isr=3).is_under_min_isr


def test_a_new_epoch_of_the_same_leader_begins_at_the_end_of_the_log() -> None:
    state = leading(isr=(1, 2))
    state.fetched(TWO, 10, 0)
    state.appended(20, 0)
    epoch = replace(state.leadership, leader_epoch=6, partition_epoch=9, isr=(1, 2))
    state.changed(epoch, 20, LAG_MS)
    assert state.epoch_start == 20
    assert state.fetched(THREE, 15, LAG_MS).proposal is None
    assert state.time_passed(2 * LAG_MS) == NOTHING


def test_the_low_watermark_is_where_the_last_living_replica_starts() -> None:
    alive = {1, 2, 3}
    state = leading(is_alive=alive.__contains__)
    state.fetched(TWO, 10, 0, start_offset=4)
    assert state.low_watermark(6) == -1
    state.fetched(THREE, 10, 0, start_offset=5)
    assert state.low_watermark(6) == 4
    alive.clear()
    assert state.low_watermark(6) == 6
