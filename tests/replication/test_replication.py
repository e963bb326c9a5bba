"""A leader and its followers over real sockets: what is acknowledged is everywhere, whoever leads."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.handlers import fetch
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tests.log.samples import append, batch, offsets
from tests.replication.mini_cluster import eventually, mini_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from tests.replication.mini_cluster import MiniCluster


async def test_what_is_acknowledged_by_all_is_on_every_replica_byte_for_byte(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        for n in range(20):
            answer = await cluster.leader.produce(batch(3, size=10 + n))
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 3 * n)
            assert all(node.end >= 3 * (n + 1) for node in cluster.nodes.values())
        assert cluster.leader.high_watermark == 60
        for node in cluster.others():
            assert node.batches == cluster.leader.batches
            await eventually(lambda node=node: node.high_watermark == 60, "followers learn what is committed")


async def test_many_megabytes_catch_up_in_whole_slices(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path, brokers=2) as cluster:
        follower = cluster.nodes[2]
        cluster.cut_off(follower)
        for _ in range(60):
            append(cluster.leader.partition.log, batch(1, size=200_000), leader_epoch=1)
        cluster.come_back(follower)
        await eventually(lambda: follower.end == 60)
        assert follower.batches == cluster.leader.batches


async def test_consumers_see_only_what_is_committed(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        await cluster.leader.produce(batch(2))
        for node in cluster.others():
            cluster.cut_off(node)
        assert (await cluster.leader.produce(batch(3), acks=1)).error_code == ErrorCode.NONE
        seen = await cluster.leader.consume()
        assert seen.high_watermark == 2
        assert offsets(bytes(seen.records)) == [0, 1]
        assert not len((await cluster.leader.consume(2)).records)
        for node in cluster.others():
            cluster.come_back(node)
        await eventually(lambda: cluster.leader.high_watermark == 5)
        assert offsets(bytes((await cluster.leader.consume(2)).records)) == [2, 3, 4]


async def test_a_waiting_consumer_is_woken_by_the_commit(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        reader = cluster.leader.connect(1)
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic_id=cluster.topic_id, partitions=[wanted])
        waiting = asyncio.create_task(
            reader.call(FetchRequest(max_wait_ms=5000, min_bytes=1, topics=[topic]), newest=17)
        )
        await reader.version(1)
        await cluster.leader.produce(batch(2))
        found = (await waiting).responses[0].partitions[0]
        assert (found.high_watermark, offsets(bytes(found.records))) == (2, [0, 1])
        reader.close()


def without_session(cluster: MiniCluster, wait_ms: int) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="topic", topic_id=cluster.topic_id, partitions=[wanted])
    return FetchRequest(replica_id=-1, session_epoch=-1, max_wait_ms=wait_ms, min_bytes=1, topics=[topic])


@pytest.mark.parametrize("version", [3, 11, 17])
async def test_who_waits_without_a_session_and_hangs_up_leaves_nothing_behind(
    tmp_path: Path, version: int
) -> None:
    async with mini_cluster(tmp_path, brokers=1) as cluster:
        partition = cluster.leader.partition
        reader = cluster.leader.connect(1)
        waiting = asyncio.create_task(reader.call(without_session(cluster, 60_000), newest=version))
        await eventually(lambda: len(partition._waiters) == 1)
        reader.close()
        await eventually(lambda: not partition._waiters)
        with pytest.raises(OSError, match="clos"):
            await waiting


async def test_who_hangs_up_while_the_disk_reads_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, read = threading.Event(), threading.Event()

    def slow(*_: object) -> bytes:
        reading.set()
        read.wait(10)
        return b""

    monkeypatch.setattr(fetch, "downgrade", slow)
    async with mini_cluster(tmp_path, brokers=1) as cluster:
        partition = cluster.leader.partition
        reader = cluster.leader.connect(1)
        waiting = asyncio.create_task(reader.call(without_session(cluster, 60_000), newest=3))
        await eventually(lambda: len(partition._waiters) == 1)
        await cluster.leader.produce(batch())
        await eventually(reading.is_set)
        reader.close()
        await eventually(lambda: not partition._waiters)
        read.set()
        with pytest.raises(OSError, match="clos"):
            await waiting


@pytest.mark.parametrize("wait_ms", [0, 20])
async def test_a_fetch_without_a_session_leaves_nothing_behind_when_it_is_answered(
    tmp_path: Path, wait_ms: int
) -> None:
    async with mini_cluster(tmp_path, brokers=1) as cluster:
        await cluster.leader.client.call(without_session(cluster, wait_ms), newest=17)
        assert not cluster.leader.partition._waiters


async def test_without_its_followers_an_acknowledgement_by_all_runs_out_of_time(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        cluster.cut_off(cluster.nodes[3])
        answer = await cluster.leader.produce(batch(), timeout_ms=60)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        cluster.come_back(cluster.nodes[3])
        await eventually(lambda: cluster.leader.high_watermark == 1)


async def test_who_lags_leaves_the_isr_and_comes_back_when_it_has_caught_up(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path, lag_ms=150) as cluster:
        await cluster.leader.produce(batch())
        lame = cluster.nodes[3]
        cluster.cut_off(lame)
        cluster.alive.add(3)
        waiting = asyncio.create_task(cluster.leader.produce(batch()))
        while not waiting.done():
            cluster.leader.partition.check_isr()
            await asyncio.sleep(0.01)
        assert waiting.result().error_code == ErrorCode.NONE
        assert cluster.isr == (1, 2)
        cluster.come_back(lame)
        await eventually(lambda: cluster.isr == (1, 2, 3))
        assert lame.batches == cluster.leader.batches


async def test_a_write_does_not_wait_for_a_replica_that_left_the_isr_and_goes(tmp_path: Path) -> None:
    """As in a clean stop: it left the ISR, fetches nothing any more, and is alive until it is gone."""
    async with mini_cluster(tmp_path) as cluster:
        await cluster.leader.produce(batch())
        cluster.cut_off(cluster.nodes[3])
        cluster.alive.add(3)
        cluster.shrink((1, 2))
        waiting = asyncio.create_task(cluster.leader.produce(batch(), timeout_ms=60_000))
        await eventually(lambda: cluster.nodes[2].end == 2)
        assert cluster.leader.high_watermark == 1
        cluster.alive.discard(3)
        cluster.leader.partition.replicas_went()
        await eventually(lambda: cluster.leader.high_watermark == 2)
        assert (await waiting).error_code == ErrorCode.NONE


async def test_a_follower_the_controller_does_not_want_yet_is_proposed_again(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path, wait_max_ms=10) as cluster:
        cluster.refuse = ErrorCode.INELIGIBLE_REPLICA
        cluster.elect(1, isr=(1, 2))
        await eventually(lambda: len(cluster.proposals) >= 2)
        cluster.refuse = None
        await eventually(lambda: cluster.isr == (1, 2, 3))


async def test_quiet_followers_stay_in_sync_and_cost_no_proposals(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path, lag_ms=100, wait_max_ms=10) as cluster:
        await cluster.leader.produce(batch())
        await asyncio.sleep(0.25)
        append_at = cluster.leader.partition
        cluster.proposals.clear()
        append_at.append(bytearray(batch()), acks=1)
        append_at.check_isr()  # before any follower had a chance
        assert not cluster.proposals
        await eventually(lambda: cluster.leader.high_watermark == 2)


async def test_too_few_in_sync_refuses_before_the_append(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path, config={"min_insync_replicas": 3}) as cluster:
        cluster.cut_off(cluster.nodes[3])
        cluster.elect(1, isr=(1, 2), tell={1, 2})
        refused = await cluster.leader.produce(batch())
        assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert cluster.leader.end == 0
        assert (await cluster.leader.produce(batch(), acks=1)).error_code == ErrorCode.NONE
        await eventually(lambda: cluster.nodes[2].end == 1)
        assert cluster.leader.high_watermark == 0


async def test_whoever_waits_is_told_when_the_leader_steps_down(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        cluster.cut_off(cluster.nodes[3])
        old = cluster.leader
        waiting = asyncio.create_task(old.produce(batch()))
        await eventually(lambda: old.end == 1)
        cluster.elect(2, isr=(1, 2))
        assert (await waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await old.produce(batch())).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_leader_that_comes_back_gives_up_what_was_never_committed(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        old = cluster.leader
        await old.produce(batch(5))
        cluster.cut_off(old)
        for node in cluster.others():
            cluster.cut_off(node)
        await old.produce(batch(7, size=33), acks=1)  # nobody else has it
        cluster.alive = {2, 3}
        cluster.elect(2, isr=(2, 3))
        for number in (2, 3):
            cluster.come_back(cluster.nodes[number])
        assert (await cluster.leader.produce(batch(2))).base_offset == 5
        cluster.come_back(old)
        await eventually(lambda: old.batches == cluster.leader.batches)
        assert old.end == 7
        assert (await cluster.leader.produce(batch())).error_code == ErrorCode.NONE


async def test_after_a_cut_the_follower_is_told_what_is_committed_even_if_nothing_else_is_new(
    tmp_path: Path,
) -> None:
    async with mini_cluster(tmp_path, brokers=2) as cluster:
        old, new = cluster.nodes[1], cluster.nodes[2]
        await old.produce(batch(5))
        await eventually(lambda: new.high_watermark == 5)
        cluster.cut_off(new)
        await old.produce(batch(2), acks=1)
        cluster.cut_off(old)
        cluster.alive = {1, 2}
        cluster.elect(2, isr=(2,), tell={2})
        old.partition.rest()
        old.partition._high_watermark = 0  # as after a start from an old checkpoint
        cluster.tell(old)
        await eventually(lambda: old.end == 5 and old.high_watermark == 5)


async def test_a_zombie_leader_commits_nothing(tmp_path: Path) -> None:
    """It still thinks that it leads, but nobody in the ISR fetches from it under its epoch."""
    async with mini_cluster(tmp_path) as cluster:
        zombie = cluster.leader
        await zombie.produce(batch())
        cluster.alive.discard(zombie.id)
        cluster.elect(2, isr=(2, 3))
        answer = await zombie.produce(batch(), timeout_ms=80)
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert zombie.high_watermark == 1
        assert (await cluster.leader.produce(batch(2))).base_offset == 1
        cluster.come_back(zombie)
        await eventually(lambda: zombie.batches == cluster.leader.batches)


async def test_a_shorter_leader_elected_uncleanly_is_followed(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        behind = cluster.nodes[3]
        cluster.cut_off(behind)
        cluster.elect(1, isr=(1, 2))
        await cluster.leader.produce(batch(10))
        cluster.alive.add(3)
        cluster.elect(3, isr=(3,))
        assert cluster.leader.end == 0
        await cluster.leader.produce(batch(2), acks=1)
        await eventually(lambda: all(node.batches == behind.batches for node in cluster.nodes.values()))
        await eventually(lambda: set(cluster.isr) == {1, 2, 3})


@pytest.mark.parametrize("start", [4, 5], ids=["between batches", "inside of a batch"])
async def test_a_follower_begins_anew_where_the_leader_has_let_go_of_what_it_lacks(
    tmp_path: Path, start: int
) -> None:
    async with mini_cluster(tmp_path, brokers=2) as cluster:
        follower = cluster.nodes[2]
        cluster.cut_off(follower)
        cluster.elect(1, isr=(1,))
        for _ in range(5):
            await cluster.leader.produce(batch(2))
        cluster.leader.partition.delete_records(start)
        cluster.come_back(follower)
        await eventually(lambda: follower.end == 10)
        assert follower.partition.log.log_start_offset == start
        assert follower.batches[-3:] == cluster.leader.batches[-3:]
        await eventually(lambda: cluster.isr == (1, 2))
        cluster.leader.partition.delete_records(8)
        await eventually(lambda: follower.partition.log.log_start_offset == 8)
        state = cluster.leader.partition.replica_state
        assert state is not None
        await eventually(
            lambda: state.low_watermark(8) == 8, "the leader learns that the follower let go too"
        )


async def test_records_are_deleted_when_every_replica_has_let_go_of_them(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        await cluster.leader.produce(batch(4))
        await cluster.leader.produce(batch(4))
        for before, told in ((4, 4), (2, 4), (-1, 8)):
            answer = await cluster.leader.delete_records(before)
            assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, told)
            assert {n.partition.log.log_start_offset for n in cluster.nodes.values()} == {told}


async def test_a_dead_replica_is_not_waited_for_when_records_are_deleted(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        await cluster.leader.produce(batch(4))
        cluster.cut_off(cluster.nodes[3])
        answer = await cluster.leader.delete_records(4)
        assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 4)


async def test_a_replica_that_lives_and_does_not_fetch_is_waited_for_in_vain(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        await cluster.leader.produce(batch(4))
        silent = cluster.nodes[3]
        silent.fetchers.unfollow(silent.partition)
        answer = await cluster.leader.delete_records(4, timeout_ms=100)
        assert (answer.error_code, answer.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)


async def test_who_stops_leading_cannot_say_whether_records_are_deleted(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        await cluster.leader.produce(batch(4))
        old, silent = cluster.leader, cluster.nodes[3]
        silent.fetchers.unfollow(silent.partition)
        asked = asyncio.create_task(old.delete_records(4))
        await eventually(lambda: old.partition.log.log_start_offset == 4)
        cluster.elect(2)
        answer = await asked
        assert (answer.error_code, answer.low_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_a_leader_that_forgot_its_sessions_is_told_everything_anew(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        await cluster.leader.produce(batch())
        for session in list(cluster.leader.fetch_sessions._sessions):
            cluster.leader.fetch_sessions.close(session)
        for _ in range(3):
            assert (await cluster.leader.produce(batch())).error_code == ErrorCode.NONE


async def test_consumers_read_what_is_committed_from_a_follower(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        follower = cluster.nodes[2]
        await cluster.leader.produce(batch(4))
        await eventually(lambda: follower.high_watermark == 4)
        seen = await follower.consume()
        assert (seen.error_code, offsets(bytes(seen.records))) == (ErrorCode.NONE, [0, 1, 2, 3])
        assert (await follower.consume(version=10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await follower.consume(epoch=0)).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (await follower.consume(epoch=9)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert (await follower.consume(5)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_consumer_is_sent_to_the_replica_in_its_rack(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        cluster.racks.update({1: "a", 2: "b", 3: "c"})
        await cluster.leader.produce(batch(4))
        sent = await cluster.leader.consume(rack="c")
        assert (sent.preferred_read_replica, len(sent.records)) == (3, 0)
        for rack in ("a", "nowhere", ""):
            stays = await cluster.leader.consume(rack=rack)
            assert stays.preferred_read_replica == -1
            assert len(stays.records)


async def test_a_stranger_cannot_fetch_as_a_replica(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path) as cluster:
        for epoch, code in ((1, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
            wanted = FetchPartition(partition=0, current_leader_epoch=epoch, partition_max_bytes=100)
            topic = FetchTopic(topic_id=cluster.topic_id, partitions=[wanted])
            request = FetchRequest(
                replica_state=ReplicaState(replica_id=9), max_wait_ms=0, min_bytes=1, topics=[topic]
            )
            answer = await cluster.leader.client.call(request, newest=17)
            assert answer.responses[0].partitions[0].error_code == code


async def test_a_flush_ends_even_if_the_log_is_cut_below_it(tmp_path: Path) -> None:
    async with mini_cluster(tmp_path, brokers=1) as cluster:
        partition = cluster.leader.partition
        append(partition.log, batch(10), batch(10), leader_epoch=1)
        flushing = asyncio.create_task(partition.flushed())
        await asyncio.sleep(0)
        partition.log.truncate_to(10)
        async with asyncio.timeout(5):
            await flushing
