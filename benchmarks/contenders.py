"""The two brokers that are compared, started the way their users start them, and the topics made on them."""

from __future__ import annotations

import contextlib
import re
import resource
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.measures import Process
from benchmarks.wire import Connection, WireError, fetch_request
from compat_tests.provision import cache, java, kafka_classpath
from compat_tests.servers import HOST, ApacheKafka, NotServing, OurBroker, Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OURS, KAFKA = "ours", "Kafka"
KAFKA_VERSION = "4.3.1"
PROPERTIES = {
    "log.segment.delete.delay.ms": "100",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""Given to both: deleted topics leave the disk at once, and groups of one do not wait for a second member."""
STOCK_JVM = [
    *("-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *(
        "-XX:InitiatingHeapOccupancyPercent=35",
        "-XX:+ExplicitGCInvokesConcurrent",
        "-Djava.awt.headless=true",
    ),
]
"""The options Apache Kafka's own start script sets."""
POLL_SECONDS = 0.002
START_SECONDS = 120.0
TOPIC_SECONDS = 300.0


class _PromptStart(Server):
    """Notices the first answer within milliseconds, so start-up can be timed."""

    def _wait_until_serving(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._serving():
            if not self.alive or time.monotonic() > deadline:
                raise NotServing(self.tail())
            time.sleep(POLL_SECONDS)


class TimedBroker(_PromptStart, OurBroker):
    """Our broker as installed."""


class StockKafka(_PromptStart, ApacheKafka):
    """Apache Kafka with the JVM options of its own start script instead of those that suit tests."""

    def _java(self, *arguments: str, heap: str | None = None) -> list[str]:
        options = [f"-Xmx{heap}"] if heap else STOCK_JVM
        return [str(java()), *options, "-cp", kafka_classpath(self.version), *arguments]


@dataclass(frozen=True, slots=True)
class Contender:
    """A running broker with the name its column carries."""

    name: str
    server: Server

    @property
    def bootstrap(self) -> str:
        return self.server.bootstrap

    @property
    def process(self) -> Process:
        return Process(self.server.pid)

    def connect(self) -> Connection:
        """A raw connection to it."""
        return Connection(HOST, self.server.port)

    def complaints(self) -> list[str]:
        """Lines of its output that speak of errors."""
        printed = self.server.output.read_text(errors="replace").splitlines()
        return [line for line in printed if re.search(r"\bERROR\b|Traceback|\w+(Error|Exception)\b", line)]


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory for data, logs and payloads that is gone afterwards; on the disk of the project's cache."""
    directory = Path(tempfile.mkdtemp(prefix="bench-", dir=cache()))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def running(names: list[str], directory: Path, properties: Mapping[str, str]) -> Iterator[list[Contender]]:
    """Start the named brokers with empty logs; on leaving they are stopped and their data is removed.

    Properties are given to both beside PROPERTIES."""
    allow_many_files()
    home = Path(tempfile.mkdtemp(prefix="servers-", dir=directory))
    contenders = [Contender(name, make(name, home / name, properties)) for name in names]
    try:
        for contender in contenders:
            contender.server.start()
        yield contenders
    finally:
        for contender in contenders:
            contender.server.close()
        shutil.rmtree(home, ignore_errors=True)


def make(name: str, directory: Path, properties: Mapping[str, str] | None = None) -> Server:
    """A server that is not yet started."""
    given = PROPERTIES | dict(properties or {})
    if name == OURS:
        return TimedBroker(directory, given)
    return StockKafka(KAFKA_VERSION, directory, given)


def create_topic(contender: Contender, topic: str, partitions: int) -> float:
    """Create a topic and wait until every partition answers a fetch: the seconds that took."""
    started = time.perf_counter()
    admin = AdminClient({"bootstrap.servers": contender.bootstrap})
    for future in admin.create_topics(
        [NewTopic(topic, partitions, 1)], request_timeout=TOPIC_SECONDS
    ).values():
        future.result(TOPIC_SECONDS)
    until_served(contender, topic, [(partition, 0) for partition in range(partitions)])
    return time.perf_counter() - started


def until_served(contender: Contender, topic: str, positions: list[tuple[int, int]]) -> int:
    """Fetch until no partition answers with an error: the bytes of records that came."""
    request = fetch_request(topic, positions)
    deadline = time.monotonic() + TOPIC_SECONDS
    with contender.connect() as connection:
        while True:
            connection.send(request)
            try:
                return connection.fetched().records
            except WireError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(POLL_SECONDS)


def delete_topic(contender: Contender, topic: str) -> None:
    """Delete a topic and wait until its files are gone: to remove them is work that belongs to no other row."""
    admin = AdminClient({"bootstrap.servers": contender.bootstrap})
    for future in admin.delete_topics([topic], request_timeout=TOPIC_SECONDS).values():
        future.result(TOPIC_SECONDS)
    logs = contender.server.log_dir
    wait_until(lambda: not any(logs.glob(f"{topic}-*")), f"the files of {topic} are deleted", TOPIC_SECONDS)


def allow_many_files() -> None:
    """Raise the limit on open files as far as it goes, for thousands of partitions and connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
