"""A cluster around the planner: the tree in memory, and brokers that believe what they are told."""

from __future__ import annotations

import uuid

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.controller import events
from pykafka_broker.cluster.controller.commit import commit
from pykafka_broker.cluster.controller.planner import plan
from pykafka_broker.cluster.controller.requests import LeaderAndIsr, Response, StopReplica, UpdateMetadata
from pykafka_broker.cluster.controller.state import ControllerSettings, ControllerState
from pykafka_broker.cluster.store import Check, Create, Delete, SetData
from pykafka_broker.cluster.view import ClusterView, load_brokers, load_topics, load_view
from pykafka_broker.cluster.znodes import BrokerRegistration, Endpoint, TopicAssignment
from pykafka_broker.protocol.errors import ErrorCode

from .memory_store import MemoryTree

NONE = ErrorCode.NONE


def run(coroutine):
    """Coroutines on the tree in memory never wait."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def registration(broker, host="h"):
    return BrokerRegistration(broker, (Endpoint("PLAINTEXT", host, 9000 + broker),)).encode()


async def make_tree(store):
    contents = dict.fromkeys(znodes.PERSISTENT_PATHS, b"")
    contents[znodes.CLUSTER_ID] = znodes.encode_cluster_id("c" * 22)
    contents[znodes.CONTROLLER_EPOCH] = b"0"
    await store.multi([Create(path, data) for path, data in contents.items()])


class Broker:
    """What a broker was told since it started."""

    def __init__(self, epoch):
        self.epoch = epoch
        self.hosted = {}
        self.known = {}
        self.alive = ()
        self.unanswered = []

    def receive(self, request):
        assert request.broker_epoch == self.epoch
        if isinstance(request, LeaderAndIsr):
            assert {b.id for b in request.leaders} == {p.info.leader for p in request.partitions} - {-1}
            for p in request.partitions:
                if p.info.leader >= 0:
                    assert p.info.leader in self.alive, "a follower must know where its leader is"
                self.hosted[p.topic, p.partition] = p.info
        elif isinstance(request, UpdateMetadata):
            self.alive = tuple(sorted(b.id for b in request.brokers))
            for p in request.partitions:
                if p.leader == -2:
                    self.known.pop((p.topic, p.partition), None)
                else:
                    self.known[p.topic, p.partition] = p
        elif isinstance(request, StopReplica):
            for p in request.partitions:
                self.hosted.pop((p.topic, p.partition), None)
            self.unanswered.append([(p.topic, p.partition) for p in request.partitions if p.delete])


class Cluster:
    """Owner of the tree, of the controller's state and of what the brokers believe."""

    def __init__(self, brokers=(1, 2, 3), **settings):
        self.tree = MemoryTree()
        self.store = self.tree.open()
        self.settings = ControllerSettings(0, **settings)
        self.brokers = {}
        self.state = ControllerState(ClusterView(""))
        run(make_tree(self.store))
        self.epoch_version = 0
        for broker in brokers:
            self._register(broker)
        self.take_over(new_epoch=True)

    @property
    def view(self):
        return self.state.view

    def partition(self, topic, number=0):
        return self.view.partition(topic, number)

    def react(self, event):
        """Plans, commits and tells the brokers; the answer is the plan."""
        planned = plan(self.state, event, self.settings)
        before = len(self.tree.multis)
        run(commit(self.store, self.epoch_version, planned))
        for ops in self.tree.multis[before:]:
            assert ops[0] == Check(znodes.CONTROLLER_EPOCH, self.epoch_version), "a change is not fenced"
        self.state = planned.state
        for broker, request in planned.requests:
            assert request.controller_epoch == self.view.controller_epoch
            self.brokers[broker].receive(request)
        return planned

    def ask(self, event):
        return self.react(event).outcome

    def take_over(self, new_epoch=False):
        if new_epoch:
            node = run(self.store.get(znodes.CONTROLLER_EPOCH))
            run(self.store.set(znodes.CONTROLLER_EPOCH, str(int(node.data) + 1).encode()))
            self.epoch_version = node.version + 1
        view = run(load_view(self.store))
        marked = run(self.store.children(znodes.DELETE_TOPICS))
        return self.react(events.TookOver(view, marked))

    def start(self, *brokers):
        for broker in brokers:
            self._register(broker)
        return self.see_brokers()

    def kill(self, *brokers):
        for broker in brokers:
            del self.brokers[broker]
            run(self.store.delete(znodes.broker_id_path(broker)))
        return self.see_brokers()

    def bounce(self, *brokers):
        for broker in brokers:
            run(self.store.delete(znodes.broker_id_path(broker)))
            self._register(broker)
        return self.see_brokers()

    def see_brokers(self):
        return self.react(events.BrokersChanged(run(load_brokers(self.store))))

    def _register(self, broker):
        path = znodes.broker_id_path(broker)
        run(self.store.create(path, registration(broker)))
        self.brokers[broker] = Broker(run(self.store.get(path)).czxid)

    def create_topic(self, name, *replicas, config=None):
        """As another broker does it: the node appears, without states."""
        assignment = TopicAssignment(uuid.uuid4(), {n: tuple(r) for n, r in enumerate(replicas)})
        run(
            self.store.multi(
                [
                    Create(znodes.topic_config_path(name), znodes.encode_config(config or {})),
                    Create(znodes.topic_path(name), assignment.encode()),
                ]
            )
        )
        return self.react(events.TopicsChanged(run(load_topics(self.store, [name]))))

    def add_partitions(self, name, *replicas):
        node = run(self.store.get(znodes.topic_path(name)))
        old = TopicAssignment.decode(node.data)
        more = dict(old.replicas) | {len(old.replicas) + n: tuple(r) for n, r in enumerate(replicas)}
        grown = TopicAssignment(old.topic_id, more, old.adding, old.removing)
        run(self.store.multi([SetData(znodes.topic_path(name), grown.encode(), node.version)]))
        return self.react(events.TopicChanged(run(load_topics(self.store, [name]))[0]))

    def delete_topic(self, name):
        run(self.store.create(znodes.delete_topic_path(name)))
        return self.react(events.DeletionsAsked(run(self.store.children(znodes.DELETE_TOPICS))))

    def answer_stops(self, broker, error=NONE):
        """The broker answers what it was told to delete."""
        pending, self.brokers[broker].unanswered = self.brokers[broker].unanswered, []
        for partitions in pending:
            response = Response(NONE, dict.fromkeys(partitions, error))
            self.react(events.StopReplicaAnswered(broker, self.brokers[broker].epoch, response))

    def answer_all_stops(self):
        while any(b.unanswered for b in self.brokers.values()):
            for broker in list(self.brokers):
                self.answer_stops(broker)

    def fail_disk(self, broker, *partitions):
        response = Response(NONE, dict.fromkeys(partitions, ErrorCode.KAFKA_STORAGE_ERROR))
        return self.react(events.LeaderAndIsrAnswered(broker, self.brokers[broker].epoch, response))

    def forget_node(self, path):
        run(self.store.multi([Delete(path)]))
