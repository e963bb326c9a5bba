"""Compacted topics: the last value of every key, deletions, idempotent producers, as Apache Kafka keeps them."""

from __future__ import annotations

import re
import subprocess
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from compat_tests import provision
from compat_tests.conftest import create_topic
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from compat_tests.conftest import MakeBroker
    from compat_tests.servers import Server

pytestmark = pytest.mark.feature("compaction")

EAGER = {
    "cleanup_policy": "compact",
    "segment_bytes": 1048576,
    "segment_ms": 86400000,
    "min_cleanable_dirty_ratio": 0.01,
    "file_delete_delay_ms": 0,
}
QUICK = {
    "log_cleaner_backoff_ms": 100,
    "log_cleaner_threads": 1,
    "log_retention_check_interval_ms": 500,
    "log_initial_task_delay_ms": 500,
}

Record = tuple[str, str | None]


def write(server: Server, topic: str, records: Iterable[Record], **config: object) -> None:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 5, **settings})
    failures = []
    for key, value in records:
        while True:
            try:
                producer.produce(
                    topic, value, key, on_delivery=lambda error, _: error and failures.append(error)
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not failures


def read(server: Server, topic: str) -> list[tuple[int, str, str | None]]:
    """Offset, key and value of all records from the beginning to the end of partition 0."""
    settings = {
        "bootstrap.servers": server.bootstrap,
        "group.id": "nobody",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "check.crcs": True,
    }
    found = []
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for message in consumer.consume(1000, 1):
                if message.error() is not None:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    return found
                value = message.value()
                found.append((message.offset(), message.key().decode(), value and value.decode()))
    raise AssertionError(f"no end after {len(found)} records")


def partition_directory(server: Server, topic: str) -> Path:
    return server.log_dir / f"{topic}-0"


def closed_segments(server: Server, topic: str) -> list[Path]:
    return sorted(partition_directory(server, topic).glob("*.log"))[:-1]


def cleaned_upto(server: Server, topic: str) -> int:
    """What the cleaner's checkpoint says; 0 before the first cleaning."""
    path = server.log_dir / "cleaner-offset-checkpoint"
    entries = path.read_text().splitlines()[2:] if path.exists() else []
    return next((int(entry.split()[2]) for entry in entries if entry.split()[:2] == [topic, "0"]), 0)


def wait_until_clean(server: Server, topic: str) -> None:
    """All segments but the active one are below the cleaner's checkpoint."""

    def clean() -> bool:
        active = max(partition_directory(server, topic).glob("*.log"))
        return cleaned_upto(server, topic) == int(active.stem) > 0

    wait_until(clean, f"{topic} is clean", 60)


def dump(files: list[Path]) -> str:
    """What Apache Kafka's own tool says about log files, with every record checked."""
    command = [
        str(provision.java()),
        "-Xmx256m",
        "-cp",
        provision.kafka_classpath("4.3.1"),
        "org.apache.kafka.tools.DumpLogSegments",
        "--deep-iteration",
        "--print-data-log",
        "--files",
        ",".join(map(str, files)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_fifty_thousand_records_of_a_hundred_keys_come_down_to_the_last_ones(
    own_broker: MakeBroker, fresh_name: str, codec: str
) -> None:
    server = own_broker(**QUICK)
    topic = create_topic(server.bootstrap, fresh_name, **EAGER)
    filler = "v" * 100 if codec == "none" else ""
    records = [(f"key-{n % 100}", f"{n}-{n * 7919 % 1000003:07}-{filler}") for n in range(50_000)]
    write(server, topic, records, compression_type=codec, batch_size=16384 if codec == "none" else 1_000_000)
    roll(server, topic)
    wait_until_clean(server, topic)

    found = read(server, topic)
    expected = {key: (offset, value) for offset, (key, value) in enumerate(records)}
    assert {key: (offset, value) for offset, key, value in found if key in expected} == expected
    cleaned = [offset for offset, _, _ in found if offset < 50_000]
    assert len(cleaned) == 100
    filler_bytes = 1_100_000
    assert sum(path.stat().st_size for path in closed_segments(server, topic)) < 100_000 + filler_bytes


def roll(server: Server, topic: str) -> None:
    """Fills the active segment until the next one begins, with records that do not compress away."""
    active = max(partition_directory(server, topic).glob("*.log"))
    for number in range(20):
        write(server, topic, [(f"filler-{number}", "f" * 500_000)])
        if max(partition_directory(server, topic).glob("*.log")) != active:
            return
    raise AssertionError(f"{active} takes more and more")


def test_apache_kafkas_own_tool_reads_what_is_left(own_broker: MakeBroker, fresh_name: str) -> None:
    with provision.or_skip():
        provision.kafka_classpath("4.3.1")
    server = own_broker(**QUICK)
    topic = create_topic(server.bootstrap, fresh_name, **EAGER)
    records: list[Record] = [(f"key-{n % 50}", None if n % 50 == 7 else f"{n:0500}") for n in range(5_000)]
    write(server, topic, records, enable_idempotence=True, batch_size=2000)
    roll(server, topic)
    wait_until_clean(server, topic)
    server.stop()

    printed = dump(closed_segments(server, topic))
    left = dict(re.findall(r"offset: (\d+) .*? key: (key-\d+)", printed))
    assert left == {str(4950 + n): f"key-{n}" for n in range(50)}
    assert "isvalid: false" not in printed
    assert re.search(r"deleteHorizonMs: OptionalLong\[\d{13}\]", printed), "the deletion says when it may go"
    indexes = [
        path.with_suffix(suffix)
        for path in closed_segments(server, topic)
        for suffix in (".index", ".timeindex")
    ]
    checked = dump(indexes)
    assert "mismatch" not in checked.lower()
    assert "Found" not in checked


def test_an_idempotent_producer_goes_on_after_its_records_were_cleaned_away(
    own_broker: MakeBroker, fresh_name: str
) -> None:
    server = own_broker(**QUICK)
    topic = create_topic(server.bootstrap, fresh_name, **EAGER)
    steady = Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True})
    results: list[object] = []

    def send(value: str) -> None:
        steady.produce(
            topic, value, "key", on_delivery=lambda error, made: results.append(error or made.offset())
        )
        assert steady.flush(30) == 0

    send("1")
    send("2")
    write(server, topic, [("key", "3")])
    roll(server, topic)
    wait_until_clean(server, topic)
    assert read(server, topic)[0] == (2, "key", "3")
    batches = re.findall(
        r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) baseSequence: (-?\d+)", dump_closed(server, topic)
    )
    assert batches[:2] == [("1", "1", "0", "1"), ("2", "2", "1", "-1")]
    server.kill()
    server.start()
    send("4")
    assert results[:2] == [0, 1]
    assert isinstance(results[2], int), results[2]


