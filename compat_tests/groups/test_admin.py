"""Groups looked at and changed from outside: confluent-kafka, kafka-python and Kafka's own tool, both protocols."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition as Place
from kafka.admin import KafkaAdminClient, MemberToRemove
from kafka.errors import GroupIdNotFoundError, GroupSubscribedToTopicError, NoError, UnknownMemberIdError
from kafka.structs import OffsetAndMetadata

from compat_tests import versions
from compat_tests.groups.clients import CLASSIC, CONFLUENT, CONFLUENT_848
from compat_tests.groups.crew import Feed, everything_arrives
from compat_tests.groups.kafka_tools import consumer_groups
from compat_tests.groups.positions import all_committed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compat_tests.groups.clients import Client
    from compat_tests.groups.conftest import MakeCrew
    from compat_tests.groups.crew import Crew
    from compat_tests.servers import Server

PARTITIONS = 2
RECORDS = 10
"""Records in each partition, all of them read and committed."""
PROTOCOLS = pytest.mark.parametrize("client", [CONFLUENT, CONFLUENT_848], ids=str)


class Group:
    """A group with one member that has read all there is, until it is told to leave."""

    def __init__(self, crew: Crew) -> None:
        self.crew, self.id, self.topic = crew, crew.group, crew.topic
        self.classic = crew.client.protocol == CLASSIC
        self.kind = ConsumerGroupType.CLASSIC if self.classic else ConsumerGroupType.CONSUMER
        self.assignor = "range" if self.classic else "uniform"
        self.feed = Feed(crew.broker.bootstrap, crew.topic, PARTITIONS)
        self.feed.send(RECORDS * PARTITIONS)
        self._program = crew.start("watched")
        crew.settle(self._program, partitions=PARTITIONS)
        everything_arrives(crew, self.feed)
        all_committed((crew, self.feed))

    def leave(self) -> None:
        self._program.leave()
        self.crew.settle()


@pytest.fixture
def group(crew: MakeCrew, client: Client) -> Group:
    return Group(crew(client, PARTITIONS))


@pytest.fixture
def confluent(broker: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def kafka_python(broker: Server) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
        yield admin


def refused(call: Callable[[], object]) -> int:
    """The error code of a call that must fail."""
    with pytest.raises(KafkaException) as caught:
        call()
    return caught.value.args[0].code()


@versions.CONFLUENT
@pytest.mark.feature("admin: groups")
@PROTOCOLS
def test_confluent_lists_and_describes_groups_by_state_and_type(
    group: Group, client: Client, confluent: AdminClient
) -> None:
    def listed(**filters: object) -> dict[str, tuple[ConsumerGroupState, ConsumerGroupType]]:
        answer = confluent.list_consumer_groups(**filters).result(30)
        assert answer.errors == []
        return {found.group_id: (found.state, found.type) for found in answer.valid}

    other = ConsumerGroupType.CONSUMER if group.classic else ConsumerGroupType.CLASSIC
    assert listed()[group.id] == (ConsumerGroupState.STABLE, group.kind)
    assert group.id in listed(states={ConsumerGroupState.STABLE}, types={group.kind})
    assert group.id not in listed(states={ConsumerGroupState.EMPTY})
    assert group.id not in listed(types={other})

    found = confluent.describe_consumer_groups([group.id])[group.id].result(30)
    assert (found.state, found.type) == (ConsumerGroupState.STABLE, group.kind)
    assert (found.partition_assignor, found.is_simple_consumer_group) == (group.assignor, False)
    assert found.coordinator.port == group.crew.broker.port
    (member,) = found.members
    assert (member.client_id, member.host, member.group_instance_id) == ("watched", "/127.0.0.1", None)
    held = sorted((place.topic, place.partition) for place in member.assignment.topic_partitions)
    assert held == [(group.topic, 0), (group.topic, 1)]

    group.leave()
    assert listed()[group.id] == (ConsumerGroupState.EMPTY, group.kind)
    assert group.id not in listed(states={ConsumerGroupState.STABLE})


@versions.CONFLUENT
@pytest.mark.feature("admin: groups")
@PROTOCOLS
def test_confluent_alters_positions_and_deletes_only_without_members(
    group: Group, client: Client, confluent: AdminClient
) -> None:
    def alter() -> KafkaError | None:
        wanted = ConsumerGroupTopicPartitions(group.id, [TopicPartition(group.topic, 0, 4)])
        answer = confluent.alter_consumer_group_offsets([wanted])[group.id].result(30)
        return answer.topic_partitions[0].error

    def positions() -> dict[int, int]:
        asked = ConsumerGroupTopicPartitions(group.id)
        answer = confluent.list_consumer_group_offsets([asked])[group.id].result(30)
        return {place.partition: place.offset for place in answer.topic_partitions}

    def delete() -> object:
        return confluent.delete_consumer_groups([group.id])[group.id].result(30)

    assert alter().code() == KafkaError.UNKNOWN_MEMBER_ID
    assert refused(delete) == KafkaError.NON_EMPTY_GROUP
    group.leave()
    assert alter() is None
    assert positions() == {0: 4, 1: RECORDS}

    again = group.crew.start("again")
    group.crew.settle(again, partitions=PARTITIONS)
    group.feed.send(PARTITIONS)
    everything_arrives(group.crew, group.feed)
    often = group.crew.history.times_delivered()
    assert {place for place, times in often.items() if times == 2} == {(0, n) for n in range(4, RECORDS)}
    again.leave()
    group.crew.settle()

    assert delete() is None
    assert refused(delete) == KafkaError.GROUP_ID_NOT_FOUND
    described = confluent.describe_consumer_groups([group.id])[group.id].result(30)
    assert described.state == ConsumerGroupState.DEAD
    assert positions() == {}


@versions.KAFKA_PYTHON
@pytest.mark.feature("admin: groups")
@PROTOCOLS
def test_kafka_python_sees_and_changes_groups(
    group: Group, client: Client, kafka_python: KafkaAdminClient
) -> None:
    places = [Place(group.topic, partition) for partition in range(PARTITIONS)]
    listed = {found["group_id"]: found for found in kafka_python.list_groups()}[group.id]
    assert listed == {
        "group_id": group.id,
        "protocol_type": "consumer",
        "group_state": "Stable",
        "group_type": client.protocol,
    }
    described = kafka_python.describe_groups([group.id])[group.id]
    if group.classic:
        assert (described["group_state"], described["protocol_data"]) == ("Stable", "range")
        (member,) = described["members"]
        assert member["member_assignment"]["assigned_partitions"] == [
            {"topic": group.topic, "partitions": [0, 1]}
        ]
    else:
        assert "not a classic group" in described["error"]

    wanted = {places[0]: OffsetAndMetadata(7, "moved by hand ✓", -1)}
    assert kafka_python.alter_group_offsets(group.id, wanted) == {places[0]: UnknownMemberIdError}
    live = kafka_python.delete_group_offsets(group.id, places)
    assert live == dict.fromkeys(places, GroupSubscribedToTopicError)
    assert kafka_python.delete_groups([group.id]) == {group.id: "NonEmptyGroupError"}

    group.leave()
    assert kafka_python.alter_group_offsets(group.id, wanted) == {places[0]: NoError}
    assert kafka_python.delete_group_offsets(group.id, [places[1]]) == {places[1]: NoError}
    kept = kafka_python.list_group_offsets({group.id: None})[group.id]
    assert {place: (at.offset, at.metadata) for place, at in kept.items()} == {
        places[0]: (7, "moved by hand ✓")
    }
    assert kafka_python.delete_groups([group.id]) == {group.id: "OK"}
    with pytest.raises(GroupIdNotFoundError):
        kafka_python.delete_group_offsets(group.id, places)


@versions.KAFKA_PYTHON
@pytest.mark.feature("admin: groups")
@pytest.mark.parametrize("client", [CONFLUENT], ids=str)
def test_kafka_python_removes_a_static_member(
    crew: MakeCrew, client: Client, kafka_python: KafkaAdminClient
) -> None:
    pair = crew(client, PARTITIONS)
    stays = pair.start("stays", static=True, session_ms=30_000)
    goes = pair.start("goes", static=True, session_ms=30_000)
    pair.settle(stays, goes, partitions=PARTITIONS)
    goes.kill()
    removed = kafka_python.remove_group_members(pair.group, [MemberToRemove(group_instance_id="goes")])
    assert len(removed) == 1
    assert "goes" in str(removed)
    pair.settle(stays, partitions=PARTITIONS)


@versions.JAVA_CLIENT
@pytest.mark.feature("admin: groups")
@PROTOCOLS
def test_kafka_consumer_groups_lists_describes_resets_and_deletes(
    group: Group, client: Client, broker: Server
) -> None:
    def tool(*arguments: str) -> list[list[str]]:
        return consumer_groups(broker, *arguments)

    it = ("--group", group.id)
    held = f"{group.topic}:0,1"
    assert [group.id, "Stable"] in tool("--list", "--state")
    rows = tool("--describe", *it)
    assert [row[1:6] for row in rows] == [
        [group.topic, str(partition), str(RECORDS), str(RECORDS), "0"] for partition in range(PARTITIONS)
    ]
    assert {tuple(row[7:]) for row in rows} == {("/127.0.0.1", "watched")}
    (row,) = tool("--describe", *it, "--members", "--verbose")
    epochs = ["-", held, "-", "-"] if group.classic else [row[5], held, row[5], held]
    assert row[2:] == ["/127.0.0.1", "watched", str(PARTITIONS), *epochs]
    (row,) = tool("--describe", *it, "--state")
    assert row == [group.id, broker.bootstrap, "(1)", group.assignor, "Stable", "1"]
    assert "GroupNotEmptyException" in str(tool("--delete", *it))

    group.leave()
    assert tool("--reset-offsets", *it, "--topic", f"{group.topic}:0", "--to-offset", "3", "--execute") == [
        [group.id, group.topic, "0", "3"]
    ]
    assert [group.topic, "1", "Successful"] in tool("--delete-offsets", *it, "--topic", f"{group.topic}:1")
    assert [row[1:6] for row in tool("--describe", *it, "--offsets")] == [
        [group.topic, "0", "3", str(RECORDS), str(RECORDS - 3)]
    ]
    assert "successful" in str(tool("--delete", *it))
    assert "GroupIdNotFoundException" in str(tool("--describe", *it))
