"""One disk, two brokers: Apache Kafka's tool reads what we write, and each broker serves the other's directory."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from compat_tests import provision
from compat_tests.conftest import create_topic
from compat_tests.load import IMPATIENT, ends
from compat_tests.samples import CODECS, Sample, samples
from compat_tests.servers import ApacheKafka, OurBroker, wait_until
from compat_tests.wire import Wire, batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.conftest import MakeBroker
    from compat_tests.servers import Server

DUMP = "org.apache.kafka.tools.DumpLogSegments"
SEGMENT = 1 << 20
LONG = 3000
"""Records of the long topic: several segments of a mebibyte."""
OUT_OF_ORDER_SEQUENCE_NUMBER = 45


def write(broker: Server, topic: str, records: list[Sample], **config: object) -> None:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    producer = Producer({"bootstrap.servers": broker.bootstrap} | IMPATIENT | settings)
    failed: list[object] = []
    for r in records:
        producer.produce(
            topic,
            r.value,
            r.key,
            0,
            headers=list(r.headers),
            timestamp=r.timestamp,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    assert failed == []


def read(broker: Server, topic: str) -> dict[int, Sample]:
    """Every record of partition 0 by its offset."""
    group = {"group.id": "assigned", "enable.auto.commit": False}
    settings = {"bootstrap.servers": broker.bootstrap, "check.crcs": True, **group}
    found: dict[int, Sample] = {}
    end = ends(broker, topic, 1)[0]
    with closing(Consumer(settings | IMPATIENT)) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

        def at_end() -> bool:
            for m in consumer.consume(1000, 0.1):
                assert m.error() is None, m.error()
                found[m.offset()] = Sample(m.key(), m.value(), tuple(m.headers() or ()), m.timestamp()[1])
            return end - 1 in found

        wait_until(at_end, f"{topic} is read to its end")
    return found


def long_records(count: int = LONG) -> list[Sample]:
    """Records of today: a producer is forgotten a day after its last."""
    now = int(time.time() * 1000)
    return [Sample(b"key %d" % n, b"%d " % n * 250, (), now + n) for n in range(count)]


def fill(broker: Server) -> list[str]:
    """Topics with every kind of record and every kind of history; the names of those that are kept."""
    bootstrap = broker.bootstrap
    for codec in CODECS:
        write(broker, create_topic(bootstrap, f"codec-{codec}"), samples(), compression_codec=codec)
    stamped = create_topic(bootstrap, "stamped", message_timestamp_type="LogAppendTime")
    for codec in CODECS:
        write(broker, stamped, samples(), compression_codec=codec)
    for topic in ("long", "trimmed"):
        create_topic(bootstrap, topic, segment_bytes=SEGMENT)
        write(broker, topic, long_records(), enable_idempotence=True, batch_size=10_000)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_records([TopicPartition("trimmed", 0, 2000)])[TopicPartition("trimmed", 0)].result(30)
    write(broker, create_topic(bootstrap, "doomed"), samples())
    admin.delete_topics(["doomed"])["doomed"].result(30)
    create_topic(bootstrap, "empty", 2)
    return [*(f"codec-{codec}" for codec in CODECS), "stamped", "long", "trimmed", "empty"]


class Dump:
    """Apache Kafka's own reader of log files, over every file in a directory."""

    def __init__(self, log_dir: Path) -> None:
        self._files = [
            path
            for suffix in (".log", ".index", ".timeindex", ".snapshot", ".txnindex")
            for path in sorted(log_dir.glob(f"*-[0-9]/*{suffix}"))
        ]

    def run(self, *options: str) -> str:
        """What it prints; fails on every complaint it makes."""
        with provision.or_skip():
            java = [str(provision.java()), "-Xmx256m", "-XX:TieredStopAtLevel=1"]
            java += ["-cp", provision.kafka_classpath("4.3.1")]
        files = ",".join(map(str, self._files))
        done = subprocess.run(
            [*java, DUMP, *options, "--files", files],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert complaints(done.stderr) == []
        assert "isvalid: false" not in done.stdout
        assert "invalid bytes" not in done.stdout
        assert done.stdout.count("Dumping ") == len(self._files)
        return done.stdout


def complaints(errors: str) -> list[str]:
    """What the tool said on stderr, but for two habits: it thinks that every file begins at offset 0, and its
    logger says that it has no backend."""
    harmless = re.compile(
        r"Non-consecutive offsets in |  -1 is followed by |SLF4J|\s*$|.*(StatusLogger|log4j)"
    )
    return [line for line in errors.splitlines() if not harmless.match(line)]


def assert_tool_is_content(broker: Server) -> None:
    dump = Dump(broker.log_dir)
    told = dump.run("--deep-iteration", "--print-data-log")
    batches = re.findall(r"^baseOffset: .* compresscodec: (\w+)", told, re.MULTILINE)
    assert set(batches) == set(CODECS)
    assert len(re.findall(r"^\| offset: ", told, re.MULTILINE)) >= len(samples()) * 10 + LONG + 1000
    assert "headerKeys: [trace,trace]" in told
    assert re.search(r"LogAppendTime: 1[0-9]{12}", told)
    assert len(re.findall(r"^offset: \d+ position: ", told, re.MULTILINE)) > 100, "indexes have entries"
    assert len(re.findall(r"^timestamp: 1[0-9]{12} offset: ", told, re.MULTILINE)) > 100
    assert re.search(rf"^producerId: \d+ .* lastOffset: {LONG - 1} ", told, re.MULTILINE)
    assert "passed sanity check" in dump.run("--index-sanity-check")
    dump.run("--verify-index-only")


@pytest.mark.feature("disk: Apache Kafka's tools")
def test_dump_log_segments_reads_all_we_write_without_complaint(own_broker: MakeBroker) -> None:
    broker = own_broker(
        log_retention_check_interval_ms=300, log_segment_delete_delay_ms=100, log_retention_ms=-1
    )
    topics = fill(broker)
    trimmed = broker.log_dir / "trimmed-0"
    wait_until(lambda: not list(trimmed.glob(f"{0:020}.log")), "deleted records leave the disk")
    wait_until(lambda: not list(broker.log_dir.glob("doomed-*")), "the deleted topic leaves the disk", 90)
    broker.stop()
    assert_tool_is_content(broker)
    broker.start()
    write(broker, "long", long_records(200), enable_idempotence=True)
    broker.kill()
    broker.start()
    assert all(read(broker, topic) for topic in topics if topic != "empty")
    broker.stop()
    assert_tool_is_content(broker)


class Written:
    """A directory that Apache Kafka 3.9.1 filled before it was killed, and what is known to be in it."""

    def __init__(self, directory: Path) -> None:
        self.kafka = ApacheKafka("3.9.1", directory / "kafka")
        self._now = int(time.time() * 1000)  # producers are forgotten a day after their last record
        self._ours: list[OurBroker] = []

    def close(self) -> None:
        for server in (self.kafka, *self._ours):
            server.close()

    def fill(self) -> None:
        self.topics = fill(self.kafka)
        with Wire(self.kafka.port) as client:
            self._producer = client.init_producer()
            for n in range(3):
                assert client.produce_one("empty", self._numbered(n)) == (0, n)
        self.seen = {topic: read(self.kafka, topic) for topic in self.topics}
        self.ids = topic_ids(self.kafka, self.topics)

    def ours_on(self, log_dir: Path) -> OurBroker:
        """Our broker, started on Apache Kafka's directory."""
        directory = self.kafka.directory.with_name(f"ours-{log_dir.name}")
        properties = {"log.dirs": str(log_dir), "log.segment.bytes": str(SEGMENT)}
        self._ours.append(OurBroker(directory, properties))
        self._ours[-1].start()
        return self._ours[-1]

    def carry_on(self, broker: Server, sequence: int) -> None:
        """The idempotent producer goes on with its next record, as if the broker were still the same."""
        with Wire(broker.port) as client:
            retried = client.produce_one("empty", self._numbered(sequence - 1))
            assert retried == (0, sequence - 1), "a retry, answered as before"
            assert (
                client.produce_one("empty", self._numbered(sequence + 1)).error
                == OUT_OF_ORDER_SEQUENCE_NUMBER
            )
            assert client.produce_one("empty", self._numbered(sequence)) == (0, sequence)
            assert client.init_producer()[0] > self._producer[0], "no producer id is given out again"

    def _numbered(self, sequence: int) -> bytearray:
        producer, epoch = self._producer
        return batch(
            b"%d" % sequence, producer_id=producer, epoch=epoch, sequence=sequence, timestamp=self._now
        )


def topic_ids(broker: Server, topics: list[str]) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap} | IMPATIENT)
    found = admin.describe_topics(TopicCollection(topics))
    return {name: str(future.result(30).topic_id) for name, future in found.items()}


