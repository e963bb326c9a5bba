"""Consumer groups under any order of events: members join, beat, are slow, crash, leave, come back; topics grow; the
coordinator restarts, its log refuses a write.

Always: no two members own a partition, a reload gives the live state, every request is answered once. In the end: every
wanted partition is owned by exactly one member that wants it.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from pykafka_broker.coordinator.consumer_group_gathering import LONGEST_MS, QUIET_MS
from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.protocol.errors import ErrorCode

from .classic_consumer import ClassicConsumer
from .consumers import HEARTBEAT_MS, Consumer, image
from .harness import Harness, KnownTopics

TOPICS = ["t", "u", "v"]
MOST_MEMBERS = 6
PATIENCE_MS = 20_000
MEANWHILE = ["nothing", "leaves", "classic joins", "grows", "refused", "refused at once", "restart"]


class Groups(RuleBasedStateMachine):
    """One group, its members, and time."""

    def __init__(self) -> None:
        super().__init__()
        self.members: list[Consumer | ClassicConsumer] = []
        self.heard: dict[Consumer | ClassicConsumer, int] = {}
        self.names = 0

    @initialize(interval=st.sampled_from([0, 1_000]), assignor=st.sampled_from([None, "range"]))
    def start(self, interval: int, assignor: str | None) -> None:
        settings = GroupSettings(
            group_initial_rebalance_delay_ms=0, group_consumer_assignment_interval_ms=interval
        )
        self.h = Harness(settings, KnownTopics({"t": 3, "u": 2}))
        self.assignor = assignor
        self.number_ids()

    def number_ids(self) -> None:
        """Ids the broker makes are numbered, so that what was found can be found again."""
        self.h.shard._consumer._context.new_id = self.name
        self.h.shard._classic.joins._new_id = self.name

    def name(self) -> str:
        self.names += 1
        return f"m{self.names}"

    # Members come.

    @precondition(lambda self: len(self.members) < MOST_MEMBERS)
    @rule(topics=st.sets(st.sampled_from(TOPICS), min_size=1))
    def joins(self, topics: set[str]) -> None:
        self.add(Consumer(self.h, self.name(), sorted(topics), assignor=self.assignor))

    @precondition(lambda self: len(self.members) < MOST_MEMBERS)
    @rule(regex=st.sampled_from(["t|u", ".", "v.*", "x"]))
    def joins_by_regex(self, regex: str) -> None:
        self.add(Consumer(self.h, self.name(), None, regex=regex))

    @precondition(lambda self: len(self.members) < MOST_MEMBERS)
    @rule(topics=st.sets(st.sampled_from(TOPICS), min_size=1))
    def joins_as_static_member(self, topics: set[str]) -> None:
        name = self.name()
        self.add(Consumer(self.h, name, sorted(topics), instance=f"i{name}"))

    @precondition(lambda self: len(self.members) < MOST_MEMBERS)
    @rule(topics=st.sets(st.sampled_from(TOPICS), min_size=1))
    def joins_as_classic_member(self, topics: set[str]) -> None:
        self.add(ClassicConsumer(self.h, sorted(topics)))

    def add(self, member: Consumer | ClassicConsumer) -> None:
        self.members.append(member)
        self.beat(member)

    def beat(self, member: Consumer | ClassicConsumer) -> None:
        member.beat()
        self.heard[member] = self.h.now_ms

    # Members live.

    @precondition(lambda self: self.members)
    @rule(data=st.data(), slow=st.booleans())
    def beats(self, data: st.DataObject, slow: bool) -> None:
        member = data.draw(st.sampled_from(self.members))
        if slow:
            member.beat(digest=False)
        else:
            self.beat(member)

    @precondition(lambda self: self.members)
    @rule(data=st.data(), topics=st.sets(st.sampled_from(TOPICS), min_size=1))
    def wants_something_else(self, data: st.DataObject, topics: set[str]) -> None:
        data.draw(st.sampled_from(self.members)).subscribe(sorted(topics))

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def loses_an_answer(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(self.members))
        if isinstance(member, Consumer) and member.epoch:
            member.beat_in_vain()

    @precondition(lambda self: self.consumers())
    @rule(
        data=st.data(),
        newcomers=st.integers(0, 2),
        meanwhile=st.sampled_from(MEANWHILE),
        ms=st.sampled_from([0, 1, QUIET_MS, LONGEST_MS]),
    )
    def several_beat_at_once(self, data: st.DataObject, newcomers: int, meanwhile: str, ms: int) -> None:
        asking = data.draw(st.lists(st.sampled_from(self.consumers()), unique=True, min_size=1))
        for _ in range(newcomers):
            asking.append(Consumer(self.h, self.name(), ["t"]))
        self.members += asking[len(asking) - newcomers :]
        h = self.h
        h.refuse_appends = ErrorCode.NOT_ENOUGH_REPLICAS if meanwhile == "refused at once" else None
        tokens = [member.ask() for member in asking]
        h.pass_time(ms)
        match meanwhile:
            case "leaves":
                self.members.remove(asking[0])
                asking[0].leave()
            case "classic joins":
                self.add(ClassicConsumer(self.h, ["u"]))
            case "grows":
                self.topic_grows("v")
            case "refused":
                h.refuse_appends = ErrorCode.NOT_ENOUGH_REPLICAS
            case "restart":
                self.coordinator_restarts()
        h.pass_time(LONGEST_MS)
        h.refuse_appends = None
        for member, token in zip(asking, tokens, strict=True):
            member.hear(h.replies[token])
            self.heard[member] = self.h.now_ms

    def consumers(self) -> list[Consumer]:
        return [member for member in self.members if isinstance(member, Consumer)]

    # Members go.

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def leaves(self, data: st.DataObject) -> None:
        self.take(data).leave()

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def crashes(self, data: st.DataObject) -> None:
        self.take(data)

    @precondition(lambda self: any(m.instance for m in self.members))
    @rule(data=st.data(), under_another_id=st.booleans())
    def restarts(self, data: st.DataObject, under_another_id: bool) -> None:
        old = data.draw(st.sampled_from([m for m in self.members if isinstance(m, Consumer) and m.instance]))
        self.members.remove(old)
        old.leave(-2)
        name = self.name() if under_another_id else old.member_id
        self.add(Consumer(self.h, name, old.topics, instance=old.instance))

    def take(self, data: st.DataObject) -> Consumer | ClassicConsumer:
        member = data.draw(st.sampled_from(self.members))
        self.members.remove(member)
        return member

    # The world.

    @rule(topic=st.sampled_from(TOPICS))
    def topic_grows(self, topic: str) -> None:
        if self.h.topics.counts.get(topic, 0) < 5:
            self.h.topics.counts[topic] = self.h.topics.counts.get(topic, 0) + 1
            self.h.shard.topics_changed()

    @rule(ms=st.sampled_from([0, 500, 3_000]))
    def time_passes(self, ms: int) -> None:
        self.h.pass_time(ms)
        for member in self.members:
            # Who stays silent too long may be given up, and cannot know.
            if self.h.now_ms - self.heard[member] > PATIENCE_MS:
                self.beat(member)

    @rule()
    def coordinator_restarts(self) -> None:
        self.h.apply(self.h.shard.unload())
        self.everything_is_answered()
        self.h = self.h.reloaded()
        self.number_ids()
        for member in self.members:
            member.h = self.h
            if isinstance(member, ClassicConsumer):
                member.lost_coordinator()

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def a_write_is_refused(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(self.members))
        self.h.refuse_appends = ErrorCode.NOT_ENOUGH_REPLICAS
        self.beat(member)
        self.h.refuse_appends = None

    # What must hold.

    @invariant()
    def nobody_shares_a_partition(self) -> None:
        owned = [partition for member in self.members for partition in member.owned]
        assert len(owned) == len(set(owned)), [(m.member_id, m.owned) for m in self.members]

    @invariant()
    def a_reload_gives_the_live_state(self) -> None:
        if hasattr(self, "h"):
            assert image(self.h.reloaded()) == image(self.h)

    def teardown(self) -> None:
        if not hasattr(self, "h"):
            return
        for _ in range(60):
            for member in self.members:
                member.beat()
                self.nobody_shares_a_partition()
            self.h.pass_time(HEARTBEAT_MS)
        self.everything_wanted_is_owned_once()
        self.h.apply(self.h.shard.unload())
        self.everything_is_answered()

    def everything_is_answered(self) -> None:
        assert set(self.h.replies) == set(self.h.versions)

    def everything_wanted_is_owned_once(self) -> None:
        counts = self.h.topics.counts
        wanted = {
            (topic, partition)
            for member in self.members
            for topic in member.wants(counts)
            for partition in range(counts[topic])
        }
        owned = sorted(partition for member in self.members for partition in member.owned)
        assert owned == sorted(wanted), [(m.member_id, m.owned) for m in self.members]
        for member in self.members:
            assert {topic for topic, _ in member.owned} <= set(member.wants(counts))


TestConsumerGroups = Groups.TestCase
TestConsumerGroups.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
