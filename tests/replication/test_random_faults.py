"""Leaders change, brokers are cut off and come back, word travels late: nothing acknowledged is lost or changed."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.network.peer import PeerError
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import build_batch, iter_headers
from pykafka_broker.protocol.records.record import Record, iter_records
from tests.replication.mini_cluster import MiniCluster, Node, eventually, mini_cluster

if TYPE_CHECKING:
    from pathlib import Path

FAULTS = 40


class History:
    """What clients were told: it must hold for ever. Owner: the test."""

    def __init__(self, cluster: MiniCluster, rng: random.Random) -> None:
        self.cluster = cluster
        self.rng = rng
        self.acknowledged: dict[int, bytes] = {}
        self.read: dict[int, bytes] = {}
        self.over = False

    def any_node(self) -> Node:
        """Clients mostly know the leader, but some believe in an old one."""
        if self.rng.random() < 0.8:
            return self.cluster.leader
        return self.rng.choice(list(self.cluster.nodes.values()))

    async def write(self, name: str) -> None:
        number = 0
        while not self.over:
            number += 1
            value = f"{name}-{number}".encode()
            try:
                answer = await self.any_node().produce(build_batch([Record(None, value, 1)]), timeout_ms=50)
            except PeerError:
                continue
            if answer.error_code == ErrorCode.NONE:
                assert answer.base_offset not in self.acknowledged, "two writes at one offset"
                self.acknowledged[answer.base_offset] = value
            else:
                await asyncio.sleep(0.002)

    async def look(self) -> None:
        offset = 0
        while not self.over:
            seen = await self.any_node().consume(offset)
            if seen.error_code == ErrorCode.NONE and seen.records is not None and len(seen.records):
                for found, value in contents(bytes(seen.records)).items():
                    assert self.read.setdefault(found, value) == value, f"offset {found} changed"
                    offset = found + 1
            await asyncio.sleep(0.001)
            if self.rng.random() < 0.05:
                offset = self.rng.randrange(offset + 1)


def contents(data: bytes) -> dict[int, bytes]:
    view = memoryview(data)
    return {
        record.offset: bytes(record.value or b"")
        for at, header in iter_headers(data)
        for record in iter_records(view[at : at + header.size])
    }


class Faults:
    """The controller's side of trouble: it elects only from the ISR, and takes the dead out of it."""

    def __init__(self, cluster: MiniCluster, rng: random.Random) -> None:
        self.cluster = cluster
        self.rng = rng

    def strike(self) -> None:
        cluster = self.cluster
        away = [node for node in cluster.nodes.values() if node.id not in cluster.alive]
        action = self.rng.choice(["elect", "cut", "return", "return"])
        if action == "return" and away:
            cluster.come_back(self.rng.choice(away))
        elif action == "cut" and len(cluster.alive) > 1:
            self.cut(cluster.nodes[self.rng.choice(sorted(cluster.alive))])
        elif action == "elect":
            self.elect(set(cluster.isr) & cluster.alive)

    def cut(self, node: Node) -> None:
        cluster = self.cluster
        isr = tuple(member for member in cluster.isr if member != node.id)
        if not set(isr) & cluster.alive:
            return  # nobody could take over
        cluster.cut_off(node)
        if node.id == cluster.leader_id:
            self.elect(set(isr), isr)
        elif isr != cluster.isr:
            cluster.shrink(isr)

    def elect(self, candidates: set[int], isr: tuple[int, ...] | None = None) -> None:
        """Some hear of it late."""
        cluster = self.cluster
        candidates &= cluster.alive
        if not candidates:
            return
        leader = self.rng.choice(sorted(candidates))
        late = {number for number in cluster.alive if number != leader and self.rng.random() < 0.4}
        cluster.elect(leader, isr=isr, tell=cluster.alive - late)
        loop = asyncio.get_running_loop()
        for number in late:
            loop.call_later(self.rng.random() * 0.05, self._tell_late, number)

    def _tell_late(self, number: int) -> None:
        if number in self.cluster.alive:
            self.cluster.tell(self.cluster.nodes[number])


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_nothing_acknowledged_is_lost_or_changed(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    async with mini_cluster(tmp_path, lag_ms=200, wait_max_ms=20) as cluster:
        history = History(cluster, rng)
        faults = Faults(cluster, rng)
        async with asyncio.timeout(60), asyncio.TaskGroup() as clients:
            for name in ("a", "b"):
                clients.create_task(history.write(name))
            clients.create_task(history.look())
            for _ in range(FAULTS):
                await asyncio.sleep(rng.uniform(0.005, 0.05))
                faults.strike()
                for node in cluster.nodes.values():
                    node.partition.check_isr()
            history.over = True
        for node in list(cluster.nodes.values()):
            if node.id not in cluster.alive:
                cluster.come_back(node)
        await asyncio.sleep(0.06)  # the last who hear late
        leader = cluster.leader
        await eventually(lambda: set(cluster.isr) == {1, 2, 3}, f"all in sync again (seed {seed})")
        await eventually(lambda: all(node.high_watermark == leader.end for node in cluster.nodes.values()))
        assert all(node.batches == leader.batches for node in cluster.nodes.values())
        kept = contents(b"".join(leader.batches))
        assert history.acknowledged, "the test wrote nothing"
        assert history.acknowledged.items() <= kept.items(), f"lost a write (seed {seed})"
        assert history.read.items() <= kept.items(), f"read what was not to stay (seed {seed})"
