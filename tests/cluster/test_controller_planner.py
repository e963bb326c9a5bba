"""What the controller decides, event by event."""

from __future__ import annotations

import json
from random import Random

import pytest

from pykafka_broker.cluster import topics, znodes
from pykafka_broker.cluster.controller import events
from pykafka_broker.cluster.controller.events import ElectionType
from pykafka_broker.cluster.controller.isr import IsrWish
from pykafka_broker.cluster.controller.requests import LeaderAndIsr, StopReplica, UpdateMetadata
from pykafka_broker.cluster.store import Create, SetData
from pykafka_broker.cluster.topics import MorePartitions, NewTopic, TopicRules
from pykafka_broker.cluster.view import load_topics
from pykafka_broker.cluster.znodes import TopicAssignment
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

from .controlled import Cluster, run

T0 = ("t", 0)


def state_of(p):
    return p.leader, p.leader_epoch, p.isr


def codes(outcome):
    return {key: found.code if isinstance(found, KafkaError) else found for key, found in outcome.items()}


def alter(cluster, isr, version=3, leader=None, tp=T0, **changes):
    """AlterPartition from the leader, as it should be but for the changes."""
    p = cluster.partition(*tp)
    leader = p.leader if leader is None else leader
    wish = {
        "leader_epoch": p.leader_epoch,
        "partition_epoch": p.partition_epoch,
        "isr": tuple(isr),
        **changes,
    }
    topic = cluster.view.topics[tp[0]]
    key = (topic.topic_id if version > 1 else tp[0], tp[1])
    epoch = cluster.brokers[leader].epoch
    outcome = cluster.ask(events.AlterPartition(leader, epoch, version, {key: IsrWish(**wish)}))
    found = outcome[key]
    return found.code if isinstance(found, KafkaError) else found


def stopped(planned):
    return {
        (broker, p.topic, p.partition, p.delete)
        for broker, request in planned.requests
        if isinstance(request, StopReplica)
        for p in request.partitions
    }


def test_a_new_topic_is_led_by_the_first_live_replica_and_written_as_kafka_does():
    cluster = Cluster((1, 2))
    planned = cluster.create_topic("t", [3, 2, 1])
    assert state_of(cluster.partition("t")) == (2, 0, (2, 1))
    node = run(cluster.store.get(znodes.partition_state_path("t", 0)))
    assert node.data == b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2,1]}'
    told = [r for b, r in planned.requests if b == 1]
    assert [type(r) for r in told] == [LeaderAndIsr, UpdateMetadata]
    assert told[0].partitions[0].is_new
    assert told[1].partitions[0].offline_replicas == (3,)


def test_a_topic_without_a_live_replica_waits_for_one():
    cluster = Cluster((1,))
    planned = cluster.create_topic("t", [2, 3])
    assert (planned.ops, planned.containers) == ((), ())
    cluster.start(3)
    assert state_of(cluster.partition("t")) == (3, 0, (3,))


def test_the_leader_is_the_first_of_the_assignment_that_is_alive_and_in_sync():
    cluster = Cluster((1, 2, 3, 4))
    cluster.create_topic("t", [1, 2, 3, 4])
    alter(cluster, [1, 3, 4])
    cluster.kill(1)
    assert cluster.partition("t").leader == 3


def test_the_last_of_the_isr_stays_in_it_and_nobody_else_leads():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    cluster.kill(2)
    assert state_of(cluster.partition("t")) == (1, 1, (1,))
    cluster.kill(1)
    assert state_of(cluster.partition("t")) == (-1, 2, (1,))
    cluster.start(2)
    assert cluster.partition("t").leader == -1
    cluster.start(1)
    assert state_of(cluster.partition("t")) == (1, 3, (1,))


def test_where_it_is_allowed_a_replica_out_of_sync_leads_and_recovers():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2], config={"unclean.leader.election.enable": "true"})
    cluster.create_topic("safe", [1, 2])
    cluster.kill(2)
    cluster.start(2)
    cluster.kill(1)
    assert cluster.partition("safe").leader == -1
    p = cluster.partition("t")
    assert (p.leader, p.isr, p.recovering) == (2, (2,), True)
    node = run(cluster.store.get(znodes.partition_state_path("t", 0)))
    assert json.loads(node.data)["leader_recovery_state"] == 1
    done = alter(cluster, [2], recovering=False)
    assert (done.isr, done.recovering) == ((2,), False)


