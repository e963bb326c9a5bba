"""Any order of events: what must hold of leaders, of the tree and of what brokers believe."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.controller import events
from pykafka_broker.cluster.controller.isr import IsrWish
from pykafka_broker.cluster.view import load_view
from pykafka_broker.protocol.errors import ErrorCode

from .controlled import Cluster, run

BROKERS = (1, 2, 3, 4)
REPLICAS = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True)
A_BROKER = st.sampled_from(BROKERS)
PICK = st.integers(0, 1000)


class ControllerMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.cluster = None
        self.count = 0

    @initialize(unclean=st.booleans())
    def begin(self, unclean):
        self.unclean = unclean
        self.cluster = Cluster(BROKERS, unclean_leader_election_enable=unclean)
        self.before = self.cluster.view

    def alive(self, broker):
        return broker in self.cluster.brokers

    def pick(self, number):
        """Some partition of a topic that is not being deleted."""
        state = self.cluster.state
        all_of_them = [
            (t.name, n)
            for t in state.view.topics.values()
            if t.name not in state.deletions
            for n in range(len(t.partitions))
        ]
        return all_of_them[number % len(all_of_them)] if all_of_them else None

    @rule(brokers=st.sets(A_BROKER, min_size=1, max_size=3))
    def kill(self, brokers):
        self.cluster.kill(*[b for b in brokers if self.alive(b)])

    @rule(broker=A_BROKER)
    def start(self, broker):
        if not self.alive(broker):
            self.cluster.start(broker)

    @rule(brokers=st.sets(A_BROKER, min_size=1, max_size=2))
    def bounce(self, brokers):
        self.cluster.bounce(*[b for b in brokers if self.alive(b)])

    @rule(replicas=st.lists(REPLICAS, min_size=1, max_size=3))
    def create_topic(self, replicas):
        self.count += 1
        self.cluster.create_topic(f"t{self.count}", *replicas)

    @rule(number=PICK, replicas=REPLICAS)
    def add_partition(self, number, replicas):
        if tp := self.pick(number):
            self.cluster.add_partitions(tp[0], replicas)

    @rule(number=PICK)
    def delete_topic(self, number):
        if tp := self.pick(number):
            self.cluster.delete_topic(tp[0])

    @rule(broker=A_BROKER, error=st.sampled_from([ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]))
    def answer_stops(self, broker, error):
        if self.alive(broker):
            self.cluster.answer_stops(broker, error)

    @rule(number=PICK, members=st.sets(A_BROKER))
    def alter_isr(self, number, members):
        tp = self.pick(number)
        p = tp and self.cluster.partition(*tp)
        if p and p.leader >= 0:
            isr = tuple(r for r in p.replicas if r in members or r == p.leader)
            wish = IsrWish(p.leader_epoch, p.partition_epoch, isr)
            epoch = self.cluster.brokers[p.leader].epoch
            self.cluster.react(events.AlterPartition(p.leader, epoch, 1, {tp: wish}))

    @rule(number=PICK, replicas=st.none() | REPLICAS)
    def reassign(self, number, replicas):
        if tp := self.pick(number):
            self.cluster.react(events.AlterReassignments({tp: replicas}))

    @rule(number=PICK, kind=st.sampled_from(events.ElectionType))
    def elect(self, number, kind):
        tp = self.pick(number)
        # An operator's unclean election is not held to the promise about the ISR.
        if tp and (kind is events.ElectionType.PREFERRED or self.unclean):
            self.cluster.react(events.ElectLeaders(kind, [tp]))

    @rule()
    def balance(self):
        self.cluster.react(events.BalanceLeaders())

    @rule(broker=A_BROKER)
    def shut_down(self, broker):
        if self.alive(broker):
            self.cluster.react(events.ControlledShutdown(broker, self.cluster.brokers[broker].epoch))

    @rule(broker=A_BROKER, number=PICK)
    def fail_disk(self, broker, number):
        tp = self.pick(number)
        if tp and self.alive(broker) and broker in self.cluster.partition(*tp).replicas:
            self.cluster.fail_disk(broker, tp)

    @rule(new_epoch=st.booleans())
    def take_over(self, new_epoch):
        self.cluster.take_over(new_epoch)

    @precondition(lambda self: self.cluster)
    @invariant()
    def the_tree_is_what_was_planned(self):
        found = run(load_view(self.cluster.store))
        assert found.topics == self.cluster.view.topics

    @precondition(lambda self: self.cluster)
    @invariant()
    def leaders_are_alive_and_from_the_isr_and_epochs_rise(self):
        before, now = self.before, self.cluster.view
        self.before = now
        for topic in now.topics.values():
            if topic.name in self.cluster.state.deletions:
                continue
            for number, p in enumerate(topic.partitions):
                self.check_partition(before.partition(topic.name, number), p, now)

    def check_partition(self, old, new, view):
        assert len(set(new.replicas)) == len(new.replicas) > 0
        if new.leader >= 0:
            assert new.leader in view.brokers
            assert new.leader in new.replicas
            assert new.leader in new.isr
        if old is None or not old.isr:
            return
        assert new.isr, "the ISR is never empty"
        assert new.leader_epoch >= old.leader_epoch
        if new.leader != old.leader:
            assert new.leader_epoch > old.leader_epoch
            if not self.unclean and new.leader >= 0:
                # An AlterPartition may bring a replica in and, with that, finish its reassignment.
                assert new.leader in old.isr or old.adding != new.adding
        assert new.partition_epoch - old.partition_epoch in ((0,) if new == old else (0, 1))

    @precondition(lambda self: self.cluster)
    @invariant()
    def brokers_believe_what_is_in_the_tree(self):
        state = self.cluster.state
        view = state.view
        for id_, broker in self.cluster.brokers.items():
            assert broker.alive == tuple(sorted(view.brokers))
            for topic in view.topics.values():
                if topic.name in state.deletions:
                    assert not any(tp[0] == topic.name for tp in broker.known)
                    continue
                for number, p in enumerate(topic.partitions):
                    self.check_belief(id_, broker, (topic.name, number), p)

    def check_belief(self, id_, broker, tp, p):
        state = self.cluster.state
        if not p.isr:
            return
        known = broker.known[tp]
        assert (known.leader, known.leader_epoch, known.isr) == (p.leader, p.leader_epoch, p.isr)
        assert (known.replicas, known.partition_epoch) == (p.replicas, p.partition_epoch)
        off = {r for r in p.replicas if r not in state.view.brokers or tp in state.offline_dirs.get(r, ())}
        assert off <= set(known.offline_replicas) <= off | state.shutting_down
        if id_ in p.replicas and id_ not in off | state.shutting_down:
            hosted = broker.hosted[tp]
            assert (hosted.leader, hosted.leader_epoch) == (p.leader, p.leader_epoch)
            assert (hosted.replicas, hosted.adding) == (p.replicas, p.adding)
        if id_ not in p.replicas:
            assert tp not in broker.hosted

    def teardown(self):
        if self.cluster is None:
            return
        cluster = self.cluster
        cluster.bounce(*cluster.brokers)
        cluster.start(*[b for b in BROKERS if not self.alive(b)])
        cluster.answer_all_stops()
        view = cluster.view
        assert not cluster.state.deletions
        assert run(cluster.store.children(znodes.DELETE_TOPICS)) == []
        assert run(cluster.store.children(znodes.CONFIG_TOPICS)) == sorted(view.topics)
        for topic in view.topics.values():
            assert all(p.leader >= 0 for p in topic.partitions), "a partition stays without a leader"
        quiet = cluster.see_brokers()
        assert (quiet.ops, quiet.requests, quiet.removals) == ((), (), ())
        again = cluster.take_over()
        moving = any(p.adding or p.removing for t in view.topics.values() for p in t.partitions)
        assert moving or not again.ops, "a settled cluster is left alone"
        assert again.state.view == replace(
            view, topics=again.state.view.topics, topics_by_id=again.state.view.topics_by_id
        )


TestController = ControllerMachine.TestCase
TestController.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
