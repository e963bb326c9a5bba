"""Time without a leader, as clients meet it: after kill -9, and after a controlled shutdown.

A prober asks every broker every few milliseconds for the end of some partitions, which only a leader answers. A
partition was without a leader as long as nobody answered for it; the worst of them is the reading.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.clusters import NUMBERS, SESSION_MS, Cluster, running
from benchmarks.rounds import Goal, Lab, Metric, Row, Sample, Section
from benchmarks.wire import Connection, WireError, latest_offsets_request
from compat_tests.servers import HOST, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZES = (10, 1000)
PROBED = 30
"""Partitions asked for, spread over all that the broker leads: few enough to be no load."""
PROBE_SECONDS = 0.005
PROBE_TIMEOUT = 5.0
LED_AGAIN_SECONDS = 120.0

WITHOUT = Metric("without", "s without a leader", Goal(1.0, at_least=False))
AFTERWARDS = Metric("after", "of it after the session ended, ms", Goal(1.0, at_least=False))


@dataclass(slots=True)
class Probe:
    """What answers there were for each partition: the last, its longest silence, and when its leader changed last."""

    topic: str
    partitions: list[int]
    last: dict[int, float] = field(default_factory=dict)
    silence: dict[int, float] = field(default_factory=dict)
    leader: dict[int, int] = field(default_factory=dict)
    taken: dict[int, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, broker: int, partitions: list[int]) -> None:
        """Count answers that came now."""
        now = time.monotonic()
        with self._lock:
            for partition in partitions:
                gap = now - self.last.get(partition, now)
                self.silence[partition] = max(self.silence.get(partition, 0.0), gap)
                if self.leader.get(partition) != broker:
                    self.leader[partition], self.taken[partition] = broker, now
                self.last[partition] = now

    def begin(self) -> None:
        """Forget the silences so far: what counts begins now."""
        with self._lock:
            self.silence.clear()

    def complete(self) -> bool:
        """Whether every partition was answered for."""
        with self._lock:
            return len(self.last) == len(self.partitions)

    def led_without(self, broker: int) -> bool:
        """Whether somebody else now answers for every partition."""
        with self._lock:
            return all(leader != broker for leader in self.leader.values())

    def longest(self) -> float:
        """The longest silence of any partition."""
        with self._lock:
            return max(self.silence.values())

    def last_taken(self) -> float:
        """When the last partition got the leader it has."""
        with self._lock:
            return max(self.taken.values())


@contextlib.contextmanager
def probing(cluster: Cluster, topic: str, partitions: list[int]) -> Iterator[Probe]:
    """Ask all brokers, each on a thread of its own, until left."""
    probe, over = Probe(topic, partitions), threading.Event()
    threads = [
        threading.Thread(target=_ask, args=(probe, over, number, broker.server.port))
        for number, broker in cluster.brokers.items()
    ]
    for thread in threads:
        thread.start()
    try:
        wait_until(probe.complete, f"{cluster.name}: every partition is answered for", LED_AGAIN_SECONDS)
        yield probe
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _ask(probe: Probe, over: threading.Event, number: int, port: int) -> None:
    request = latest_offsets_request(probe.topic, probe.partitions)
    while not over.is_set():
        with contextlib.suppress(OSError, WireError), Connection(HOST, port, PROBE_TIMEOUT) as connection:
            while not over.is_set():
                connection.send(request)
                probe.answered(number, connection.latest_offsets())
                over.wait(PROBE_SECONDS)
        over.wait(PROBE_SECONDS)


@dataclass(frozen=True, slots=True)
class Loss:
    """A way to lose a broker."""

    title: str
    kill: bool
    controller: bool = False

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (WITHOUT, AFTERWARDS) if self.kill else (WITHOUT,)

    def victim(self, cluster: Cluster) -> int:
        """The controller, or the first broker that is not."""
        controller = cluster.controller()
        return controller if self.controller else next(n for n in NUMBERS if n != controller)


LOSSES = (
    Loss("kill -9 of a leader", kill=True),
    Loss("kill -9 of a leader that is the controller too", kill=True, controller=True),
    Loss("controlled shutdown of a leader", kill=False),
)


def failover(lab: Lab) -> list[Section]:
    """Lose a broker that leads a third of 10 and of 1,000 partitions, in three ways."""
    rows = []
    with running(lab.names, lab.directory) as clusters:
        for size in SIZES:
            topic = f"led-{size}"
            for cluster in clusters:
                cluster.create_topic(topic, size)
            for loss in LOSSES:
                row = Row(f"{loss.title}, {size:,} partitions", loss.metrics)
                rows.append(lab.alternate(row, clusters, _round(topic, size, loss)))
            for cluster in clusters:
                cluster.delete_topic(topic)
    note = (
        f"Three brokers each, three replicas, on one ZooKeeper with sessions of {SESSION_MS / 1000:g} s, beside Apache"
        " Kafka 3.9.1. The reading is the longest time in which no broker answered for a partition, of about"
        f" {PROBED} (or all) that the lost broker led. kill -9 strikes just after ZooKeeper heard of the broker, so"
        " most of the time is the session; what comes after its end is what the brokers themselves take."
    )
    return [Section("Cluster: time without a leader", rows, note)]


def _round(topic: str, size: int, loss: Loss) -> Callable[[Cluster, int], Sample]:
    """Lose a broker, read, and have all as before."""

    def run(cluster: Cluster, _: int) -> Sample:
        victim = loss.victim(cluster)
        led = [partition for partition in range(size) if NUMBERS[partition % 3] == victim]
        try:
            with probing(cluster, topic, led[:: max(len(led) // PROBED, 1)]) as probe:
                return _killed(cluster, probe, victim) if loss.kill else _stopped(cluster, probe, victim)
        finally:
            cluster.start()
            cluster.until_whole(topic, size)

    return run


def _killed(cluster: Cluster, probe: Probe, victim: int) -> Sample:
    """Without a leader, and the part of it after ZooKeeper gave the broker up."""
    ended: list[float] = []
    assert cluster.tree.exists(f"/brokers/ids/{victim}", watch=lambda _: ended.append(time.monotonic()))
    cluster.heard_of(victim)
    probe.begin()
    cluster.brokers[victim].server.kill()
    _until_led(cluster, probe, victim)
    wait_until(lambda: ended, "ZooKeeper says that the session ended")
    return {"without": probe.longest(), "after": (probe.last_taken() - ended[0]) * 1000}


def _stopped(cluster: Cluster, probe: Probe, victim: int) -> Sample:
    probe.begin()
    cluster.brokers[victim].server.stop()
    _until_led(cluster, probe, victim)
    return {"without": probe.longest()}


def _until_led(cluster: Cluster, probe: Probe, victim: int) -> None:
    wait_until(
        lambda: probe.led_without(victim),
        f"{cluster.name}: others lead what broker {victim} led",
        LED_AGAIN_SECONDS,
    )
