"""A topic under load while something happens to its brokers, and the reckoning afterwards."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from compat_tests.cluster.brokers import NUMBERS
from compat_tests.cluster.clients import Member, Reader, Writer, ends, positions, whole_log
from compat_tests.cluster.history import History, group_violations, violations
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from compat_tests.cluster.brokers import Cluster
    from compat_tests.servers import Server

PARTITIONS = 3
RATE = 600
IMPATIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.interval.ms": 2000,
}
IDEMPOTENT = {"enable.idempotence": True, "acks": "all", "linger.ms": 5, **IMPATIENT}


class Ordeal:
    """A producer, a reader and a group of two on a fresh topic; owner of these clients.

    Leaving it mends nothing: by then the test has brought all brokers back. It waits until all replicas are in
    sync, and holds what the clients saw against the log, and the replicas against each other.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str = "ordeal",
        *,
        idempotent: bool = True,
        defaults: bool = False,
        leaders: Sequence[int] = NUMBERS,
    ) -> None:
        self.cluster, self.topic = cluster, topic
        self.history = History(exactly_once=idempotent)
        self.members = [f"{topic} member {number}" for number in (1, 2)]
        address = {"bootstrap.servers": cluster.bootstrap}
        produced_with = address | ({} if defaults else IDEMPOTENT)
        consumed_with = address | ({} if defaults else IMPATIENT)
        cluster.create_topic(topic, PARTITIONS, leaders)
        self.writer = Writer(self.history, topic, PARTITIONS, RATE, produced_with)
        self.reader = Reader(self.history, f"{topic} reader", topic, PARTITIONS, consumed_with)
        self.group = [
            Member(self.history, name, topic, consumed_with | {"group.id": f"{topic} group"})
            for name in self.members
        ]
        self._clients = ExitStack()

    def __enter__(self) -> Self:
        for client in (self.reader, *self.group, self.writer):
            self._clients.enter_context(client)
        try:
            self.carries_on()
        except BaseException:
            self._clients.close()
            raise
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:
            self._clients.close()
            return
        try:
            self.carries_on()
            wait_until(self.cluster.in_sync, "all replicas are in sync again", 60)
            wait_until(lambda: self.cluster.tells_alike(self.topic), "all brokers know the leaders")
            self.writer.__exit__()
            self._readers_come_to_the_end()
        finally:
            self._clients.close()
        self._reckon()

    def carries_on(self, records: int = 100) -> None:
        """Return once each partition took that many more, and a group member and the reader read on."""
        wanted = {partition: count + records for partition, count in self.writer.latest.items()}

        def written() -> bool:
            assert not self.writer.errors, f"the producer was told {self.writer.errors[:3]}"
            return all(self.writer.latest[p] >= count for p, count in wanted.items())

        wait_until(
            written,
            f"{records} more records are acknowledged in each partition",
            60,
        )
        reached = sum(self.reader.positions.values())
        wait_until(lambda: sum(self.reader.positions.values()) > reached, "the reader reads on", 60)
        read = self._read_by_group()
        wait_until(lambda: self._read_by_group() > read, "the group reads on", 60)

    def _read_by_group(self) -> int:
        return sum(len(self.history.reads[name]) for name in self.members)

    def _readers_come_to_the_end(self) -> None:
        end = ends(self.cluster.bootstrap, self.topic, PARTITIONS)
        wait_until(lambda: self.reader.positions == end, "the reader comes to the end", 60)
        wait_until(lambda: self.history.committed == end, "the group comes to the end", 60)

    def _reckon(self) -> None:
        log = whole_log(self.cluster.bootstrap, self.topic, PARTITIONS)
        stand = positions(self.cluster.bootstrap, f"{self.topic} group", self.topic, PARTITIONS)
        found = violations(self.history, log) + group_violations(self.history, self.members, log, stand)
        assert not found, f"{len(found)} promises broken:\n" + "\n".join(found[:20])
        forgotten = [text for member in self.group for text in member.forgotten]
        assert not forgotten, f"positions were forgotten: {forgotten}"
        assert not self.writer.errors, f"the producer was told {self.writer.errors[:3]}"
        assert not self.reader.errors, f"the reader was told {self.reader.errors[:3]}"
        assert_replicas_identical(self.cluster)


def stored(server: Server, topic: str, partition: int) -> bytes:
    """The log of one replica as it lies on disk; segments may begin elsewhere in each."""
    directory: Path = server.log_dir / f"{topic}-{partition}"
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def assert_replicas_identical(cluster: Cluster) -> None:
    """Every replica of every partition, those of internal topics too, ends with the same bytes."""

    def different() -> list[str]:
        return [
            f"{topic}-{partition}: " + ", ".join(f"{n} has {len(copy)} bytes" for n, copy in copies.items())
            for (topic, partition), replicas in cluster.replicas().items()
            for copies in [{n: stored(cluster.brokers[n], topic, partition) for n in replicas}]
            if len(set(copies.values())) > 1
        ]

    # A follower may have a last batch still to fetch: what an idle group commits goes on trickling in.
    try:
        wait_until(lambda: not different(), "the replicas are identical", 20)
    except AssertionError:
        raise AssertionError("replicas differ:\n" + "\n".join(different())) from None
