"""kafka-python 1.4, the last that speaks as brokers before 0.11 did, in each of the tongues it knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from compat_tests import provision
from compat_tests.versions import HARNESS

VERSION = "1.4.7"
COUNT = 20
SECONDS = 120
PROGRAM = HARNESS / "python" / "old_kafka_python.py"
IT_FINDS_OUT = "0"


@pytest.mark.client("kafka-python", VERSION)
@pytest.mark.feature("connect and negotiate", "produce: codecs", "commit and fetch offsets")
@pytest.mark.parametrize(
    "speaking",
    ["0.9", IT_FINDS_OUT, *(pytest.param(version, marks=pytest.mark.long) for version in ("0.10.2", "0.11"))],
    ids="as-{}".format,
)
def test_it_writes_reads_and_commits_as_it_did_then(against, broker, topic, speaking, fresh_name):
    if against == "kafka-4.3.1":
        pytest.skip("Apache Kafka 4 does not speak to clients this old")
    with provision.or_skip():
        packages = provision.python_packages(f"kafka-python=={VERSION}", "python-snappy", "lz4", "xxhash")
    name, total = topic(), 4 * COUNT
    arguments = [broker.bootstrap, speaking, name, fresh_name, str(COUNT)]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env={**os.environ, "PYTHONPATH": str(packages)},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = [next(iter(json.loads(line).items())) for line in done.stdout.splitlines()]
    offsets = [offset for what, value in told if what == "sent" for offset in value]
    assert offsets == list(range(total))
    assert dict(told)["read"] == [[n, f"k{n}", f"v{n}"] for n in range(total)]
    assert [value for what, value in told if what == "committed"] == [total // 2, total]
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "today", "check.crcs": True})
    consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
    assert [r.value() for r in consumer.consume(total, timeout=30)] == [
        f"v{n}".encode() for n in range(total)
    ]
    consumer.close()
