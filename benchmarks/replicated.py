"""acks=all with three replicas: what three brokers take together, and what it costs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.clusters import Cluster, running
from benchmarks.java_client import write_payloads
from benchmarks.measures import GB, KIB, MB
from benchmarks.rounds import Goal, Lab, Metric, Row, Sample, Section
from benchmarks.throughput import Load, run_rdkafka

if TYPE_CHECKING:
    from collections.abc import Callable

PARTITIONS = 6
REPLICATED = (Metric("rate", "MB/s", Goal(1.0, at_least=True)), Metric("cpu", "CPU s/GB"))


def java_loads(lab: Lab) -> list[Load]:
    """What ProducerPerformance sends."""
    amounts = {100: ("100 B", 1_000_000), KIB: ("1 KiB", 300_000), 10 * KIB: ("10 KiB", 30_000)}
    return [Load(name, size, lab.scaled(records), PARTITIONS) for size, (name, records) in amounts.items()]


def rdkafka_loads(lab: Lab) -> list[Load]:
    """What librdkafka sends: its default batches, and batches of 16 KB that leave at once."""
    small: dict[str, str | int] = {"linger.ms": 0, "batch.size": 16_384}
    return [
        Load("1 KiB, default batches", KIB, lab.scaled(400_000), PARTITIONS),
        Load("1 KiB, linger 0, 16 KB batches", KIB, lab.scaled(100_000), PARTITIONS, small),
    ]


def cluster(lab: Lab) -> list[Section]:
    """Java's and librdkafka's producers against three brokers each, both clusters on the same ZooKeeper."""
    client = lab.java()

    def java(to: Cluster, topic: str, load: Load) -> float:
        payloads = lab.directory / f"payloads-{load.size}"
        if not payloads.exists():
            write_payloads(payloads, load.size)
        return client.produce(to.bootstrap, topic, load.records, payloads, acks="all")

    def rdkafka(to: Cluster, topic: str, load: Load) -> float:
        job = {"bootstrap": to.bootstrap, "topic": topic, "size": load.size, "records": load.records}
        job |= {"partitions": load.partitions, "config": {"acks": "all", **load.config}}
        return float(run_rdkafka("produce", job)["seconds"])

    rows = []
    with running(lab.names, lab.directory) as clusters:
        for name, produce, loads in (
            ("ProducerPerformance", java, java_loads(lab)),
            ("librdkafka producer", rdkafka, rdkafka_loads(lab)),
        ):
            for load in loads:
                row = Row(f"{name}, acks=all, {load.title}", REPLICATED)
                rows.append(lab.alternate(row, clusters, _round(load, produce)))
        for made in clusters:
            for broker in made.brokers.values():
                if said := broker.complaints():
                    lab.say(f"!! {made.name} printed {len(said)} complaints, the last: {said[-1]}")
    note = (
        "Three brokers each, three replicas, `min.insync.replicas=2`, on one ZooKeeper; beside Apache Kafka 3.9.1, the"
        " last release that knows ZooKeeper. CPU is that of all three brokers; all share this machine with the client."
    )
    return [Section("Cluster: acks=all with three replicas", rows, note)]


def _round(load: Load, produce: Callable[[Cluster, str, Load], float]) -> Callable[[Cluster, int], Sample]:
    """A round writes a topic of its own and removes it."""

    def run(to: Cluster, number: int) -> Sample:
        topic = load.topic(number)
        to.create_topic(topic, load.partitions)
        try:
            before = to.cpu_seconds()
            seconds = produce(to, topic, load)
            spent = to.cpu_seconds() - before
        finally:
            to.delete_topic(topic)
        return {"rate": load.bytes / MB / seconds, "cpu": spent / (load.bytes / GB)}

    return run
