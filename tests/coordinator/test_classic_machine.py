"""Classic groups under anything that can happen: members that come, go and fall silent, a log that refuses now and
then, a coordinator that is reloaded. Whatever the order, each generation has one leader's assignment and no other, no
reply is lost or given twice, and the log alone gives back what was kept."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupResponse
from pykafka_broker.protocol.messages.leave_group import MemberIdentity
from pykafka_broker.protocol.messages.sync_group import SyncGroupResponse

from .harness import SUBSCRIPTION_TO_T, Harness

INSTANCES = st.sampled_from(["i", "j"])
PROTOCOLS = st.sampled_from(
    [
        {"range": SUBSCRIPTION_TO_T},
        {"range": b"other"},
        {"range": SUBSCRIPTION_TO_T, "sticky": b""},
        {"sticky": b"", "range": SUBSCRIPTION_TO_T},
    ]
)
SESSION_MS, REBALANCE_MS = 10_000, 15_000
LONG_ENOUGH_MS = 3_600_000
IDS_COME_WITH = (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
ANY = st.integers(min_value=0, max_value=1 << 16)


class ClassicGroupMachine(RuleBasedStateMachine):
    @initialize(delay=st.sampled_from([0, 3_000]), limit=st.sampled_from([2, 100]))
    def begin(self, delay: int, limit: int) -> None:
        self.h = Harness(
            GroupSettings(
                group_initial_rebalance_delay_ms=delay, group_max_size=limit, offsets_retention_ms=200_000
            )
        )
        self.members: dict[str, str | None] = {}
        """Ids that were given out, with the instance they belong to."""
        self.joins: dict[int, str | None] = {}
        """Tokens of joins, with the instance they are for."""
        self.syncs: dict[int, tuple[str, int, str]] = {}
        """Tokens of syncs: by whom, for which generation, and the mark of the assignment if it is a leader's."""
        self.read = 0
        self.told: dict[tuple[int, int], tuple[str, str | None]] = {}
        """By life of the group and generation: its leader and protocol."""
        self.marks: dict[tuple[int, int], str] = {}
        """By life of the group and generation: the mark of its assignment."""
        self.life = 0
        self.unwritten = False

    # What members do.

    @rule(version=st.integers(0, 9), protocols=PROTOCOLS)
    def newcomer(self, version: int, protocols: dict[str, bytes]) -> None:
        self._join("", None, version, protocols)

    @rule(instance=INSTANCES, version=st.integers(5, 9), protocols=PROTOCOLS)
    def static_restart(self, instance: str, version: int, protocols: dict[str, bytes]) -> None:
        self._join("", instance, version, protocols)

    @precondition(lambda self: self.members)
    @rule(pick=ANY, protocols=PROTOCOLS)
    def rejoin(self, pick: int, protocols: dict[str, bytes]) -> None:
        member = self._pick(pick)
        self._join(member, self.members[member], 9, protocols)

    @precondition(lambda self: self.members)
    @rule(pick=ANY, forgetful=st.booleans())
    def sync(self, pick: int, forgetful: bool) -> None:
        member = self._pick(pick)
        generation, name, peers = self._told(member)
        mark = f"{len(self.h.versions)}"
        parts = {} if forgetful else {peer: f"{mark}/{generation}/{peer}".encode() for peer in peers}
        token = self.h.sync(
            member, generation, parts, instance=self.members[member], protocol_name=name or "range"
        )
        self.syncs[token] = (member, generation, mark)
        self._after()

    @precondition(lambda self: self.members)
    @rule(pick=ANY)
    def heartbeat(self, pick: int) -> None:
        member = self._pick(pick)
        self.h.heartbeat(member, self._told(member)[0], instance=self.members[member])

    @precondition(lambda self: self.members)
    @rule(pick=ANY, partition=st.integers(0, 2))
    def commit(self, pick: int, partition: int) -> None:
        member = self._pick(pick)
        place = ("t", partition)
        self.h.commit({place: pick}, member_id=member, generation=self._told(member)[0])

    @precondition(lambda self: self.members)
    @rule(picks=st.lists(ANY, min_size=1, max_size=2))
    def leave(self, picks: list[int]) -> None:
        leaving = {self._pick(pick) for pick in picks}
        self.h.leave(*(MemberIdentity(member_id=m, group_instance_id=self.members[m]) for m in leaving))
        self._after()

    @rule(instance=INSTANCES)
    def removed_by_an_operator(self, instance: str) -> None:
        self.h.leave(MemberIdentity(member_id="", group_instance_id=instance))
        self._after()

    @precondition(lambda self: self.members)
    @rule(protocols=PROTOCOLS, syncing=st.booleans())
    def all_are_well(self, protocols: dict[str, bytes], syncing: bool) -> None:
        """Everybody joins, and perhaps syncs: alone, chance would seldom let a group become stable."""
        for member, instance in tuple(self.members.items()):
            self._join(member, instance, 9, protocols)
        self.time_passes(6_000)
        if syncing:
            for pick in range(len(self.members)):
                self.sync(pick, forgetful=False)

    # What the world does.

    @rule(ms=st.sampled_from([0, 1, 2_999, 3_000, 9_999, 10_000, 15_000, 300_000]))
    def time_passes(self, ms: int) -> None:
        self.h.pass_time(ms)
        self._after()

    @rule(error=st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR]))
    def log_refuses(self, error: ErrorCode) -> None:
        self.h.refuse_appends = error
        self.unwritten = True

    @rule()
    def log_accepts(self) -> None:
        self.h.refuse_appends = None

    @rule()
    def outsider_commits(self) -> None:
        self.h.commit({("u", 0): 7})

    @rule()
    def operator_deletes(self) -> None:
        self.h.call(DeleteGroupsRequest(groups_names=["g"]), 2)
        self._after()

    @rule()
    def coordinator_moves(self) -> None:
        self.h.refuse_appends = None
        self.h.apply(self.h.shard.unload())
        assert len(self.h.replies) == len(self.h.versions), "nobody is left waiting"
        fresh = self.h.reloaded()
        fresh.versions, fresh.replies = self.h.versions, self.h.replies
        self.h = fresh
        self.life += 1
        self.unwritten = False
        self._after()

    # What must hold.

    @invariant()
    def the_log_gives_back_what_was_kept(self) -> None:
        other = self.h.reloaded()
        assert other.offsets() == self.h.offsets()
        live, kept = self.h.describe(), other.describe()
        if self.unwritten or live.group_state not in ("Stable", "Dead"):
            return
        for described in (live, kept):
            described.members.sort(key=lambda member: member.member_id)
        assert kept == live

    def teardown(self) -> None:
        if not hasattr(self, "h"):
            return
        self.h.refuse_appends = None
        self.h.pass_time(LONG_ENOUGH_MS)
        waiting = self.h.versions.keys() - self.h.replies.keys()
        assert not waiting, "in the end everybody is answered"
        self._after()

    # How it is done.

    def _pick(self, pick: int) -> str:
        return sorted(self.members, key=list(self.members).index)[pick % len(self.members)]

    def _join(self, member: str, instance: str | None, version: int, protocols: dict[str, bytes]) -> None:
        token = self.h.join(
            member,
            version=version,
            instance=instance,
            protocols=protocols,
            session_ms=SESSION_MS,
            rebalance_ms=REBALANCE_MS,
        )
        self.joins[token] = instance
        self._after()

    def _told(self, member: str) -> tuple[int, str | None, list[str]]:
        """The last generation the member was told of, its protocol, and its peers if it leads."""
        for token in sorted(self.h.replies, reverse=True):
            answer = self.h.replies[token]
            if isinstance(answer, JoinGroupResponse) and answer.member_id == member and not answer.error_code:
                return answer.generation_id, answer.protocol_name, [m.member_id for m in answer.members]
        return 0, None, []

    def _after(self) -> None:
        """Looks at every reply that came since, in the order they came."""
        fresh = list(self.h.replies.items())[self.read :]
        for token, answer in fresh:
            if isinstance(answer, JoinGroupResponse) and answer.error_code in IDS_COME_WITH:
                self.members[answer.member_id] = self.joins[token]
        for token, answer in fresh:
            if isinstance(answer, JoinGroupResponse) and not answer.error_code:
                self._check_join(answer)
            elif isinstance(answer, SyncGroupResponse) and not answer.error_code:
                self._check_sync(token, answer)
        self.read = len(self.h.replies)
        if self.h.state() == "Dead" or self.h.refuse_appends is not None:
            self.life += 1  # generations may be counted again
        if self.h.refuse_appends is None and self.h.state() == "Stable":
            # Whatever could not be written before, the generation that is stable now was.
            self.unwritten = self.unwritten and not self._is_written()

    def _check_join(self, answer: JoinGroupResponse) -> None:
        told = (self._who(answer.leader), answer.protocol_name)
        known = self.told.setdefault((self.life, answer.generation_id), told)
        assert known == told, "all members of a generation are told the same"

    def _check_sync(self, token: int, answer: SyncGroupResponse) -> None:
        member, generation, _ = self.syncs[token]
        if not answer.assignment:
            return
        mark, of_generation, owner = answer.assignment.decode().split("/", 2)
        assert int(of_generation) == generation, "an assignment is of the generation asked for"
        assert self._who(owner) == self._who(member), "and of the member that asked"
        _, _, leaders_mark = self.syncs[int(mark)]
        assert leaders_mark == mark
        assert not self.h.replies[int(mark)].error_code, "one that was refused reaches nobody"
        assert self.marks.setdefault((self.life, generation), mark) == mark, "a generation has one assignment"

    def _who(self, member: str) -> str:
        """A static member is who it is, whichever its id."""
        return self.members.get(member) or member

    def _is_written(self) -> bool:
        live, kept = self.h.describe(), self.h.reloaded().describe()
        for described in (live, kept):
            described.members.sort(key=lambda member: member.member_id)
        return bool(live == kept)


TestClassicGroups = ClassicGroupMachine.TestCase
TestClassicGroups.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
