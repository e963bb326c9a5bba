"""__consumer_offsets is Kafka's own: its tool reads what we write, and what Apache Kafka 3.9.1 wrote loads here."""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import pytest
from kafka import TopicPartition as Place
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata

from compat_tests import provision, servers
from compat_tests.conftest import create_topic
from compat_tests.groups.clients import AIOKAFKA, CONFLUENT, CONFLUENT_848, KAFKA_PYTHON
from compat_tests.groups.conftest import FAST_GROUPS, speaks
from compat_tests.groups.crew import Crew, Feed, everything_arrives
from compat_tests.groups.kafka_tools import dump_offsets
from compat_tests.groups.positions import Positions, all_committed, committed
from compat_tests.servers import ApacheKafka, OurBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.groups.clients import Client
    from compat_tests.servers import Server

PARTITIONS = 2
RECORDS = 10
RECORD = re.compile(r"^\| offset: .*? key: (\{.*?\}) payload: (.*)$", re.MULTILINE)
OFFSET, CLASSIC_GROUP, CONSUMER_GROUP, MEMBER, TARGET, TARGET_MEMBER, CURRENT = 1, 2, 3, 5, 6, 7, 8
"""Types of keys in the topic."""
NEVER_JOINED = "deleted, never joined"
"""A group that only held positions: 3.9.1 writes no end of such a group, so that 4.3.1, given this log, lists it as
empty until its next cleaning; so do we."""
PARTLY = {
    "offsets.topic.num.partitions": "5",
    "group.min.session.timeout.ms": "1000",
}


class Written(NamedTuple):
    """A record of __consumer_offsets as the tool prints it."""

    kind: int
    key: dict[str, object]
    value: dict[str, object] | None


def records_of(broker: Server) -> list[Written]:
    """Every record of the topic, in the tool's words."""
    told = dump_offsets(*sorted(broker.log_dir.glob("__consumer_offsets-*/*.log")))
    assert "isvalid: false" not in told
    found = []
    for key, value in RECORD.findall(told):
        head, body = json.loads(key), None if value in ("<DELETE>", "null") else json.loads(value)
        found.append(Written(int(head["type"]), head["data"], body and body["data"]))
    return found


def read_all(crew: Crew, **how: object) -> None:
    """One member reads and commits all there is, and leaves."""
    feed = Feed(crew.broker.bootstrap, crew.topic, PARTITIONS)
    feed.send(RECORDS * PARTITIONS)
    program = crew.start("reader", **how)
    everything_arrives(crew, feed)
    all_committed((crew, feed))
    program.leave()


def crew_on(broker: Server, client: Client, directory: Path) -> Crew:
    topic = create_topic(broker.bootstrap, f"read-by-{client}", PARTITIONS)
    return Crew(client, broker, topic, f"group-of-{client}", directory)


@pytest.fixture
def own(against: str, tmp_path: Path) -> Iterator[Server]:
    """A broker of the test's own, to be stopped and its files read."""
    with closing(servers.make(against, tmp_path / "own", FAST_GROUPS)) as server:
        with provision.or_skip():
            server.start()
        yield server


@pytest.mark.feature("groups: Kafka's own tools")
def test_dump_log_segments_decodes_groups_of_both_kinds(own: Server, tmp_path: Path) -> None:
    clients = [client for client in (CONFLUENT, CONFLUENT_848) if speaks(own, client)]
    for client in clients:
        with crew_on(own, client, tmp_path) as crew:
            read_all(crew, metadata="a note")
    with closing(KafkaAdminClient(bootstrap_servers=own.bootstrap)) as admin:
        place = Place("read-by-confluent", 0)
        admin.alter_group_offsets("short-lived", {place: OffsetAndMetadata(3, "", -1)})
        admin.delete_groups(["short-lived"])
    own.stop()
    written = records_of(own)

    for client in clients:
        offsets = {
            r.key["partition"]: (r.value["offset"], r.value["metadata"].rstrip("\0"))
            for r in written
            if r.kind == OFFSET and r.key["group"] == f"group-of-{client}" and r.value
        }
        assert offsets == dict.fromkeys(range(PARTITIONS), (RECORDS, "a note"))
    generations = [
        r.value
        for r in written
        if r.kind == CLASSIC_GROUP and r.key["group"] == "group-of-confluent" and r.value
    ]
    first = next(value for value in generations if value["generation"] == 1)
    (member,) = first["members"]
    assert (member["clientId"], first["protocol"], member["sessionTimeout"]) == ("reader", "range", 3000)
    assert member["subscription"]["topics"] == ["read-by-confluent"]
    assert member["assignment"]["assignedPartitions"] == [
        {"topic": "read-by-confluent", "partitions": [0, 1]}
    ]
    assert generations[-1]["members"] == []
    if CONFLUENT_848 in clients:
        of_group = [r for r in written if r.key.get("groupId") == "group-of-confluent-848"]
        assert {r.kind for r in of_group} >= {CONSUMER_GROUP, MEMBER, TARGET, TARGET_MEMBER, CURRENT}
        gone = [r for r in of_group if r.kind in (MEMBER, TARGET_MEMBER, CURRENT) and r.value is None]
        assert {r.kind for r in gone} == {MEMBER, TARGET_MEMBER, CURRENT}, "the member that left"
    short = [r for r in written if "short-lived" in r.key.values()]
    assert [r.value is None for r in short if r.kind == OFFSET] == [False, True]
    assert [r.value is None for r in short if r.kind == CLASSIC_GROUP][-1:] in ([], [True])