def leads(broker: Server, topics: list[str]) -> bool:
    try:
        return all(ends(broker, topic, 1) for topic in topics)
    except KafkaException:
        return False


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, against: str) -> Iterator[Written]:
    if against != "ours":
        pytest.skip("shows what our broker does with Apache Kafka's directory")
    made = Written(tmp_path_factory.mktemp("written"))
    with closing(made):
        with provision.or_skip():
            made.kafka.start()
        made.fill()
        made.kafka.kill()
        yield made


@pytest.mark.feature("disk: directories of Apache Kafka")
def test_a_directory_of_a_killed_apache_kafka_is_served(written: Written, tmp_path: Path) -> None:
    copied = shutil.copytree(written.kafka.log_dir, tmp_path / "killed")
    broker = written.ours_on(copied)
    assert topic_ids(broker, written.topics) == written.ids
    assert {topic: read(broker, topic) for topic in written.topics} == written.seen
    written.carry_on(broker, 3)
    assert broker.stop() == 0


@pytest.mark.feature("disk: directories of Apache Kafka")
def test_a_directory_of_apache_kafka_is_served_and_given_back(written: Written) -> None:
    written.kafka.start()
    written.kafka.stop()
    broker = written.ours_on(written.kafka.log_dir)
    assert topic_ids(broker, written.topics) == written.ids
    assert {topic: read(broker, topic) for topic in written.topics} == written.seen
    written.carry_on(broker, 3)
    expected = dict(written.seen)
    for topic, records in {"long": long_records(2500), "codec-gzip": samples()}.items():
        write(broker, topic, records, enable_idempotence=True, compression_codec="lz4")
        expected[topic] |= dict(enumerate(records, max(expected[topic]) + 1))
    assert read(broker, "long") == expected["long"]
    assert broker.stop() == 0

    written.kafka.start()
    wait_until(lambda: leads(written.kafka, written.topics), "Apache Kafka leads its partitions again")
    written.carry_on(written.kafka, 4)
    del expected["empty"]
    assert {topic: read(written.kafka, topic) for topic in expected} == expected
