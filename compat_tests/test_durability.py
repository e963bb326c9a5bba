"""What was acknowledged survives: `kill -9` in the middle of a load, clean restarts, torn files."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PyTopicPartition

from compat_tests.conftest import create_topic
from compat_tests.load import IMPATIENT, Load, Log, Reader, ends, value, whole_log
from compat_tests.servers import wait_until
from compat_tests.wire import Wire, batch

if TYPE_CHECKING:
    from compat_tests.conftest import MakeBroker
    from compat_tests.servers import Server

PARTITIONS = 4
KILLS = 3
CLEAN_MARKER = ".kafka_cleanshutdown"


def assert_nothing_lost(log: Log, load: Load) -> None:
    """Each acknowledged record lies at its offset; each partition tells its story whole and in order."""
    assert load.refused == []
    for partition in range(PARTITIONS):
        stored = dict(log[partition])
        assert list(stored) == list(range(len(log[partition]))), "offsets without a gap, each once"
        for offset, written in load.acknowledged[partition]:
            assert stored[offset] == written
        numbers = [int(found.split(b":")[1]) for found in stored.values()]
        assert list(stored.values()) == [value(partition, number) for number in numbers], "nothing torn"
        first_seen = list(dict.fromkeys(numbers))
        assert first_seen == list(range(load.sent)), "in the order they were sent"


def assert_no_duplicates(log: Log, load: Load) -> None:
    assert [len(log[partition]) for partition in range(PARTITIONS)] == [load.sent] * PARTITIONS


LOADS = {
    "acks=all": ({"acks": "all", "max_in_flight": 1}, {}),
    "idempotent": ({"enable_idempotence": True}, {}),
    "idempotent, each write on disk": ({"enable_idempotence": True}, {"log_flush_interval_messages": 1}),
}


@pytest.mark.feature("durability: kill -9")
@pytest.mark.parametrize("kind", LOADS)
def test_a_broker_killed_in_the_middle_of_a_load_loses_nothing(own_broker: MakeBroker, kind: str) -> None:
    producing, properties = LOADS[kind]
    broker = own_broker(**properties)
    create_topic(broker.bootstrap, "t", PARTITIONS, segment_bytes=1 << 20)
    with Reader(broker, "t", PARTITIONS) as reader:
        with Load(broker, "t", PARTITIONS, **producing) as load:
            for _ in range(KILLS):
                load.go_on(3000)
                broker.kill()
                broker.start()
            load.go_on(1000)
        reader.catch_up(ends(broker, "t", PARTITIONS))
    stored = whole_log(broker, "t", PARTITIONS)
    assert_nothing_lost(stored, load)
    if "idempotent" in kind:
        assert_no_duplicates(stored, load)
    assert reader.seen == stored, "a reader that was there all the time saw the same, once"
    assert reader.errors == []


@pytest.mark.feature("durability: clean restart")
def test_a_clean_restart_in_the_middle_of_a_load_loses_nothing(own_broker: MakeBroker) -> None:
    broker = own_broker()
    create_topic(broker.bootstrap, "t", PARTITIONS, segment_bytes=1 << 20)
    with Reader(broker, "t", PARTITIONS) as reader:
        with Load(broker, "t", PARTITIONS, enable_idempotence=True) as load:
            for _ in range(2):
                load.go_on(3000)
                broker.stop()
                assert (broker.log_dir / CLEAN_MARKER).exists()
                broker.start()
                assert not (broker.log_dir / CLEAN_MARKER).exists()
            load.go_on(1000)
        reader.catch_up(ends(broker, "t", PARTITIONS))
    stored = whole_log(broker, "t", PARTITIONS)
    assert_nothing_lost(stored, load)
    assert_no_duplicates(stored, load)
    assert reader.seen == stored


def active_segment(broker: Server, topic: str) -> bytes:
    return (broker.log_dir / f"{topic}-0" / f"{0:020}.log").read_bytes()


def rewrite_segment(broker: Server, topic: str, content: bytes) -> None:
    (broker.log_dir / f"{topic}-0" / f"{0:020}.log").write_bytes(content)


def end_of(broker: Server, topic: str) -> int:
    return ends(broker, topic, 1)[0]


def write_three(broker: Server, topic: str) -> None:
    create_topic(broker.bootstrap, topic)
    with Wire(broker.port) as client:
        for number in range(3):
            assert client.produce_one(topic, batch(b"record %d" % number)) == (0, number)


@pytest.mark.feature("durability: clean restart")
def test_after_a_clean_stop_logs_are_not_validated(own_broker: MakeBroker) -> None:
    """Shown by damage in the middle of a log: a start that looked would have cut it there."""
    broker = own_broker()
    write_three(broker, "t")
    assert broker.stop() in (0, 143)
    damaged = bytearray(active_segment(broker, "t"))
    damaged[len(damaged) // 2] ^= 0xFF
    rewrite_segment(broker, "t", damaged)
    broker.start()
    assert end_of(broker, "t") == 3


@pytest.mark.feature("durability: kill -9")
@pytest.mark.parametrize("torn", ["half a batch", "noughts", "noise"])
def test_a_torn_tail_is_cut_off_and_the_log_goes_on(own_broker: MakeBroker, torn: str) -> None:
    broker = own_broker()
    write_three(broker, "t")
    broker.kill()
    written = active_segment(broker, "t")
    size = len(written) // 3
    tail = {"half a batch": written[: size // 2], "noughts": bytes(300), "noise": bytes(range(7, 250))}[torn]
    rewrite_segment(broker, "t", written + tail)
    broker.start()
    assert end_of(broker, "t") == 3
    with Wire(broker.port) as client:
        assert client.fetch("t", 0) == (0, written)
        assert client.produce_one("t", batch(b"more")) == (0, 3)


@pytest.mark.feature("durability: kill -9")
def test_damage_in_unflushed_records_cuts_the_log_there(own_broker: MakeBroker) -> None:
    broker = own_broker()
    write_three(broker, "t")
    broker.kill()
    damaged = bytearray(active_segment(broker, "t"))
    damaged[len(damaged) // 3 + 65] ^= 0xFF
    rewrite_segment(broker, "t", damaged)
    broker.start()
    assert end_of(broker, "t") == 1
    with Wire(broker.port) as client:
        assert client.produce_one("t", batch(b"more")) == (0, 1)


@pytest.mark.feature("idempotent producers")
def test_a_producers_state_outlives_the_broker(own_broker: MakeBroker) -> None:
    broker = own_broker()
    create_topic(broker.bootstrap, "t")
    with Wire(broker.port) as client:
        producer, epoch = client.init_producer()
        now = int(time.time() * 1000)  # a producer that wrote long ago would be forgotten

        def numbered(n: int) -> bytearray:
            return batch(b"%d" % n, producer_id=producer, epoch=epoch, sequence=n, timestamp=now)

        sent = [numbered(n) for n in range(8)]
        for n in range(3):
            assert client.produce_one("t", sent[n]) == (0, n)
    for next_one, end in ((3, broker.kill), (4, broker.stop), (5, broker.kill)):
        end()
        broker.start()
        with Wire(broker.port) as client:
            assert client.produce_one("t", sent[next_one - 1]) == (0, next_one - 1), (
                "a retry, answered as before"
            )
            assert client.produce_one("t", sent[next_one + 1]).error == 45, "out of order"
            assert client.produce_one("t", sent[next_one]) == (0, next_one)
    assert end_of(broker, "t") == 6


@pytest.mark.feature("idempotent producers")
def test_no_producer_id_is_handed_out_twice(own_broker: MakeBroker) -> None:
    broker = own_broker()
    given: list[int] = []
    for _ in range(3):
        with Wire(broker.port) as client:
            given += [client.init_producer()[0] for _ in range(5)]
        broker.kill()
        broker.start()
    with Wire(broker.port) as client:
        given += [client.init_producer()[0] for _ in range(1100)]  # more than a block
    assert len(set(given)) == len(given)


@pytest.mark.feature("durability: kill -9")
def test_changes_to_topics_hold_from_the_moment_they_are_acknowledged(own_broker: MakeBroker) -> None:
    broker = own_broker()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap} | IMPATIENT)
    for name in ("kept", "grown", "changed", "deleted", "again"):
        create_topic(broker.bootstrap, name, retention_ms=123_456)
    write_three(broker, "written")
    old_id = topic_id(admin, "again")
    admin.delete_topics(["deleted", "again", "written"])["written"].result(30)
    wait_until(
        lambda: not {"deleted", "again", "written"} & set(admin.list_topics().topics), "topics are gone"
    )
    create_topic(broker.bootstrap, "again", 2)
    admin.create_partitions([NewPartitions("grown", 3)])["grown"].result(30)
    entry = ConfigEntry("retention.ms", "654321", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ConfigResource.Type.TOPIC, "changed", incremental_configs=[entry])
    admin.incremental_alter_configs([changed])[changed].result(30)
    known = {name: topic_id(admin, name) for name in ("kept", "grown", "changed", "again")}
    broker.kill()
    broker.start()
    found = {name: len(topic.partitions) for name, topic in admin.list_topics(timeout=30).topics.items()}
    assert found == {"kept": 1, "grown": 3, "changed": 1, "again": 2}
    assert {name: topic_id(admin, name) for name in known} == known
    assert known["again"] != old_id
    assert [retention(admin, name) for name in ("kept", "changed")] == ["123456", "654321"]
    assert end_of(broker, "again") == 0
    create_topic(broker.bootstrap, "written")
    assert end_of(broker, "written") == 0, "nothing of its namesake is left"


def topic_id(admin: AdminClient, name: str) -> str:
    return str(admin.describe_topics(TopicCollection([name]))[name].result(30).topic_id)


def retention(admin: AdminClient, name: str) -> str:
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    return admin.describe_configs([resource])[resource].result(30)["retention.ms"].value


class Restarts(threading.Thread):
    """Stops or kills the broker and starts it again beside a client's own loop."""

    def __init__(self, broker: Server, *, clean: bool) -> None:
        super().__init__()
        self._broker, self._clean = broker, clean

    def run(self) -> None:
        self._broker.stop() if self._clean else self._broker.kill()
        self._broker.start()


