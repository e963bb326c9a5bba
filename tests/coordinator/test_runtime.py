"""A shard at work over a log that commits when the test says so."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.clock import SystemClock
from pykafka_broker.coordinator.runtime import ShardRuntime
from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.coordinator.shard import GroupShard
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from pykafka_broker.protocol.records.batch import read_header
from pykafka_broker.turn import Soon
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

    commits_at_once = False

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


class QuickLog(SlowLog):
    """Commits what it takes, unless it refuses: everything, or batches of more records than one."""

    commits_at_once = True
    refuses = None
    takes = 1_000_000

    def append(self, batch):
        if self.refuses is not None:
            raise KafkaError(self.refuses)
        if read_header(batch).record_count > self.takes:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
        return super().append(batch)

    def when_committed(self, offset, call):
        call()

    @property
    def records(self):
        return [read_header(batch).record_count for batch in self.batches]


def commit(offset, *, group="g", generation=-1, metadata="", topics=("t",)):
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=metadata
    )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=name, partitions=[partition]) for name in topics],
    )


async def with_a_group(log):
    """A runtime whose group "g" is there already, for the first commit of all makes it at once."""
    runtime = ShardRuntime(GroupShard(GroupSettings(), KnownTopics()), log, SystemClock())
    await runtime._loading
    assert codes(ask(runtime, commit(1))) == [ErrorCode.NONE]
    log.batches.clear()
    return runtime


def ask(runtime, request):
    return runtime.handle(request, 8, "client", "/127.0.0.1")


def committed(runtime, group="g"):
    wanted = OffsetFetchRequestGroup(group_id=group, topics=None)
    answer = runtime.shard.fetch_offsets(wanted, 8)
    return {t.name: p.committed_offset for t in answer.topics for p in t.partitions}


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


async def test_who_waits_too_long_for_a_commit_may_ask_again():
    log = SlowLog()
    runtime = ShardRuntime(
        GroupShard(GroupSettings(), KnownTopics()), log, SystemClock(), commit_timeout_ms=20
    )
    await runtime._loading
    first, second = commit_to(runtime), commit_to(runtime)
    assert codes(await first) == codes(await second) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    third = commit_to(runtime)
    await asyncio.sleep(0)
    log.commit()  # all three: what was given up is committed all the same
    assert codes(await third) == [ErrorCode.NONE]
    assert committed(runtime) == {"t": 7}
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
    assert codes(await commit_to(runtime)) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert not before.done()
    log.commit()
    assert codes(await before) == [ErrorCode.NONE]


async def test_commits_of_one_turn_are_one_batch():
    log = QuickLog()
    runtime = await with_a_group(log)
    promises = [ask(runtime, commit(offset)) for offset in range(5)]
    assert all(type(promise) is Soon and promise.response is None for promise in promises)
    assert log.records == []
    await asyncio.sleep(0)
    assert [codes(promise.response) for promise in promises] == [[ErrorCode.NONE]] * 5
    assert log.records == [5]
    assert committed(runtime) == {"t": 4}
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_who_asks_in_the_same_turn_is_told_what_was_committed_before():
    log = QuickLog()
    runtime = await with_a_group(log)
    promise = ask(runtime, commit(7))
    assert committed(runtime) == {"t": 7}
    assert codes(promise.response) == [ErrorCode.NONE]
    ask(runtime, commit(8))
    assert ask(runtime, HeartbeatRequest(group_id="g")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert log.records == [1, 1]
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_commits_that_are_refused_say_so_and_change_nothing():
    log = QuickLog()
    runtime = await with_a_group(log)
    promises = [ask(runtime, commit(offset)) for offset in (7, 8)]
    log.refuses = ErrorCode.NOT_LEADER_OR_FOLLOWER
    await asyncio.sleep(0)
    assert [codes(promise.response) for promise in promises] == [[ErrorCode.NOT_COORDINATOR]] * 2
    assert committed(runtime) == {"t": 1}
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_one_commit_that_is_too_large_does_not_spoil_the_others():
    log = QuickLog()
    log.takes = 2
    runtime = await with_a_group(log)
    small, large, last = (
        ask(runtime, commit(offset, topics=topics))
        for offset, topics in ((7, ("t",)), (8, ("t", "u", "t")), (9, ("u",)))
    )
    await asyncio.sleep(0)
    assert codes(small.response) == codes(last.response) == [ErrorCode.NONE]
    assert codes(large.response) == [ErrorCode.UNKNOWN_SERVER_ERROR] * 3
    assert committed(runtime) == {"t": 7, "u": 9}
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_a_log_that_fails_as_nobody_could_foresee_is_told_of_as_an_error():
    log = QuickLog()
    runtime = await with_a_group(log)
    promise = ask(runtime, commit(7))
    log.append = None
    await asyncio.sleep(0)
    assert codes(promise.response) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_commits_that_nobody_could_foresee_to_fail_have_no_response():
    runtime = await with_a_group(QuickLog())
    promise = ask(runtime, commit(7))
    runtime._shard.replay_all = None
    await asyncio.sleep(0)
    assert promise.response is None
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_what_is_due_is_done_whatever_became_of_what_was_due_before():
    runtime = await with_a_group(QuickLog())
    done = asyncio.Event()

    def fail(now_ms, decision):
        raise ZeroDivisionError

    def succeed(now_ms, decision):
        runtime._shard._deadlines.set("later", now_ms + 5, lambda *_: done.set())

    now = runtime._clock.wall_ms()
    for number, action in enumerate((fail, succeed)):
        runtime._shard._deadlines.set(number, now + 5, action)
    runtime._arm()
    await asyncio.wait_for(done.wait(), 10)
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_a_deleted_topic_takes_its_offsets_along_however_many_they_are():
    log = QuickLog()
    runtime = await with_a_group(log)
    for number in range(100):
        ask(runtime, commit(number, group=f"g{number}"))
    ask(runtime, commit(7, topics=("u",)))
    await asyncio.sleep(0)
    log.takes = 7
    runtime.topics_changed(["t"])
    assert committed(runtime) == {"u": 7}
    assert [committed(runtime, f"g{number}") for number in range(100)] == [{}] * 100
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_an_offset_that_cannot_be_deleted_does_not_keep_others():
    log = QuickLog()
    runtime = await with_a_group(log)
    ask(runtime, commit(7, group="h"))
    log.takes = 0
    runtime.topics_changed(["t"])
    assert committed(runtime) == {"t": 1}, "refused, and no more"
    log.takes = 1
    runtime.topics_changed(["t"])
    assert committed(runtime) == committed(runtime, "h") == {}
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_offsets_are_shown_when_they_are_committed():
    log = SlowLog()
    runtime, reply = await begin(log)
    settling = asyncio.ensure_future(runtime.settling())
    await asyncio.sleep(0)
    assert not settling.done()
    log.commit()
    await settling
    await reply
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_who_asks_for_offsets_that_are_never_committed_may_ask_again():
    runtime = ShardRuntime(
        GroupShard(GroupSettings(), KnownTopics()), SlowLog(), SystemClock(), commit_timeout_ms=20
    )
    await runtime._loading
    with pytest.raises(KafkaError) as refused:
        await runtime.settling()
    assert refused.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    asked = asyncio.ensure_future(runtime.settling())
    await asyncio.sleep(0)
    await asyncio.gather(runtime.stop(), return_exceptions=True)
    with pytest.raises(KafkaError) as refused:
        await asked
    assert refused.value.code == ErrorCode.NOT_COORDINATOR


async def test_a_shard_that_cannot_be_loaded_is_coordinated_by_nobody_here():
    class TornLog(QuickLog):
        async def committed(self):
            yield b"not a batch" * 10
            raise ZeroDivisionError

    runtime = ShardRuntime(GroupShard(GroupSettings(), KnownTopics()), TornLog(), SystemClock())
    await runtime._loading
    with pytest.raises(KafkaError) as refused:
        ask(runtime, commit(7))
    assert refused.value.code == ErrorCode.NOT_COORDINATOR
    await asyncio.gather(runtime.stop(), return_exceptions=True)


class SetClock(SystemClock):
    """A clock on the wall that somebody sets."""

    set_by = 0

    def wall_ms(self):
        return super().wall_ms() + self.set_by


@pytest.mark.parametrize("set_by", [-600_000, 600_000])
async def test_a_clock_that_is_set_neither_hastens_nor_holds_up_what_is_to_come(set_by):
    clock, done = SetClock(), []
    runtime = ShardRuntime(GroupShard(GroupSettings(), KnownTopics()), QuickLog(), clock)
    await runtime._loading

    both = asyncio.Event()

    def note(now_ms, decision):
        done.append(clock.monotonic() - began)
        if len(done) == 2:
            both.set()

    began = clock.monotonic()
    runtime._shard._deadlines.set("soon", clock.wall_ms() + 200, note)
    runtime._shard._deadlines.set("later", clock.wall_ms() + 400, note)
    runtime._arm()
    clock.set_by = set_by
    ask(runtime, commit(7))
    await asyncio.wait_for(both.wait(), 10)
    assert done[0] >= 0.19
    assert done[1] >= 0.39
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_a_refused_request_is_answered_at_once():
    log = QuickLog()
    runtime = await with_a_group(log)
    assert codes(ask(runtime, commit(7, generation=3))) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert log.records == []
    await asyncio.gather(runtime.stop(), return_exceptions=True)


async def test_what_is_held_is_written_before_another_broker_takes_over():
    log = QuickLog()
    runtime = await with_a_group(log)
    promise = ask(runtime, commit(7))
    await asyncio.gather(runtime.stop(), return_exceptions=True)
    assert codes(promise.response) == [ErrorCode.NONE]
    assert log.records == [1]


async def test_commits_that_have_to_be_replicated_are_one_batch_too():
    log = SlowLog()
    runtime, first = await begin(log)
    log.commit()
    await first
    replies = [asyncio.ensure_future(ask(runtime, commit(offset))) for offset in range(5)]
    await asyncio.sleep(0)
    assert [read_header(batch).record_count for batch in log.batches] == [1, 5]
    assert not any(reply.done() for reply in replies)
    log.commit()
    assert [codes(await reply) for reply in replies] == [[ErrorCode.NONE]] * 5
    await asyncio.gather(runtime.stop(), return_exceptions=True)
