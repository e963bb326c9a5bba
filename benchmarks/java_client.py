"""Apache Kafka's own Java tools and client, run inside one warm JVM through py4j.

One JVM serves every round and both brokers, so just-in-time compilation is paid in the warm-up and neither broker meets
a colder client than the other. EndToEndLatency ends its JVM when done, so it gets one of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from compat_tests.provision import java, kafka_classpath

if TYPE_CHECKING:
    from pathlib import Path

TOOLS_VERSION = "4.3.1"
HEAP = "-Xmx1G"
POLL_RECORDS = 10_000
POLL_MS = 30_000
BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


@dataclass(frozen=True, slots=True)
class Latency:
    """What EndToEndLatency prints, in milliseconds; its percentiles are whole milliseconds."""

    average: float
    p50: int
    p99: int


class JavaClient:
    """Owner of the warm JVM; close it, or use it as a context manager."""

    def __init__(self) -> None:
        port = launch_gateway(
            classpath=kafka_classpath(TOOLS_VERSION),
            javaopts=[HEAP],
            java_path=str(java()),
            die_on_exit=True,
            redirect_stderr=subprocess.DEVNULL,
        )
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        self._jvm: Any = self._gateway.jvm

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM."""
        self._gateway.shutdown()

    def produce(self, bootstrap: str, topic: str, records: int, payloads: Path, **config: str) -> float:
        """ProducerPerformance over a file of payloads: seconds from the first send to the last acknowledgement."""
        properties = [
            f"bootstrap.servers={bootstrap}",
            *(f"{name}={value}" for name, value in config.items()),
        ]
        arguments = ["--topic", topic, "--num-records", str(records), "--throughput", "-1"]
        arguments += ["--payload-file", str(payloads), "--producer-props", *properties]
        printed = self._main("ProducerPerformance", arguments)
        total = re.search(rf"^{records} records sent, ([\d.]+) records/sec", printed, re.MULTILINE)
        if not total:
            raise RuntimeError(f"ProducerPerformance did not finish: {printed[-400:]}")
        return records / float(total.group(1))

    def consume_group(self, bootstrap: str, topic: str, records: int) -> float:
        """ConsumerPerformance, a group of one: the seconds it spent fetching, its join not counted."""
        arguments = [
            "--bootstrap-server",
            bootstrap,
            "--topic",
            topic,
            "--num-records",
            str(records),
            "--hide-header",
        ]
        printed = self._main("ConsumerPerformance", [*arguments, "--timeout", str(POLL_MS)])
        fields = printed.strip().splitlines()[-1].split(", ")
        if int(fields[4]) < records:
            raise RuntimeError(f"ConsumerPerformance read {fields[4]} of {records} records")
        return int(fields[7]) / 1000

    def consume_assigned(self, bootstrap: str, topic: str, partitions: int, records: int) -> float:
        """KafkaConsumer, all partitions assigned, from the beginning: seconds until all are read, after connecting."""
        jvm = self._jvm
        properties = {"bootstrap.servers": bootstrap, "key.deserializer": BYTES, "value.deserializer": BYTES}
        properties |= {"enable.auto.commit": "false", "max.poll.records": str(POLL_RECORDS)}
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
        try:
            assigned = [
                jvm.org.apache.kafka.common.TopicPartition(topic, number) for number in range(partitions)
            ]
            consumer.assign(assigned)
            consumer.seekToBeginning(assigned)
            for partition in assigned:
                consumer.position(partition)
            patience, seen = jvm.java.time.Duration.ofMillis(POLL_MS), 0
            started = time.perf_counter()
            while seen < records:
                came = consumer.poll(patience).count()
                if not came:
                    raise RuntimeError(f"only {seen} of {records} records came")
                seen += came
            return time.perf_counter() - started
        finally:
            consumer.close()

    def _main(self, tool: str, arguments: list[str]) -> str:
        """Run a tool's main method and give back what it printed."""
        jvm = self._jvm
        array = self._gateway.new_array(jvm.java.lang.String, len(arguments))
        for at, argument in enumerate(arguments):
            array[at] = argument
        printed, usual = jvm.java.io.ByteArrayOutputStream(), jvm.java.lang.System.out
        jvm.java.lang.System.setOut(jvm.java.io.PrintStream(printed, True))
        try:
            getattr(jvm.org.apache.kafka.tools, tool).main(array)
        finally:
            jvm.java.lang.System.setOut(usual)
        return str(printed.toString())


def end_to_end_latency(bootstrap: str, topic: str, records: int, size: int) -> Latency:
    """EndToEndLatency: send with acks=all, wait for the acknowledgement, poll until the record is there."""
    tool = ["-cp", kafka_classpath(TOOLS_VERSION), "org.apache.kafka.tools.EndToEndLatency"]
    arguments = [bootstrap, topic, str(records), "all", str(size)]
    done = subprocess.run(
        [java(), HEAP, *tool, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    average = re.search(r"Avg latency: ([\d.]+) ms", done.stdout)
    percentiles = re.search(r"50th = (\d+), 99th = (\d+)", done.stdout)
    if not (average and percentiles):
        raise RuntimeError(f"EndToEndLatency failed: {(done.stdout + done.stderr)[-400:].strip()}")
    return Latency(float(average.group(1)), int(percentiles.group(1)), int(percentiles.group(2)))


def write_payloads(path: Path, size: int, lines: int = 64) -> None:
    """A file of payloads for ProducerPerformance, so that it need not spend its time on random letters."""
    alphabet = bytes(65 + at % 26 for at in range(size + lines))
    path.write_bytes(os.linesep.encode().join(alphabet[shift : shift + size] for shift in range(lines)))