class Moved:
    """Groups of Apache Kafka 3.9.1, and our broker on the same directory and port."""

    def __init__(self, directory: Path) -> None:
        self.kafka = ApacheKafka("3.9.1", directory / "kafka", PARTLY)
        # Ours is not told how many partitions the topic has: it has to see that for itself.
        fast = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0"}
        self.ours = OurBroker(
            directory / "ours", {"log.dirs": str(self.kafka.log_dir), **fast}, self.kafka.port
        )
        self.directory = directory

    def close(self) -> None:
        self.kafka.close()
        self.ours.close()

    def remember(self) -> None:
        """Groups of every kind 3.9.1 knows, and what a client sees of them."""
        for client in (CONFLUENT, KAFKA_PYTHON, AIOKAFKA):
            with crew_on(self.kafka, client, self.directory) as crew:
                read_all(crew, metadata="größtenteils ✓")
        place, bootstrap = Place("read-by-confluent", 0), self.kafka.bootstrap
        with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
            for group in ("by hand", NEVER_JOINED):
                admin.alter_group_offsets(group, {place: OffsetAndMetadata(3, "moved", 0)})
            admin.delete_groups(["group-of-aiokafka", NEVER_JOINED])
            admin.delete_group_offsets("group-of-kafka-python", [Place("read-by-kafka-python", 1)])
        self.groups, self.positions = self.seen(self.kafka)

    @staticmethod
    def seen(broker: Server) -> tuple[list[tuple[str, str, str]], dict[str, Positions]]:
        """Every group with its state, and all positions."""
        with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
            listed = sorted(
                (found["group_id"], found["protocol_type"], found["group_state"])
                for found in admin.list_groups()
            )
        return listed, committed(broker.bootstrap, *(group for group, _, _ in listed), NEVER_JOINED)


@pytest.fixture
def moved(tmp_path: Path, against: str) -> Iterator[Moved]:
    """Apache Kafka 3.9.1 with groups."""
    if against != "ours":
        pytest.skip("shows what our broker does with Apache Kafka's directory")
    with closing(Moved(tmp_path)) as made:
        with provision.or_skip():
            made.kafka.start()
        made.remember()
        yield made


@pytest.mark.feature("groups: directories of Apache Kafka")
@pytest.mark.parametrize("end", ["stopped", pytest.param("killed", marks=pytest.mark.long)])
def test_groups_of_apache_kafka_are_served_here_and_live_on(moved: Moved, end: str) -> None:
    assert [group for group, _, _ in moved.groups] == [
        "by hand",
        "group-of-confluent",
        "group-of-kafka-python",
    ]
    assert len(moved.positions["group-of-confluent"]) == PARTITIONS
    assert len(moved.positions["group-of-kafka-python"]) == PARTITIONS - 1
    topic = create_topic(moved.kafka.bootstrap, "read-through", PARTITIONS)
    with Crew(CONFLUENT, moved.kafka, topic, "lives through", moved.directory) as crew:
        feed = Feed(moved.kafka.bootstrap, topic, PARTITIONS)
        feed.send(RECORDS)
        program = crew.start("stays")
        everything_arrives(crew, feed)
        before = all_committed((crew, feed))

        moved.kafka.stop() if end == "stopped" else moved.kafka.kill()
        moved.ours.start()

        groups, positions = moved.seen(moved.ours)
        assert [group for group in groups if group[0] not in (crew.group, NEVER_JOINED)] == moved.groups
        assert {group: kept for group, kept in positions.items() if group != crew.group} == moved.positions
        assert {crew.group: positions[crew.group]} == before
        feed.send(RECORDS)
        everything_arrives(crew, feed)
        all_committed((crew, feed))
        program.leave()
    assert set(crew.history.times_delivered().values()) == {1}, "nothing committed came again"
