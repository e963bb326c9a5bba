"""Throughput and the server's CPU time: Apache Kafka's Java tools and librdkafka, producing and consuming."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.contenders import Contender, create_topic, delete_topic
from benchmarks.java_client import write_payloads
from benchmarks.measures import GB, KIB, MB
from benchmarks.rounds import Goal, Lab, Metric, Row, Sample, Section
from benchmarks.startup import MEMORY, resident
from benchmarks.wire import JOIN_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable

CPU = Metric("cpu", "CPU s/GB", Goal(0.5, at_least=False))
AS_FAST = (Metric("rate", "MB/s", Goal(1.0, at_least=True)), CPU)
THRICE = (Metric("rate", "MB/s", Goal(3.0, at_least=True)), CPU)
CLIENT_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Load:
    """Records of one size sent to a topic of so many partitions."""

    name: str
    size: int
    records: int
    partitions: int
    config: dict[str, str | int] = field(default_factory=dict)
    produce_metrics: tuple[Metric, ...] = AS_FAST

    @property
    def title(self) -> str:
        return f"{self.name}, {self.partitions} partition{'s' if self.partitions > 1 else ''}"

    @property
    def bytes(self) -> int:
        return self.size * self.records

    def topic(self, number: int) -> str:
        """The topic a round writes."""
        return re.sub(r"\W+", "-", self.title) + f"-round-{number}"


@dataclass(frozen=True, slots=True)
class Reader:
    """A way to consume a whole topic: what its row is called, and the seconds it takes against a broker."""

    title: str
    seconds: Callable[[Contender, str, Load], float]


def java_loads(lab: Lab) -> list[Load]:
    """What ProducerPerformance sends: three sizes, one partition and six."""
    amounts = {100: 1_500_000, KIB: 400_000, 10 * KIB: 50_000}
    names = {100: "100 B", KIB: "1 KiB", 10 * KIB: "10 KiB"}
    return [
        Load(names[size], size, lab.scaled(records), partitions)
        for size, records in amounts.items()
        for partitions in (1, 6)
    ]


def rdkafka_loads(lab: Lab) -> list[Load]:
    """What librdkafka sends: its default batches, and batches of 16 KB that leave at once."""
    small: dict[str, str | int] = {"linger.ms": 0, "batch.size": 16_384}
    loads = []
    for partitions in (1, 6):
        loads.append(Load("1 KiB, default batches", KIB, lab.scaled(600_000), partitions))
        loads.append(
            Load("1 KiB, linger 0, 16 KB batches", KIB, lab.scaled(150_000), partitions, small, THRICE)
        )
    return loads


def java(lab: Lab) -> list[Section]:
    """ProducerPerformance, then consumers over what it wrote."""
    client = lab.java()

    def produce(contender: Contender, topic: str, load: Load) -> float:
        payloads = lab.directory / f"payloads-{load.size}"
        if not payloads.exists():
            write_payloads(payloads, load.size)
        return client.produce(contender.bootstrap, topic, load.records, payloads)

    def assigned(contender: Contender, topic: str, load: Load) -> float:
        return client.consume_assigned(contender.bootstrap, topic, load.partitions, load.records)

    def grouped(contender: Contender, topic: str, load: Load) -> float:
        return client.consume_group(contender.bootstrap, topic, load.records)

    def reader(contenders: list[Contender]) -> Reader:
        if all(_has_groups(contender) for contender in contenders):
            return Reader("ConsumerPerformance", grouped)
        return Reader("KafkaConsumer, assigned", assigned)

    rows, memory = _measure(lab, java_loads(lab), "ProducerPerformance", produce, reader)
    note = (
        "ProducerPerformance and ConsumerPerformance are Apache Kafka's own; ConsumerPerformance joins a group, so as"
        " long as a broker serves none a Java KafkaConsumer with assigned partitions reads in its place. All run in"
        " one warm JVM for both brokers."
    )
    return [Section("Throughput: Java clients", rows, note), Section(MEMORY, [memory])]


def rdkafka(lab: Lab) -> list[Section]:
    """librdkafka's producer, then its consumer over what was written."""

    def produce(contender: Contender, topic: str, load: Load) -> float:
        return _rdkafka("produce", contender, topic, load, load.config)

    def consume(contender: Contender, topic: str, load: Load) -> float:
        return _rdkafka("consume", contender, topic, load, {"fetch.queue.backoff.ms": 5})

    def reader(_: list[Contender]) -> Reader:
        return Reader("librdkafka consumer, assigned", consume)

    rows, memory = _measure(lab, rdkafka_loads(lab), "librdkafka producer", produce, reader)
    note = (
        "The threefold goal is for producing with small batches; a consumer fetches them by the megabyte all the same."
        " `fetch.queue.backoff.ms=5`: with the default of one second a full queue, not the broker, sets the pace."
    )
    return [Section("Throughput: librdkafka", rows, note), Section(MEMORY, [memory])]


