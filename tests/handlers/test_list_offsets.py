"""Offsets by time and of the ends: who is shown what of a log whose end is not committed yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.log.samples import NOW, append, batch
from tests.replication.mini_cluster import TOPIC, eventually, mini_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from tests.replication.mini_cluster import MiniCluster, Node

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
CONSUMER, DEBUGGER, FOLLOWER = -1, -2, 3
NOTHING = (ErrorCode.NONE, -1, -1)
NOT_YET = (ErrorCode.OFFSET_NOT_AVAILABLE, -1, -1)
NOT_YET_OF_OLD = (ErrorCode.LEADER_NOT_AVAILABLE, -1, -1)


async def ask(
    node: Node, timestamp: int, *, who: int = CONSUMER, committed: bool = False, version: int = 7
) -> tuple[int, int, int]:
    """Error code, offset, timestamp."""
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=who,
        isolation_level=int(committed),
        topics=[ListOffsetsTopic(name=TOPIC, partitions=[wanted])],
    )
    [told] = (await node.client.call(request, newest=version)).topics[0].partitions
    return told.error_code, told.offset, told.timestamp


async def begin(cluster: MiniCluster) -> Node:
    """Offsets 0 and 1 are committed, 2 and 3 are not, and later."""
    leader = cluster.leader
    await leader.produce(batch(2, timestamp=NOW + 10))
    for node in cluster.others():
        cluster.cut_off(node)
    await leader.produce(batch(2, timestamp=NOW + 50), acks=1)
    return leader


@pytest.mark.parametrize(
    ("timestamp", "told"),
    [
        (NOW, (ErrorCode.NONE, 0, NOW + 10)),
        (NOW + 11, NOTHING),
        (NOW + 51, NOTHING),
        (MAX_TIMESTAMP, NOTHING),
        (LATEST, (ErrorCode.NONE, 2, -1)),
        (EARLIEST, (ErrorCode.NONE, 0, -1)),
    ],
)
async def test_a_consumer_is_shown_nothing_that_is_not_committed(
    tmp_path: Path, timestamp: int, told: tuple[int, int, int]
) -> None:
    async with mini_cluster(tmp_path) as cluster:
        assert await ask(await begin(cluster), timestamp) == told


@pytest.mark.parametrize("who", [FOLLOWER, DEBUGGER])
async def test_replicas_and_debuggers_are_shown_all_there_is(tmp_path: Path, who: int) -> None:
    async with mini_cluster(tmp_path) as cluster:
        leader = await begin(cluster)
        assert await ask(leader, NOW + 11, who=who) == (ErrorCode.NONE, 2, NOW + 50)
        assert await ask(leader, MAX_TIMESTAMP, who=who) == (ErrorCode.NONE, 2, NOW + 50)
        assert await ask(leader, LATEST, who=who) == (ErrorCode.NONE, 4, -1)


async def test_the_largest_timestamp_is_found_when_it_is_committed(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        leader = await begin(cluster)
        for node in cluster.others():
            cluster.come_back(node)
        await eventually(lambda: leader.high_watermark == 4)
        assert await ask(leader, MAX_TIMESTAMP) == (ErrorCode.NONE, 2, NOW + 50)


async def test_who_reads_what_is_committed_is_not_shown_open_transactions(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path, brokers=1) as cluster:
        leader = cluster.leader
        await leader.produce(batch(2, timestamp=NOW + 10))
        append(leader.partition.log, batch(timestamp=NOW + 50, producer=(9, 0, 0), transactional=True))
        for timestamp in (NOW + 11, MAX_TIMESTAMP):
            assert await ask(leader, timestamp) == (ErrorCode.NONE, 2, NOW + 50)
            assert await ask(leader, timestamp, committed=True) == NOTHING
        assert await ask(leader, LATEST, committed=True) == (ErrorCode.NONE, 2, -1)


async def test_a_new_leader_says_nothing_of_what_it_does_not_know_to_be_committed(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        new = cluster.nodes[2]
        await cluster.leader.produce(batch(2, timestamp=NOW + 10))
        await cluster.leader.produce(batch(2, timestamp=NOW + 50))
        for node in cluster.nodes.values():
            cluster.cut_off(node)
        new.partition._high_watermark = 2  # it has not heard of more
        cluster.alive = {1, 2, 3}
        cluster.elect(2, tell={2})
        for timestamp in (NOW + 11, MAX_TIMESTAMP, LATEST):
            assert await ask(new, timestamp) == NOT_YET
            assert await ask(new, timestamp, committed=True) == NOT_YET
        for timestamp in (NOW + 11, LATEST):
            assert await ask(new, timestamp, version=4) == NOT_YET_OF_OLD
        assert await ask(new, NOW) == (ErrorCode.NONE, 0, NOW + 10)
        assert await ask(new, NOW + 51) == NOTHING
        assert await ask(new, EARLIEST) == (ErrorCode.NONE, 0, -1)
        assert await ask(new, NOW + 11, who=FOLLOWER) == (ErrorCode.NONE, 2, NOW + 50)
        for number in (1, 3):
            cluster.come_back(cluster.nodes[number])
        await eventually(lambda: new.high_watermark == 4)
        assert await ask(new, MAX_TIMESTAMP) == (ErrorCode.NONE, 2, NOW + 50)