@pytest.mark.feature("durability: clean restart")
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_kafka_python_carries_on_across_a_restart(own_broker: MakeBroker, clean: bool) -> None:
    broker = own_broker()
    create_topic(broker.bootstrap, "t")
    place = PyTopicPartition("t", 0)
    client = {"bootstrap_servers": broker.bootstrap, "reconnect_backoff_max_ms": 200}
    values = [b"%d" % n for n in range(300)]
    with (
        closing(KafkaProducer(enable_idempotence=True, **client)) as producer,
        closing(KafkaConsumer(**client)) as consumer,
    ):
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        sent = [producer.send("t", value, partition=0) for value in values[:100]]
        producer.flush(30)
        seen = consumer.poll(5000).get(place, [])
        restart = Restarts(broker, clean=clean)
        restart.start()
        sent += [producer.send("t", value, partition=0) for value in values[100:200]]
        restart.join()
        sent += [producer.send("t", value, partition=0) for value in values[200:]]
        producer.flush(60)
        assert [future.get(60).offset for future in sent] == list(range(300))
        while len(seen) < 300 and (more := consumer.poll(20_000).get(place)):
            seen += more
    assert [(record.offset, record.value) for record in seen] == list(enumerate(values))


@pytest.mark.feature("durability: clean restart")
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
async def test_aiokafka_carries_on_across_a_restart(own_broker: MakeBroker, clean: bool) -> None:
    broker = own_broker()
    create_topic(broker.bootstrap, "t")
    values = [b"%d" % n for n in range(300)]
    async with (
        AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True) as producer,
        AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="none") as consumer,
    ):
        consumer.assign([AioTopicPartition("t", 0)])
        consumer.seek(AioTopicPartition("t", 0), 0)
        sent = [await producer.send("t", value, partition=0) for value in values[:100]]
        seen = [await consumer.getone() for _ in range(100)]
        restart = Restarts(broker, clean=clean)
        restart.start()
        sent += [await producer.send("t", value, partition=0) for value in values[100:200]]
        await asyncio.to_thread(restart.join)
        sent += [await producer.send("t", value, partition=0) for value in values[200:]]
        async with asyncio.timeout(60):
            assert [(await done).offset for done in sent] == list(range(300))
            seen += [await consumer.getone() for _ in range(200)]
    assert [(record.offset, record.value) for record in seen] == list(enumerate(values))