def dump_closed(server: Server, topic: str) -> str:
    with provision.or_skip():
        return dump(closed_segments(server, topic))


def test_a_deleted_key_disappears_with_its_deletion(own_broker: MakeBroker, fresh_name: str) -> None:
    server = own_broker(**QUICK)
    topic = create_topic(server.bootstrap, fresh_name, **EAGER, delete_retention_ms=0)
    write(server, topic, [("gone", "1"), ("stays", "1"), ("gone", None)])
    roll(server, topic)
    wait_until_clean(server, topic)
    wait_until_cleaned_again = 0
    while "gone" in {key for _, key, _ in read(server, topic)}:
        wait_until_cleaned_again += 1
        assert wait_until_cleaned_again < 5, "the deletion is still there"
        roll(server, topic)  # the next round removes what this one has marked
        wait_until_clean(server, topic)
    assert (1, "stays", "1") in read(server, topic)


def test_a_kill_during_cleaning_loses_nothing(own_broker: MakeBroker, fresh_name: str) -> None:
    server = own_broker(**QUICK)
    topic = create_topic(server.bootstrap, fresh_name, **EAGER)
    records = [(f"key-{n % 100}", f"{n}-" + "v" * 200) for n in range(20_000)]
    for part in range(4):
        write(server, topic, records[part * 5000 : (part + 1) * 5000])
        server.kill()  # the cleaner is somewhere in the middle of what was written
        server.start()
    roll(server, topic)
    wait_until_clean(server, topic)
    expected = {key: (offset, value) for offset, (key, value) in enumerate(records)}
    assert {key: (offset, value) for offset, key, value in read(server, topic) if key in expected} == expected
    assert not list(partition_directory(server, topic).glob("*.cleaned"))
    assert not list(partition_directory(server, topic).glob("*.swap"))