def test_a_broker_that_bounced_leaves_the_isr_and_gets_its_partitions_anew():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    planned = cluster.bounce(1)
    assert cluster.partition("t").leader == 2
    assert cluster.partition("t").isr == (2,)
    to_1 = [r for b, r in planned.requests if b == 1]
    assert [type(r) for r in to_1] == [UpdateMetadata, LeaderAndIsr]
    assert to_1[1].broker_epoch == cluster.brokers[1].epoch
    assert to_1[1].partitions[0].info.leader == 2


def test_a_broker_that_moved_to_another_address_is_announced():
    cluster = Cluster()
    moved = cluster.view.brokers | {}
    moved[2] = type(moved[2])(2, {"PLAINTEXT": ("elsewhere", 1)}, None, moved[2].epoch)
    planned = cluster.react(events.BrokersChanged(moved))
    assert {b for b, r in planned.requests if isinstance(r, UpdateMetadata)} == {1, 2, 3}
    assert not planned.ops


def test_an_isr_change_is_taken_without_a_new_leader_epoch():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2, 3])
    found = alter(cluster, [1, 2])
    assert (state_of(found), found.partition_epoch) == ((1, 0, (1, 2)), 1)
    assert cluster.partition("t") == found


def test_an_isr_change_asked_for_twice_is_answered_twice():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2, 3])
    first = alter(cluster, [1, 2])
    assert alter(cluster, [1, 2], partition_epoch=0) == first


