"""End-to-end latency: the time until a record that was sent is in a consumer's hands, one record at a time."""

from __future__ import annotations

import time

from benchmarks.contenders import Contender, create_topic
from benchmarks.java_client import end_to_end_latency
from benchmarks.measures import percentile
from benchmarks.rounds import Goal, Lab, Metric, Row, Sample, Section
from benchmarks.throughput import run_rdkafka
from benchmarks.wire import batch, fetch_request, produce_request

P50 = Metric("p50", "p50 ms")
P99 = Metric("p99", "p99 ms", Goal(0.5, at_least=False))
AVERAGE = Metric("average", "average ms")
WHOLE_P99 = Metric("p99", "p99 ms")
SIZE = 100
LONG_POLL_MS = 500


def latency(lab: Lab) -> list[Section]:
    """Three clients: a bare socket, librdkafka, and Apache Kafka's EndToEndLatency."""
    with lab.running() as contenders:
        for contender in contenders:
            create_topic(contender, "ping", 1)
        count = lab.scaled(5_000, 1_000)

        def raw(contender: Contender, _: int) -> Sample:
            return _percentiles(raw_ping(contender, "ping", count))

        def librdkafka(contender: Contender, _: int) -> Sample:
            job: dict[str, object] = {
                "bootstrap": contender.bootstrap,
                "topic": "ping",
                "size": SIZE,
                "config": {},
            }
            answer = run_rdkafka("ping", job | {"records": count, "warmup": count // 10})
            return _percentiles(answer["latencies"])

        def java(contender: Contender, _: int) -> Sample:
            told = end_to_end_latency(contender.bootstrap, "ping", count, SIZE)
            return {"average": told.average, "p50": told.p50, "p99": told.p99}

        rows = [
            lab.alternate(Row("bare socket, waiting fetch", (P50, P99)), contenders, raw),
            lab.alternate(Row("librdkafka, linger 0, acks all", (P50, P99)), contenders, librdkafka),
            lab.alternate(Row("EndToEndLatency, acks all", (AVERAGE, P50, WHOLE_P99)), contenders, java),
        ]
    note = (
        f"Records of {SIZE} B, each sent when the one before has arrived. The bare socket sends Produce while a Fetch"
        " waits, so the broker is nearly all of the time; librdkafka adds its threads, driven from Python."
        " EndToEndLatency starts a cold JVM for each round and prints whole milliseconds only: no goal there."
    )
    return [Section("End-to-end latency", rows, note)]


def raw_ping(contender: Contender, topic: str, count: int) -> list[float]:
    """Seconds from before a record is sent until a fetch that was already waiting brings it."""
    records = batch(SIZE)
    send = produce_request(topic, 0, records)
    latencies = []
    with contender.connect() as producer, contender.connect() as consumer:
        producer.send(send)
        offset = producer.produced(topic) + 1
        for _ in range(count):
            consumer.send(fetch_request(topic, [(0, offset)], max_wait_ms=LONG_POLL_MS))
            started = time.perf_counter()
            producer.send(send)
            while not consumer.fetched().records:
                consumer.send(fetch_request(topic, [(0, offset)], max_wait_ms=LONG_POLL_MS))
            latencies.append(time.perf_counter() - started)
            offset = producer.produced(topic) + 1
    return latencies


def _percentiles(seconds: list[float]) -> Sample:
    ordered = sorted(seconds)
    return {"p50": percentile(ordered, 0.5) * 1000, "p99": percentile(ordered, 0.99) * 1000}
