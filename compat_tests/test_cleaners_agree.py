"""The same dirty log, cleaned by Apache Kafka and by us: what both leave is the same, batch by batch."""

from __future__ import annotations

import re
import shutil
import threading
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from compat_tests import servers
from compat_tests.conftest import create_topic
from compat_tests.provision import or_skip
from compat_tests.test_compaction import (
    EAGER,
    QUICK,
    Record,
    closed_segments,
    dump,
    roll,
    wait_until_clean,
    write,
)
from pykafka_broker.clock import SystemClock
from pykafka_broker.log.batch_filter import last_batches
from pykafka_broker.log.cleaner import CleanerSettings, CleaningRound
from pykafka_broker.log.log_config import LogConfig
from pykafka_broker.log.log_dir import LogDir
from pykafka_broker.log.pace import Pace
from pykafka_broker.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.servers import Server

pytestmark = pytest.mark.feature("compaction")

TOPIC = "both"
LAZY = {"log.cleaner.backoff.ms": "3600000"}
BUSY = {name.replace("_", "."): str(value) for name, value in QUICK.items()}


def transaction(producer: Producer, records: list[Record], *, commit: bool) -> None:
    producer.begin_transaction()
    for key, value in records:
        producer.produce(TOPIC, value, key)
    producer.flush(30)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def write_everything(server: Server, stage: int) -> None:
    """Plain, compressed, idempotent and transactional batches whose keys overwrite each other, and deletions."""
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        records: list[Record] = [(f"k{n % 13}", f"{stage}-{number}-{n}" * 5) for n in range(40)]
        write(server, TOPIC, [*records, (f"k{number}", None)], compression_type=codec)
    write(server, TOPIC, [("i1", "1"), ("i2", "2")], enable_idempotence=True)
    settings = {"bootstrap.servers": server.bootstrap, "linger.ms": 5}
    kept = Producer({**settings, "transactional.id": "kept"})
    mixed = Producer({**settings, "transactional.id": "mixed"})
    for producer in (kept, mixed):
        producer.init_transactions(30)
    transaction(mixed, [("t1", "old"), ("t2", "old")], commit=True)
    transaction(mixed, [("t1", "aborted"), ("k9", "aborted")], commit=False)
    transaction(kept, [("t3", f"{stage}"), ("t4", None)], commit=True)
    transaction(kept, [("t3", "aborted")], commit=False)
    write(server, TOPIC, [("t1", "new"), ("i1", "new"), ("i2", None)])
    roll(server, TOPIC)


def clean_here(log_dir: Path) -> None:
    """One round of our cleaner over a log that Apache Kafka wrote and closed."""
    where, clock = LogDir.open(log_dir), SystemClock()
    config = LogConfig(
        segment_bytes=1048576, compact=True, delete=False, delete_retention_ms=0, min_cleanable_dirty_ratio=0
    )
    log = PartitionLog.open(log_dir / f"{TOPIC}-0", config, clock, recovery_point=0, clean=True)
    log.first_dirty_offset = where.read_cleaner_offsets().get((TOPIC, 0))
    plan = log.survey(log.log_end_offset)
    assert plan.is_due(config)
    segments, ticket = log.segments_to_clean()
    work = CleaningRound(segments, plan, config, CleanerSettings(), Pace(threading.Event()), clock.wall_ms())
    for group in work.begin():
        assert log.swap_in(work.clean(group, last_batches(log.producers)), group, ticket)
    log.close()
    where.close(clean=True)


def described(files: list[Path]) -> list[str]:
    """What Kafka's tool says of each batch and record, but for what may differ: compressed bytes, and when a deletion
    may go."""
    lines = [line for line in dump(files).splitlines() if "offset" in line.lower() and "Dumping" not in line]
    lines = [
        re.sub(r" (position|size|crc|batchSize): -?\d+", "", line) if line.startswith("base") else line
        for line in lines
    ]
    return [re.sub(r"OptionalLong\[\d+\]", "set", line)[:300] for line in lines]


def aborted_in(partition: Path) -> bytes:
    """The entries of all transaction indexes."""
    return b"".join(path.read_bytes() for path in sorted(partition.glob("*.txnindex")))


def test_both_cleaners_leave_the_same(tmp_path: Path) -> None:
    with or_skip():
        kafka = servers.make("kafka-4.3.1", tmp_path / "kafka", LAZY).start()
    try:
        create_topic(kafka.bootstrap, TOPIC, **EAGER, delete_retention_ms=0)
        for stage in range(3):
            write_everything(kafka, stage)
            kafka.stop()
            ours = tmp_path / f"ours-{stage}"
            shutil.copytree(kafka.log_dir, ours)
            clean_here(ours)
            kafka.properties = BUSY
            kafka.start()
            wait_until_clean(kafka, TOPIC)
            kafka.stop()
            theirs = described(closed_segments(kafka, TOPIC))
            assert described(sorted((ours / f"{TOPIC}-0").glob("*.log"))[:-1]) == theirs, f"stage {stage}"
            assert len(theirs) > 20
            assert aborted_in(ours / f"{TOPIC}-0") == aborted_in(kafka.log_dir / f"{TOPIC}-0")
            kafka.properties = LAZY
            kafka.start()
    finally:
        kafka.close()