@pytest.mark.parametrize(
    ("isr", "changes", "code"),
    [
        ([1], {"leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ([1], {"leader_epoch": 99}, ErrorCode.NOT_CONTROLLER),
        ([1], {"partition_epoch": 99}, ErrorCode.NOT_CONTROLLER),
        ([1], {"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
        ([2], {}, ErrorCode.INVALID_REQUEST),
        ([1, 1], {}, ErrorCode.INVALID_REQUEST),
        ([1, 3], {}, ErrorCode.INVALID_REQUEST),
        ([], {}, ErrorCode.INVALID_REQUEST),
        ([1], {"recovering": True}, ErrorCode.INVALID_REQUEST),
        ([1, 4], {}, ErrorCode.INELIGIBLE_REPLICA),
        ([1, 4], {"version": 1}, ErrorCode.OPERATION_NOT_ATTEMPTED),
        ([2, 1], {"broker_epochs": (1, -1)}, ErrorCode.INELIGIBLE_REPLICA),
        ([1], {"leader": 2}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_isr_change_is_refused(isr, changes, code):
    cluster = Cluster((1, 2, 3, 4))
    cluster.create_topic("t", [1, 4, 2])
    cluster.kill(4)
    p = cluster.partition("t")
    assert (p.leader_epoch, p.partition_epoch, p.isr) == (1, 1, (1, 2))
    assert alter(cluster, isr, **changes) is code
    assert cluster.partition("t") == p


def test_isr_changes_of_a_stale_broker_or_an_unknown_topic_are_refused():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    for broker, epoch in ((1, 1), (9, 1)):
        with pytest.raises(KafkaError) as refused:
            cluster.ask(events.AlterPartition(broker, epoch, 3, {}))
        assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
    wishes = {(znodes.random_uuid(), 0): IsrWish(0, 0, (1,)), ("gone", 0): IsrWish(0, 0, (1,))}
    outcome = cluster.ask(events.AlterPartition(1, cluster.brokers[1].epoch, 3, wishes))
    assert list(codes(outcome).values()) == [
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_leaders_are_elected_on_request_and_refused_by_kafkas_codes():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2], [2, 1], [3, 2])
    cluster.create_topic("going", [1])
    cluster.delete_topic("going")
    cluster.bounce(1)
    asked = [("t", 0), ("t", 1), ("going", 0), ("t", 7)]
    outcome = cluster.ask(events.ElectLeaders(ElectionType.PREFERRED, asked))
    assert codes(outcome) == {
        ("t", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ("t", 1): ErrorCode.ELECTION_NOT_NEEDED,
        ("going", 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
        ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    alter(cluster, [2, 1])
    assert cluster.ask(events.ElectLeaders(ElectionType.PREFERRED, None)) == {("t", 0): 1}
    assert cluster.partition("t").isr == (2, 1)


def test_an_operator_may_elect_a_leader_from_outside_the_isr():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    outcome = cluster.ask(events.ElectLeaders(ElectionType.UNCLEAN, [T0]))
    assert codes(outcome) == {T0: ErrorCode.ELECTION_NOT_NEEDED}
    cluster.kill(2)
    cluster.kill(1)
    outcome = cluster.ask(events.ElectLeaders(ElectionType.UNCLEAN, [T0]))
    assert codes(outcome) == {T0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    cluster.start(2)
    assert cluster.ask(events.ElectLeaders(ElectionType.UNCLEAN, [T0])) == {T0: 2}


def test_leaders_go_back_when_a_broker_leads_too_few_of_its_own():
    cluster = Cluster(leader_imbalance_per_broker_percentage=50)
    cluster.create_topic("t", [1, 2], [1, 2], [2, 1])
    cluster.bounce(1)
    alter(cluster, [2, 1])
    cluster.react(events.BalanceLeaders())
    assert (cluster.partition("t").leader, cluster.partition("t", 1).leader) == (1, 2)
    alter(cluster, [2, 1], tp=("t", 1))
    assert not cluster.react(events.BalanceLeaders()).ops, "half of its own is within the allowed"


def test_a_broker_that_shuts_down_hands_its_leaders_over_and_leaves_the_isr():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2], [2, 1], [1])
    epoch = cluster.brokers[1].epoch
    planned = cluster.react(events.ControlledShutdown(1, epoch))
    assert planned.outcome == ()
    assert [state_of(cluster.partition("t", n)) for n in (0, 1)] == [(2, 1, (2,)), (2, 1, (2,))]
    assert cluster.partition("t", 2).leader == 1, "with a single replica there is nobody to take over"
    assert stopped(planned) == {(1, "t", 1, False)}
    assert alter(cluster, [2, 1], tp=("t", 0)) is ErrorCode.INELIGIBLE_REPLICA
    cluster.kill(1)
    cluster.start(1)
    assert alter(cluster, [2, 1], tp=("t", 0)).isr == (2, 1)


def leading_and_following(planned):
    """Who hears of which partition by LeaderAndIsr."""
    return {
        (broker, p.topic, p.partition)
        for broker, request in planned.requests
        if isinstance(request, LeaderAndIsr)
        for p in request.partitions
    }


def test_a_leader_hears_that_a_broker_is_gone_that_had_left_the_isr_before():
    """It may be waiting for that replica, which kept up until then; nothing is written for that."""
    cluster = Cluster()
    cluster.create_topic("t", [1, 2, 3], [2, 3, 1], [3, 1])
    cluster.react(events.ControlledShutdown(2, -1))
    before = [cluster.partition("t", n) for n in range(3)]
    planned = cluster.kill(2)
    assert leading_and_following(planned) == {(1, "t", 0), (before[1].leader, "t", 1)}
    assert planned.ops == ()
    assert [cluster.partition("t", n) for n in range(3)] == before


def test_a_broker_that_alone_is_in_sync_is_told_what_it_still_leads():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    alter(cluster, [1])
    assert cluster.ask(events.ControlledShutdown(1, -1)) == (T0,)
    for broker, epoch, code in ((9, -1, "BROKER_NOT_AVAILABLE"), (2, 1, "STALE_BROKER_EPOCH")):
        with pytest.raises(KafkaError) as refused:
            cluster.ask(events.ControlledShutdown(broker, epoch))
        assert refused.value.code is ErrorCode[code]


def test_a_reassignment_grows_the_assignment_then_moves_and_shrinks_it():
    cluster = Cluster((1, 2, 3, 4))
    cluster.create_topic("t", [1, 2])
    planned = cluster.react(events.AlterReassignments({T0: [3, 4]}))
    assert planned.outcome == {T0: None}
    written = TopicAssignment.decode(run(cluster.store.get(znodes.topic_path("t"))).data)
    assert (written.replicas, written.adding, written.removing) == (
        {0: (3, 4, 1, 2)}, {0: (3, 4)}, {0: (1, 2)},
    )  # fmt: skip
    assert state_of(cluster.partition("t")) == (1, 1, (1, 2))
    new = {b: p.is_new for b, r in planned.requests if isinstance(r, LeaderAndIsr) for p in r.partitions}
    assert new == {1: False, 2: False, 3: True, 4: True}
    listed = cluster.ask(events.ListReassignments(None))
    assert listed == {T0: cluster.partition("t")}

    assert alter(cluster, [1, 2, 3]).isr == (1, 2, 3)
    before = cluster.partition("t")
    assert alter(cluster, [1, 2, 3, 4]) is ErrorCode.NEW_LEADER_ELECTED
    p = cluster.partition("t")
    assert (p.leader, p.isr, p.replicas, p.adding, p.removing) == (3, (3, 4), (3, 4), (), ())
    assert p.leader_epoch > before.leader_epoch
    assert {b for b, broker in cluster.brokers.items() if T0 in broker.hosted} == {3, 4}
    assert cluster.ask(events.ListReassignments([T0])) == {}


def test_a_reassignment_is_cancelled_back_to_where_it_came_from():
    cluster = Cluster((1, 2, 3))
    cluster.create_topic("t", [1, 2])
    cluster.react(events.AlterReassignments({T0: [3, 1]}))
    alter(cluster, [1, 2])
    planned = cluster.react(events.AlterReassignments({T0: None}))
    p = cluster.partition("t")
    assert (p.replicas, p.adding, p.removing, p.leader) == ((1, 2), (), (), 1)
    assert stopped(planned) == {(3, "t", 0, True)}
    assert codes(cluster.ask(events.AlterReassignments({T0: None}))) == {
        T0: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    }


def test_a_reassignment_goes_on_under_another_controller_and_after_a_broker_came_back():
    cluster = Cluster((1, 2, 3))
    cluster.create_topic("t", [1, 2])
    cluster.react(events.AlterReassignments({T0: [3, 2]}))
    cluster.kill(3)
    cluster.take_over(new_epoch=True)
    assert cluster.partition("t").adding == (3,)
    planned = cluster.start(3)
    assert any(
        p.is_new and p.info.adding == (3,)
        for b, r in planned.requests
        if b == 3 and isinstance(r, LeaderAndIsr)
        for p in r.partitions
    )
    alter(cluster, [1, 2, 3])
    assert cluster.partition("t").replicas == (3, 2)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([-1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_reassignments_that_make_no_sense_are_refused(wanted, code):
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    planned = cluster.react(events.AlterReassignments({T0: wanted, ("t", 5): [1]}))
    assert codes(planned.outcome) == {T0: code, ("t", 5): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not planned.ops


def test_a_cancellation_that_would_leave_nobody_in_sync_is_refused():
    cluster = Cluster((1, 2, 3))
    cluster.create_topic("t", [1, 2])
    cluster.react(events.AlterReassignments({T0: [3, 2]}))
    cluster.kill(2)
    alter(cluster, [1, 3])
    cluster.kill(1)
    assert cluster.partition("t").isr == (3,)
    outcome = cluster.ask(events.AlterReassignments({T0: None}))
    assert codes(outcome) == {T0: ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    assert cluster.partition("t").leader == 3


def test_the_deletion_of_a_topic_waits_for_the_replica_that_is_offline():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    cluster.kill(2)
    planned = cluster.delete_topic("t")
    assert stopped(planned) == {(1, "t", 0, True)}
    cluster.answer_all_stops()
    assert "t" in cluster.view.topics
    assert stopped(cluster.start(2)) == {(2, "t", 0, True)}
    cluster.answer_all_stops()
    assert "t" not in cluster.view.topics
    assert not [path for path in cluster.tree.rows if path.endswith("/t") or "/t/" in path]


def test_a_replica_that_cannot_be_deleted_is_tried_again_when_a_broker_comes_back():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    cluster.delete_topic("t")
    cluster.answer_stops(1)
    cluster.answer_stops(2, ErrorCode.KAFKA_STORAGE_ERROR)
    assert "t" in cluster.view.topics
    assert not cluster.brokers[2].unanswered
    assert stopped(cluster.bounce(2)) == {(2, "t", 0, True)}
    cluster.answer_all_stops()
    assert "t" not in cluster.view.topics


def test_partitions_added_to_a_topic_that_is_being_deleted_are_taken_out_again():
    cluster = Cluster()
    cluster.create_topic("t", [1])
    cluster.delete_topic("t")
    cluster.add_partitions("t", [2])
    written = TopicAssignment.decode(run(cluster.store.get(znodes.topic_path("t"))).data)
    assert written.replicas == {0: (1,)}
    assert cluster.view.topics["t"] == run(load_topics(cluster.store, ["t"]))[0]


def test_where_deleting_is_switched_off_the_mark_is_removed_and_the_topic_stays():
    cluster = Cluster(delete_topic_enable=False)
    cluster.create_topic("t", [1])
    cluster.delete_topic("t")
    assert "t" in cluster.view.topics
    assert not run(cluster.store.exists(znodes.delete_topic_path("t")))


def test_a_replica_whose_disk_failed_leaves_the_isr_and_the_lead():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2], [1, 2])
    cluster.fail_disk(1, T0)
    assert state_of(cluster.partition("t"))[::2] == (2, (2,))
    assert cluster.partition("t", 1).leader == 1
    assert cluster.brokers[3].known[T0].offline_replicas == (1,)
    assert alter(cluster, [2, 1]) is ErrorCode.INELIGIBLE_REPLICA


def test_a_controller_that_takes_over_repairs_what_happened_in_between():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2], [3])
    cluster.forget_node(znodes.broker_id_path(1))
    del cluster.brokers[1]
    path = znodes.topic_path("new")
    assignment = TopicAssignment(znodes.random_uuid(), {0: (2,)})
    run(cluster.store.multi([Create(path, assignment.encode()), Create(znodes.topic_config_path("new"))]))
    cluster.take_over(new_epoch=True)
    assert cluster.partition("t").leader == 2
    assert cluster.partition("new").leader == 2
    assert set(cluster.brokers[3].known) == {("t", 0), ("t", 1), ("new", 0)}
    assert ("t", 1) in cluster.brokers[3].hosted


def test_what_a_crashed_controller_left_half_made_is_completed():
    cluster = Cluster()
    assignment = TopicAssignment(znodes.random_uuid(), {0: (1,), 1: (2,)})
    run(
        cluster.store.multi(
            [
                Create(znodes.topic_path("t"), assignment.encode()),
                Create(znodes.partitions_path("t")),
                Create(znodes.partition_path("t", 1)),
            ]
        )
    )
    cluster.take_over()
    assert (cluster.partition("t").leader, cluster.partition("t", 1).leader) == (1, 2)


def test_a_large_plan_is_committed_in_steps_that_zookeeper_takes():
    cluster = Cluster()
    planned = cluster.create_topic("t", *[[1, 2, 3]] * 9000)
    assert len(planned.ops) == 9000
    big = [ops for ops in cluster.tree.multis if len(ops) > 100]
    assert len(big) > 1
    for ops in big:
        size = sum(len(op.path) + len(op.data) + 30 for op in ops if isinstance(op, Create | SetData))
        assert size < 1_000_000
        assert ops[0].path == znodes.CONTROLLER_EPOCH
    cluster.kill(1)
    assert {p.leader for p in cluster.view.topics["t"].partitions} == {2}


RULES = TopicRules(1, 1, lambda config: None)


def creating(name, **wish):
    topic_id = znodes.random_uuid()
    return lambda view: topics.plan_create_topic(view, NewTopic(name, **wish), RULES, Random(0), topic_id)


def test_topics_are_created_with_their_leaders_in_one_step():
    cluster = Cluster()
    cluster.create_topic("old", [1])
    cluster.react(events.ControlledShutdown(3, -1))
    wishes = {"a": creating("a", num_partitions=4, replication_factor=2), "b": creating("old")}
    before = len(cluster.tree.multis)
    planned = cluster.react(events.ChangeTopics(wishes))
    assert len(cluster.tree.multis) == before + 1
    assert planned.outcome["a"].name == "a"
    assert planned.outcome["b"].code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert cluster.view.topics["a"] == run(load_topics(cluster.store, ["a"]))[0]
    assert {b for p in cluster.view.topics["a"].partitions for b in p.replicas} == {1, 2}
    assert {tp for tp in cluster.brokers[1].hosted if tp[0] == "a"} == {("a", n) for n in range(4)}
    assert ("a", 3) in cluster.brokers[3].known


def test_a_change_that_is_only_validated_changes_nothing():
    cluster = Cluster()
    planned = cluster.react(events.ChangeTopics({"a": creating("a")}, validate_only=True))
    assert planned.outcome["a"].name == "a"
    assert (planned.ops, planned.requests) == ((), ())


def test_partitions_are_added_with_their_leaders_in_one_step():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    wish = MorePartitions("t", 2, [[2, 3]])
    cluster.react(events.ChangeTopics({"t": lambda view: topics.plan_create_partitions(view, wish)}))
    assert cluster.partition("t", 1).leader == 2
    assert cluster.view.topics["t"] == run(load_topics(cluster.store, ["t"]))[0]
    assert ("t", 1) in cluster.brokers[3].hosted


def test_topics_are_deleted_on_request_by_name_and_id():
    cluster = Cluster()
    cluster.create_topic("t", [1, 2])
    cluster.create_topic("u", [3])
    u, unknown = cluster.view.topics["u"].topic_id, znodes.random_uuid()
    outcome = cluster.ask(events.DeleteTopics(["t", u, "v", unknown]))
    assert (outcome["t"].name, outcome[u].name) == ("t", "u")
    assert outcome["v"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcome[unknown].code is ErrorCode.UNKNOWN_TOPIC_ID
    assert run(cluster.store.children(znodes.DELETE_TOPICS)) == ["t", "u"]
    assert cluster.ask(events.DeleteTopics(["t"]))["t"].name == "t", "it is on its way already"
    cluster.answer_all_stops()
    assert not cluster.view.topics
    assert run(cluster.store.children(znodes.DELETE_TOPICS)) == []
