"""A leader, its followers and a controller in any order of events, with answers that come late or never.

What must hold: the high watermark never falls, and nothing counts as committed that a member of the ISR, as the
controller has it, does not hold. So whoever of the ISR leads next has every record that was acknowledged.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.replica_state import Accepted, Leadership, LeaderState, Proposal

LEADER = 1
FOLLOWERS = (2, 3, 4)
LAG_MS = 1000


class Replication(RuleBasedStateMachine):
    @initialize(
        isr=st.sets(st.sampled_from(FOLLOWERS)),
        committed=st.integers(0, 5),
        above=st.integers(0, 5),
        min_isr=st.integers(1, 3),
    )
    def begin(self, isr: set[int], committed: int, above: int, min_isr: int) -> None:
        """The new leader knows less of what is committed than is: whoever is in the ISR has it."""
        self.now = 0
        self.end = committed + above
        self.held = {f: committed if f in isr else 0 for f in FOLLOWERS}
        self.alive = set(FOLLOWERS)
        self.offline: set[int] = set()
        self.leadership = Leadership(1, 1, (LEADER, *FOLLOWERS), (LEADER, *sorted(isr)))
        self.leader = LeaderState(
            LEADER,
            self.leadership,
            end=self.end,
            high_watermark=committed // 2,
            now_ms=0,
            lag_ms=LAG_MS,
            min_isr=min_isr,
            is_alive=self.alive.__contains__,
            is_offline=self.offline.__contains__,
        )
        self.highest = self.leader.high_watermark
        self.sent: list[Proposal] = []
        self.answers: list[tuple[Proposal, Accepted | ErrorCode]] = []
        self.spoken: list[Leadership] = []

    def send(self, proposal: Proposal | None) -> None:
        if proposal is not None:
            assert proposal is self.leader.pending
            self.sent.append(proposal)

    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        self.end += count
        self.leader.appended(self.end, self.now)

    @rule(follower=st.sampled_from(FOLLOWERS), takes=st.integers(0, 20))
    def fetch(self, follower: int, takes: int) -> None:
        """The leader learns what the follower held when it asked; what it is given it has afterwards."""
        offset = self.held[follower]
        self.send(self.leader.fetched(follower, offset, self.now).proposal)
        self.held[follower] = min(self.end, offset + takes)

    @rule(ms=st.integers(1, LAG_MS))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        self.send(self.leader.time_passed(self.now).proposal)

    @precondition(lambda self: self.sent)
    @rule(lost=st.booleans(), refuses=st.booleans())
    def controller_gets_proposal(self, lost: bool, refuses: bool) -> None:
        proposal = self.sent.pop(0)
        answer: Accepted | ErrorCode
        if proposal.partition_epoch != self.leadership.partition_epoch:
            answer = ErrorCode.INVALID_UPDATE_VERSION
        elif refuses:  # only ever said when nothing of it can have been carried out
            answer = ErrorCode.INELIGIBLE_REPLICA
        else:
            epoch = proposal.partition_epoch + 1
            self.leadership = replace(self.leadership, isr=proposal.isr, partition_epoch=epoch)
            answer = Accepted(proposal.isr, proposal.leader_epoch, epoch)
        if lost:
            answer = ErrorCode.NETWORK_EXCEPTION
        self.answers.append((proposal, answer))

    @precondition(lambda self: self.answers)
    @rule()
    def answer_arrives(self) -> None:
        proposal, answer = self.answers.pop(0)
        self.send(self.leader.answered(proposal, answer, self.now).proposal)

    @rule(follower=st.sampled_from(FOLLOWERS))
    def broker_dies(self, follower: int) -> None:
        """The controller takes it out of the ISR and tells the leader, who hears of it later."""
        self.alive.discard(follower)
        self.leader.replicas_went(self.now)
        isr = tuple(member for member in self.leadership.isr if member != follower)
        self.leadership = replace(
            self.leadership, isr=isr, partition_epoch=self.leadership.partition_epoch + 1
        )
        self.spoken.append(self.leadership)

    @rule(follower=st.sampled_from(FOLLOWERS))
    def broker_returns(self, follower: int) -> None:
        self.alive.add(follower)

    @rule(follower=st.sampled_from(FOLLOWERS))
    def replica_goes_offline(self, follower: int) -> None:
        self.offline.add(follower)
        self.leader.replicas_went(self.now)

    @rule(follower=st.sampled_from(FOLLOWERS))
    def replica_is_online(self, follower: int) -> None:
        self.offline.discard(follower)

    @rule()
    def controller_repeats_itself(self) -> None:
        """A new controller tells every leader what it found in the tree, which may be nothing new."""
        self.spoken.append(self.leadership)

    @precondition(lambda self: self.spoken)
    @rule()
    def controller_is_heard(self) -> None:
        self.leader.changed(self.spoken.pop(0), self.end, self.now)

    @invariant()
    def committed_is_held_by_the_isr(self) -> None:
        if not hasattr(self, "leader"):
            return
        high_watermark = self.leader.high_watermark
        assert high_watermark >= self.highest
        self.highest = high_watermark
        assert high_watermark <= self.end
        for member in self.leadership.isr:
            assert member == LEADER or self.held[member] >= high_watermark

    @invariant()
    def at_most_one_proposal_is_open(self) -> None:
        if hasattr(self, "leader"):
            pending = self.leader.pending
            on_the_way = [p for p in self.sent if p is pending] + [p for p, _ in self.answers if p is pending]
            assert len(on_the_way) <= 1
            assert set(self.leader.isr) <= set(self.leader.maximal_isr)


Replication.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestReplication = Replication.TestCase
