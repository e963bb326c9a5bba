"""Codes and messages are those Apache Kafka 3.9.1 answered to its admin client.

A few that one broker and its admin client cannot provoke were taken from Kafka's source instead: the empty
name, a null config value, counts beside an assignment and an uneven replication factor. The bound on
partitions is Kafka 4.3's.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter

import pytest

from pykafka_broker.cluster.placement import spread
from pykafka_broker.cluster.store import Create, SetData
from pykafka_broker.cluster.topics import (
    MorePartitions,
    NewTopic,
    TopicRules,
    plan_broker_config,
    plan_create_partitions,
    plan_create_topic,
    plan_delete_topic,
    plan_topic_config,
)
from pykafka_broker.cluster.view import BrokerInfo, ClusterView
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def validate_all(config):
    if "nope" in config:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "Unknown topic config name: nope")


RULES = TopicRules(num_partitions=2, replication_factor=1, validate_config=validate_all)


def cluster(*brokers, racks=None):
    infos = {b: BrokerInfo(b, {}, (racks or {}).get(b), 1) for b in brokers}
    return ClusterView("c", brokers[0], 1, infos)


def create(view, *args, **kwargs):
    new = NewTopic(*args, **kwargs)
    return plan_create_topic(view, new, RULES, random.Random(1), uuid.uuid4())


@pytest.fixture
def view():
    return create(cluster(1), "foo.bar", 3).view


INVALID_NAME = ErrorCode.INVALID_TOPIC_EXCEPTION
BAD_ASSIGNMENT = ErrorCode.INVALID_REPLICA_ASSIGNMENT
REFUSED = [
    (NewTopic(""), INVALID_NAME, "Topic name is invalid: the empty string is not allowed"),
    (NewTopic("."), INVALID_NAME, "Topic name is invalid: '.' is not allowed"),
    (NewTopic(".."), INVALID_NAME, "Topic name is invalid: '..' is not allowed"),
    (
        NewTopic("a" * 250),
        INVALID_NAME,
        f"Topic name is invalid: the length of '{'a' * 250}' is longer than the max allowed length 249",
    ),
    (
        NewTopic("bad name"),
        INVALID_NAME,
        (
            "Topic name is invalid: 'bad name' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        ),
    ),
    (NewTopic("foo_bar"), INVALID_NAME, "Topic 'foo_bar' collides with existing topics: foo.bar"),
    (NewTopic("foo.bar"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'foo.bar' already exists."),
    (NewTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
    (NewTopic("t", -2, 1), ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
    (NewTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
    (
        NewTopic("t", 1, 2),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor: 2 larger than available brokers: 1.",
    ),
    (
        NewTopic("t", assignments=[(0, [1]), (2, [1])]),
        BAD_ASSIGNMENT,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    (
        NewTopic("t", assignments=[(1, [1])]),
        BAD_ASSIGNMENT,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    (
        NewTopic("t", 1, -1, assignments=[(0, [1])]),
        ErrorCode.INVALID_REQUEST,
        (
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time."
        ),
    ),
    (NewTopic("t", config={"nope": "1"}), ErrorCode.INVALID_CONFIG, "Unknown topic config name: nope"),
    (
        NewTopic("t", config={"a": None}),
        ErrorCode.INVALID_CONFIG,
        "Null value not supported for topic configs: a",
    ),
]


@pytest.mark.parametrize(("new", "code", "message"), REFUSED, ids=lambda v: getattr(v, "name", None))
def test_a_topic_kafka_would_refuse_is_refused_in_its_words(view, new, code, message):
    with pytest.raises(KafkaError) as info:
        plan_create_topic(view, new, RULES, random.Random(1), uuid.uuid4())
    assert (info.value.code, info.value.message) == (code, message)


@pytest.mark.parametrize("replicas", [[7], [-1], [], [1, 1]])
def test_an_assignment_that_could_never_work_is_refused(view, replicas):
    """Kafka 3.9 with ZooKeeper lets some of these through and hangs; with KRaft it refuses them."""
    with pytest.raises(KafkaError) as info:
        create(view, "t", assignments=[(0, replicas)])
    assert info.value.code == BAD_ASSIGNMENT


def test_an_absurd_number_of_partitions_is_refused_before_it_is_built(view):
    with pytest.raises(KafkaError) as info:
        create(view, "t", 2**31 - 1, 1)
    assert info.value.code == ErrorCode.POLICY_VIOLATION


def test_counts_left_open_come_from_the_broker(view):
    assert len(create(view, "t").outcome.partitions) == 2


def test_names_with_both_separators_are_fine_while_nothing_collides(view):
    assert create(view, "x.y_z").outcome.name == "x.y_z"


def test_a_new_topic_is_written_as_kafka_writes_it():
    plan = create(cluster(1), "t", 1, config={"retention.ms": "5"})
    assert [op.path for op in plan.ops] == [
        "/config/topics/t",
        "/brokers/topics/t",
        "/brokers/topics/t/partitions",
        "/brokers/topics/t/partitions/0",
        "/brokers/topics/t/partitions/0/state",
    ]
    assert plan.ops[-1].data == b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
    assert plan.view.topics_by_id[plan.outcome.topic_id] is plan.view.topics["t"] is plan.outcome


def test_the_old_view_does_not_change(view):
    plan = create(view, "t")
    assert "t" not in view.topics
    assert plan.view.topics["foo.bar"] is view.topics["foo.bar"]


@pytest.mark.parametrize(
    ("wish", "code", "message"),
    [
        (
            MorePartitions("foo.bar", 1),
            ErrorCode.INVALID_PARTITIONS,
            "Topic currently has 3 partitions, which is higher than the requested 1.",
        ),
        (MorePartitions("foo.bar", 3), ErrorCode.INVALID_PARTITIONS, "Topic already has 3 partitions."),
        (
            MorePartitions("zip", 3),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'zip' does not exist.",
        ),
        (
            MorePartitions("foo.bar", 5, [[1]]),
            BAD_ASSIGNMENT,
            "Increasing the number of partitions by 2 but 1 assignments provided.",
        ),
        (
            MorePartitions("foo.bar", 4, [[7]]),
            BAD_ASSIGNMENT,
            "Unknown broker(s) in replica assignment: 7.",
        ),
        (
            MorePartitions("foo.bar", 4, [[1, 1]]),
            BAD_ASSIGNMENT,
            "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 3.",
        ),
        (
            MorePartitions("foo.bar", 4, [[]]),
            BAD_ASSIGNMENT,
            "Cannot have replication factor of 0 for partition id 3.",
        ),
    ],
)
def test_growth_kafka_would_refuse_is_refused_in_its_words(view, wish, code, message):
    with pytest.raises(KafkaError) as info:
        plan_create_partitions(view, wish)
    assert (info.value.code, info.value.message) == (code, message)


def test_added_partitions_keep_the_replication_factor_of_the_first():
    view = create(cluster(1, 2), "t", 1, 1).view
    with pytest.raises(KafkaError, match="partition 0 has 1 while partitions"):
        plan_create_partitions(view, MorePartitions("t", 2, [[1, 2]]))


def test_growth_is_fenced_by_the_version_of_the_topic_node(view):
    plan = plan_create_partitions(view, MorePartitions("foo.bar", 5))
    assert isinstance(plan.ops[0], SetData)
    assert plan.ops[0].version == 0
    assert [op.path for op in plan.ops[1:]] == [
        "/brokers/topics/foo.bar/partitions/3",
        "/brokers/topics/foo.bar/partitions/3/state",
        "/brokers/topics/foo.bar/partitions/4",
        "/brokers/topics/foo.bar/partitions/4/state",
    ]
    assert (len(plan.outcome.partitions), plan.outcome.version) == (5, 1)


def test_deleting_by_name_and_by_id_and_what_is_not_there(view):
    topic = view.topics["foo.bar"]
    assert plan_delete_topic(view, "foo.bar").ops == plan_delete_topic(view, topic.topic_id).ops
    after = plan_delete_topic(view, "foo.bar").view
    assert (dict(after.topics), dict(after.topics_by_id)) == ({}, {})
    for target, code in [
        ("zip", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (uuid.uuid4(), ErrorCode.UNKNOWN_TOPIC_ID),
    ]:
        with pytest.raises(KafkaError) as info:
            plan_delete_topic(view, target)
        assert info.value.code == code


def test_a_config_change_is_checked_written_and_announced(view):
    plan = plan_topic_config(view, "foo.bar", lambda now: {**now, "retention.ms": "1"}, RULES)
    assert plan.ops[1] == Create(
        "/config/changes/config_change_", b'{"version":2,"entity_path":"topics/foo.bar"}', sequence=True
    )
    assert plan.view.topics["foo.bar"].config == {"retention.ms": "1"}
    for name, change, code in [
        ("foo.bar", {"nope": "1"}, ErrorCode.INVALID_CONFIG),
        ("zip", {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", {}, ErrorCode.INVALID_REQUEST),
    ]:
        with pytest.raises(KafkaError) as info:
            plan_topic_config(view, name, lambda now, change=change: change, RULES)
        assert info.value.code == code


def test_broker_configs_are_created_once_and_then_set(view):
    first = plan_broker_config(view, None, lambda now: {"log.cleaner.threads": "2"})
    assert first.ops[0].path == "/config/brokers/<default>"
    assert isinstance(first.ops[0], Create)
    again = plan_broker_config(first.view, None, lambda now: {**now, "x": "y"})
    assert isinstance(again.ops[0], SetData)
    assert again.outcome == {"log.cleaner.threads": "2", "x": "y"}


def test_placement_is_the_table_of_kafkas_documentation():
    """Ten partitions, three replicas, five brokers, start and shift 0: the example in AdminUtils."""
    placed = spread(dict.fromkeys(range(5)), range(10), 3, 0, 0)
    assert list(placed.values()) == [
        (0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1),
        (0, 2, 3), (1, 3, 4), (2, 4, 0), (3, 0, 1), (4, 1, 2),
    ]  # fmt: skip


def test_placement_over_racks_is_what_kafka_39_computes():
    placed = spread(dict(enumerate("abccba")), range(3, 10), 4, 2, 2)
    assert list(placed.values()) == [
        (3, 1, 5, 4), (0, 2, 4, 3), (1, 5, 3, 0), (2, 1, 5, 4), (5, 2, 4, 3), (4, 5, 3, 0), (3, 4, 0, 1),
    ]  # fmt: skip


def test_each_rack_is_used_before_any_is_used_twice():
    racks = {0: "a", 1: "b", 2: "c", 3: "c", 4: "b", 5: "a"}
    placed = spread(racks, range(12), 3, 0, 0)
    assert all({racks[b] for b in replicas} == {"a", "b", "c"} for replicas in placed.values())
    assert set(Counter(replicas[0] for replicas in placed.values()).values()) == {2}
    assert set(Counter(b for replicas in placed.values() for b in replicas).values()) == {6}
