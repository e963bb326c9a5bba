"""librdkafka under load, in a process of its own: prints one line of JSON with what it did.

    python -m benchmarks.rdkafka_client produce|consume|ping '{"bootstrap": ..., "topic": ..., ...}'

confluent-kafka is the driver: its calls cost a microsecond a message, the same for either broker.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

PAYLOADS = 64
CONSUME_AT_MOST = 1_000
ANSWER_SECONDS = 60.0


def produce(job: dict[str, Any]) -> dict[str, Any]:
    """Send `records` values of `size` bytes and wait until all are acknowledged."""
    producer = Producer({"bootstrap.servers": job["bootstrap"], **job["config"]})
    producer.list_topics(job["topic"], timeout=ANSWER_SECONDS)
    payloads = [bytes(65 + (shift + at) % 26 for at in range(job["size"])) for shift in range(PAYLOADS)]
    topic, send = job["topic"], producer.produce
    started = time.perf_counter()
    for number in range(job["records"]):
        while True:
            try:
                send(topic, payloads[number % PAYLOADS])
                break
            except BufferError:
                producer.poll(0.05)
    left = producer.flush(ANSWER_SECONDS)
    seconds = time.perf_counter() - started
    if left:
        raise RuntimeError(f"{left} records were not acknowledged")
    return {"seconds": seconds, "records": job["records"]}


def consume(job: dict[str, Any]) -> dict[str, Any]:
    """Read `records` values from the beginning of all partitions, assigned by hand."""
    consumer = _consumer(job)
    consumer.assign([TopicPartition(job["topic"], partition, 0) for partition in range(job["partitions"])])
    wanted, seen, read = job["records"], 0, consumer.consume
    started = time.perf_counter()
    while seen < wanted:
        messages = read(CONSUME_AT_MOST, ANSWER_SECONDS)
        if not messages:
            raise RuntimeError(f"only {seen} of {wanted} records came")
        if failed := messages[-1].error():
            raise KafkaException(failed)
        seen += len(messages)
    return {"seconds": time.perf_counter() - started, "records": seen}


def ping(job: dict[str, Any]) -> dict[str, Any]:
    """Send a record, wait until it is read back, `records` times: the latency of each in seconds."""
    producer = Producer({"bootstrap.servers": job["bootstrap"], "linger.ms": 0, **job["config"]})
    consumer = _consumer(job)
    end = producer.list_topics(job["topic"], timeout=ANSWER_SECONDS) and consumer.get_watermark_offsets(
        TopicPartition(job["topic"], 0), timeout=ANSWER_SECONDS
    )
    consumer.assign([TopicPartition(job["topic"], 0, end[1])])
    value = b"x" * job["size"]
    latencies = []
    for number in range(job["warmup"] + job["records"]):
        started = time.perf_counter()
        producer.produce(job["topic"], value, partition=0)
        message = consumer.poll(ANSWER_SECONDS)
        if message is None or message.error():
            raise RuntimeError(f"record {number} did not come back: {message and message.error()}")
        if number >= job["warmup"]:
            latencies.append(time.perf_counter() - started)
        producer.poll(0)
    return {"latencies": latencies}


def _consumer(job: dict[str, Any]) -> Consumer:
    # A group id is demanded by the library; with assigned partitions and no commits no group is joined.
    fixed = {"bootstrap.servers": job["bootstrap"], "group.id": "bench", "enable.auto.commit": False}
    return Consumer(fixed | {"enable.auto.offset.store": False} | job["config"])


if __name__ == "__main__":
    jobs = {"produce": produce, "consume": consume, "ping": ping}
    print(json.dumps(jobs[sys.argv[1]](json.loads(sys.argv[2]))))
