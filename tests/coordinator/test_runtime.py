"""A shard at work over a log that commits when the test says so."""

from __future__ import annotations

import asyncio

from pykafka_broker.clock import SystemClock
from pykafka_broker.coordinator.runtime import ShardRuntime
from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.coordinator.shard import GroupShard
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.coordinator.harness import KnownTopics


class SlowLog:
    """Takes everything, and has committed nothing until `commit`."""

    def __init__(self):
        self.batches = []
        self.waiting = []

    def append(self, batch):
        self.batches.append(batch)
        return len(self.batches)

    def when_committed(self, offset, call):
        self.waiting.append(call)

    async def committed(self):
        for batch in ():
            yield batch

    def commit(self):
        for call in self.waiting:
            call()


async def begin(log):
    runtime = ShardRuntime(GroupShard(GroupSettings(), KnownTopics()), log, SystemClock())
    await runtime._loading
    return runtime, commit_to(runtime)


def commit_to(runtime):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=[topic]
    )
    reply = runtime.handle(request, 8, "client", "/127.0.0.1")
    return asyncio.ensure_future(reply) if asyncio.iscoroutine(reply) else reply


def codes(response):
    return [p.error_code for topic in response.topics for p in topic.partitions]


async def test_a_commit_is_answered_when_the_log_has_committed_it():
    log = SlowLog()
    runtime, reply = await begin(log)
    await asyncio.sleep(0)
    assert not reply.done()
    log.commit()
    assert codes(await reply) == [ErrorCode.NONE]
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_who_waits_for_a_commit_is_sent_on_when_another_broker_takes_over():
    log = SlowLog()
    runtime, reply = await begin(log)
    await asyncio.sleep(0)
    await asyncio.gather(runtime.stop(), return_exceptions=True)
    assert codes(await reply) == [ErrorCode.NOT_COORDINATOR]
    log.commit()  # whom it would have answered is not there any more


async def test_a_refusal_does_not_wait_for_what_was_written_before():
    """While too few replicas are in sync nothing is committed, and clients shall hear that, and why."""
    log = SlowLog()
    runtime, before = await begin(log)

    def refuse(_):
        raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    log.append = refuse
    assert codes(commit_to(runtime)) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert not before.done()
    log.commit()
    assert codes(await before) == [ErrorCode.NONE]
