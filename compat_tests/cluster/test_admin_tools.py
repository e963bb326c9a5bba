"""Kafka's own tools on a cluster: topics, moves, elections, directories, configs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.cluster.admin_tools import AdminTools
from compat_tests.cluster.brokers import NUMBERS, Cluster, opened
from compat_tests.cluster.places import Loopback
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compat_tests.servers import Zookeeper

pytestmark = pytest.mark.long
RECORDS = 400
NEWCOMER = 4
THROTTLE = 20_000
"""Bytes a second: a topic of some megabytes, fetched one at a time, is on its way for minutes."""


@pytest.fixture(scope="module")
def cluster(
    clustered: str, zookeeper: Zookeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """One for all: each test has topics of its own, and leaves three brokers behind."""
    with opened(
        Cluster(clustered, zookeeper, Loopback(zookeeper), tmp_path_factory.mktemp("cluster"))
    ) as made:
        yield made


@pytest.fixture(scope="module", params=["3.9.1", "4.3.1"])
def tools(
    request: pytest.FixtureRequest, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> AdminTools:
    return AdminTools(request.param, cluster.bootstrap, tmp_path_factory.mktemp("tools"))


def placed(tools: AdminTools, name: str, *replicas: Sequence[int]) -> str:
    """A topic of this test and this release of the tools, with its replicas where they are wanted."""
    topic = f"{name}-{tools.version}"
    wanted = ",".join(":".join(map(str, brokers)) for brokers in replicas)
    config = ["--config", "min.insync.replicas=1"]
    tools.topics("--create", "--topic", topic, "--replica-assignment", wanted, *config)
    return topic


def produce(cluster: Cluster, topic: str, count: int = RECORDS, size: int = 100, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for number in range(count):
        producer.produce(topic, str(number).rjust(size, "."), partition=partition)
    assert producer.flush(60) == 0


def consume(cluster: Cluster, topic: str, count: int = RECORDS) -> list[int]:
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "unused", "log_level": 0}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [int(message.value().lstrip(b".")) for message in consumer.consume(count, 60)]
    finally:
        consumer.close()


def replicas(cluster: Cluster, topic: str) -> list[list[int]]:
    return [found for (name, _), found in sorted(cluster.replicas().items()) if name == topic]


def propose(
    tools: AdminTools, scratch: pytest.TempPathFactory, topic: str, brokers: str
) -> dict[tuple[str, int], list[int]]:
    """What kafka-reassign-partitions --generate would have the partitions be."""
    path = scratch.mktemp("plans") / "topics.json"
    path.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    told = tools.reassign("--generate", "--topics-to-move-json-file", str(path), "--broker-list", brokers)
    _, proposed = (json.loads(line) for line in told.splitlines() if line.startswith("{"))
    return {(p["topic"], p["partition"]): p["replicas"] for p in proposed["partitions"]}


@pytest.mark.feature("cluster: kafka-topics")
def test_a_topic_is_made_spread_grown_and_deleted(cluster: Cluster, tools: AdminTools) -> None:
    topic = f"life-{tools.version}"
    size = ["--partitions", "3", "--replication-factor", "3"]
    assert f"Created topic {topic}." in tools.topics("--create", "--topic", topic, *size)
    wait_until(cluster.in_sync, "all replicas are in sync")
    told = tools.describe(topic)
    assert sorted(told) == [0, 1, 2]
    assert {fields["Leader"] for fields in told.values()} == {"1", "2", "3"}
    for fields in told.values():
        assert fields["Replicas"].split(",")[0] == fields["Leader"]
        assert sorted(fields["Replicas"].split(",")) == sorted(fields["Isr"].split(",")) == ["1", "2", "3"]
    tools.topics("--alter", "--topic", topic, "--partitions", "5")
    wait_until(cluster.in_sync, "the new partitions are in sync")
    assert sorted(tools.describe(topic)) == [0, 1, 2, 3, 4]
    assert tools.describe(topic, "--under-replicated-partitions") == {}
    tools.topics("--delete", "--topic", topic)
    wait_until(lambda: not replicas(cluster, topic), "the topic is gone")
    assert topic not in tools.topics("--list").split()
    directories = [server.log_dir for server in cluster.brokers.values()]
    wait_until(
        lambda: not any(path.name.startswith(f"{topic}-") for d in directories for path in d.iterdir()
                        if not path.name.endswith("-delete")),
        "no broker keeps it",
    )  # fmt: skip


@pytest.mark.feature("cluster: kafka-reassign-partitions")
def test_partitions_move_with_all_they_hold(cluster: Cluster, tools: AdminTools) -> None:
    topic = placed(tools, "moves", [1], [1])
    produce(cluster, topic)
    plan = {(topic, 0): [2, 3], (topic, 1): [3, 2]}
    told = tools.reassign("--execute", plan=plan)
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in told
    wait_until(lambda: replicas(cluster, topic) == [[2, 3], [3, 2]], "the partitions have moved")
    told = tools.reassign("--verify", plan=plan)
    for partition in (0, 1):
        assert f"Reassignment of partition {topic}-{partition} is completed." in told
    assert "No partition reassignments found." in tools.reassign("--list")
    described = tools.describe(topic)
    assert [described[p]["Leader"] in ("2", "3") for p in (0, 1)] == [True, True]
    assert sorted(described[0]["Isr"].split(",")) == ["2", "3"]
    wait_until(lambda: not tools.hosted(topic)[1], "the first broker has deleted its replicas")
    sizes = tools.hosted(topic)
    assert sizes[2] == sizes[3]
    assert sizes[2][f"{topic}-0"] > RECORDS * 100
    assert consume(cluster, topic) == list(range(RECORDS))


@pytest.mark.feature("cluster: kafka-reassign-partitions")
def test_a_plan_is_proposed_that_uses_the_brokers_named(
    cluster: Cluster, tools: AdminTools, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic = placed(tools, "planned", [1, 2], [1, 2])
    proposed = propose(tools, tmp_path_factory, topic, "2,3")
    assert sorted(proposed.values()) == [[2, 3], [3, 2]]
    assert replicas(cluster, topic) == [[1, 2], [1, 2]]


@pytest.mark.feature("cluster: kafka-reassign-partitions")
def test_a_new_broker_takes_its_share(
    cluster: Cluster, tools: AdminTools, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic = placed(tools, "shared", [1, 2], [2, 3], [3, 1], [1, 2])
    produce(cluster, topic)
    cluster.add(NEWCOMER)
    try:
        everybody = ",".join(map(str, (*NUMBERS, NEWCOMER)))
        proposed = propose(tools, tmp_path_factory, topic, everybody)
        assert sum(NEWCOMER in chosen for chosen in proposed.values()) == 2
        tools.reassign("--execute", plan=proposed)
        wait_until(lambda: replicas(cluster, topic) == list(proposed.values()), "the partitions have moved")
        wait_until(cluster.in_sync, "all replicas are in sync")
        told = tools.reassign("--verify", plan=proposed)
        assert told.count("is completed.") == len(proposed)
        hosted = tools.hosted(topic)[NEWCOMER]
        assert set(hosted) == {f"{topic}-{p}" for (_, p), chosen in proposed.items() if NEWCOMER in chosen}
        produce(cluster, topic)
        assert consume(cluster, topic, 2 * RECORDS) == [*range(RECORDS), *range(RECORDS)]
        tools.topics("--delete", "--topic", topic)
        wait_until(lambda: not replicas(cluster, topic), "the topic is gone")
    finally:
        cluster.remove(NEWCOMER)


@pytest.mark.feature("cluster: kafka-reassign-partitions")
def test_a_throttled_move_is_listed_takes_its_time_and_can_be_given_up(
    cluster: Cluster, tools: AdminTools
) -> None:
    topic = placed(tools, "slow", [1])
    produce(cluster, topic, count=2000, size=2000)
    plan = {(topic, 0): [2]}
    told = tools.reassign("--execute", "--throttle", str(THROTTLE), plan=plan)
    assert f"Successfully started partition reassignment for {topic}-0" in told
    assert f"{topic}-0: replicas: 2,1. adding: 2. removing: 1." in tools.reassign("--list")
    assert "is still in progress" in tools.reassign("--verify", plan=plan)
    shown = tools.configs("--describe", "--entity-type", "brokers", "--entity-name", "1")
    assert f"leader.replication.throttled.rate={THROTTLE}" in shown
    shown = tools.configs("--describe", "--entity-type", "topics", "--entity-name", topic)
    assert "leader.replication.throttled.replicas=0:1" in shown
    assert "follower.replication.throttled.replicas=0:2" in shown
    tools.reassign("--cancel", plan=plan)
    wait_until(lambda: replicas(cluster, topic) == [[1]], "the move is given up")
    shown = tools.configs("--describe", "--entity-type", "brokers", "--entity-name", "1")
    assert "throttled" not in shown
    assert consume(cluster, topic, 2000) == list(range(2000))


@pytest.mark.feature("cluster: kafka-leader-election")
def test_the_preferred_leader_is_elected_again_after_a_restart(cluster: Cluster, tools: AdminTools) -> None:
    topic = placed(tools, "preferred", [1, 2])
    cluster.stop(1)
    wait_until(lambda: cluster.leader(topic) == 2, "the other one leads")
    cluster.start(1)
    wait_until(cluster.in_sync, "all replicas are in sync again")
    assert cluster.leader(topic) == 2
    told = tools.elect("preferred", topic, 0)
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in told
    assert cluster.leader(topic) == 1
    told = tools.elect("preferred", topic, 0)
    assert f"Valid replica already elected for partitions {topic}-0" in told


@pytest.mark.feature("cluster: kafka-leader-election")
def test_an_unclean_election_is_had_for_the_asking(cluster: Cluster, tools: AdminTools) -> None:
    topic = placed(tools, "unclean", [2, 1])
    wait_until(cluster.in_sync, "all replicas are in sync")
    cluster.stop(1)
    wait_until(lambda: cluster.state(topic, 0)["isr"] == [2], "one replica is left in sync")
    produce(cluster, topic, count=1)
    cluster.kill(2)
    cluster.start(1)
    wait_until(lambda: cluster.leader(topic) == -1, "nobody may lead")
    try:
        told = tools.elect("unclean", topic, 0)
        assert f"Successfully completed leader election (UNCLEAN) for partitions {topic}-0" in told
        assert cluster.state(topic, 0)["isr"] == [1]
        assert cluster.leader(topic) == 1
    finally:
        cluster.start(2)
    wait_until(cluster.in_sync, "the one that lost takes what the new leader has")


@pytest.mark.feature("cluster: kafka-configs")
def test_a_topic_s_settings_reach_every_broker(cluster: Cluster, tools: AdminTools) -> None:
    topic = placed(tools, "settings", [1], [2], [3])
    about = ["--entity-type", "topics", "--entity-name", topic]
    tools.configs("--alter", *about, "--add-config", "max.message.bytes=500,retention.ms=3600000")
    for broker in NUMBERS:
        one = AdminTools(
            tools.version, f"127.0.0.1:{cluster.places[broker].advertised}", cluster.brokers[1].directory
        )
        assert "retention.ms=3600000" in one.configs("--describe", *about)

    for partition in range(3):
        wait_until(
            lambda p=partition: refuses(cluster, topic, p), f"partition {partition} refuses a large one"
        )


@pytest.mark.feature("cluster: kafka-configs")
def test_settings_of_all_brokers_reach_every_broker(cluster: Cluster, tools: AdminTools) -> None:
    topic = placed(tools, "dynamic", [1], [2], [3])
    everybody = ["--entity-type", "brokers", "--entity-default"]
    tools.configs("--alter", *everybody, "--add-config", "message.max.bytes=500")
    try:
        for partition in range(3):
            wait_until(
                lambda p=partition: refuses(cluster, topic, p), f"partition {partition} refuses a large one"
            )
    finally:
        tools.configs("--alter", *everybody, "--delete-config", "message.max.bytes")
    for partition in range(3):
        wait_until(
            lambda p=partition: not refuses(cluster, topic, p),
            f"partition {partition} takes a large one again",
        )


def refuses(cluster: Cluster, topic: str, partition: int) -> bool:
    """Whether a record of 1,000 bytes is too large there."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    failures = []
    producer.produce(
        topic, b"x" * 1000, partition=partition, on_delivery=lambda error, _: failures.append(error)
    )
    producer.flush(60)
    return failures[0] is not None and failures[0].name() == "MSG_SIZE_TOO_LARGE"