def _measure(
    lab: Lab,
    loads: list[Load],
    produced_by: str,
    produce: Callable[[Contender, str, Load], float],
    choose_reader: Callable[[list[Contender]], Reader],
) -> tuple[list[Row], Row]:
    """Every load on one fresh pair of servers: produce in alternating rounds, then consume what the last round wrote.

    Also gives the memory the servers hold when all is done.
    """
    written, read = [], []
    with lab.running() as contenders:
        reader = choose_reader(contenders)
        for load in loads:
            made = Row(f"{produced_by}, {load.title}", load.produce_metrics)
            written.append(lab.alternate(made, contenders, _producing(lab, load, produce)))
            os.sync()  # else the kernel writes to disk beside the readers
            row = Row(f"{reader.title}, {load.title}", AS_FAST, missing=dict(made.missing))
            read.append(lab.alternate(row, contenders, _consuming(load, load.topic(lab.rounds), reader)))
            for contender in contenders:
                if contender.name not in made.missing:
                    delete_topic(contender, load.topic(lab.rounds))
        return written + read, resident(f"after the {produced_by} and consume rows", contenders)


def _producing(
    lab: Lab, load: Load, produce: Callable[[Contender, str, Load], float]
) -> Callable[[Contender, int], Sample]:
    """A round writes a topic of its own, and removes it unless it is the last, which is left to the readers."""

    def run(contender: Contender, number: int) -> Sample:
        topic = load.topic(number)
        create_topic(contender, topic, load.partitions)
        sample = _sample(contender, load, lambda: produce(contender, topic, load))
        if number < lab.rounds:
            delete_topic(contender, topic)
        return sample

    return run


def _consuming(load: Load, topic: str, reader: Reader) -> Callable[[Contender, int], Sample]:
    return lambda contender, _: _sample(contender, load, lambda: reader.seconds(contender, topic, load))


def _sample(contender: Contender, load: Load, work: Callable[[], float]) -> Sample:
    before = contender.process.cpu_seconds()
    seconds = work()
    spent = contender.process.cpu_seconds() - before
    return {"rate": load.bytes / MB / seconds, "cpu": spent / (load.bytes / GB)}


def _rdkafka(what: str, contender: Contender, topic: str, load: Load, config: dict[str, str | int]) -> float:
    job = {"bootstrap": contender.bootstrap, "topic": topic, "size": load.size, "records": load.records}
    job |= {"partitions": load.partitions, "config": config}
    return float(run_rdkafka(what, job)["seconds"])


def run_rdkafka(what: str, job: dict[str, object]) -> dict[str, Any]:
    """Run librdkafka in its own process and give back what it reports."""
    command = [sys.executable, "-m", "benchmarks.rdkafka_client", what, json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CLIENT_SECONDS)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip().splitlines()[-1])
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _has_groups(contender: Contender) -> bool:
    with contender.connect() as connection:
        return JOIN_GROUP in connection.api_versions()
