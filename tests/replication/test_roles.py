"""What the controller says becomes what replicas do, on real logs; fetchers only take notes."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from pykafka_broker.clock import SystemClock
from pykafka_broker.cluster.view import ClusterView, PartitionInfo, TopicInfo
from pykafka_broker.config import BrokerConfig
from pykafka_broker.log.checkpoints import read_offsets
from pykafka_broker.log.log_dir import LogDir
from pykafka_broker.log.partition_log import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from pykafka_broker.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from pykafka_broker.replication.partition import ReplicationContext
from pykafka_broker.replication.partitions import Partitions
from pykafka_broker.replication.roles import Roles
from tests.log.samples import batch

ID = UUID(int=7)


class Fetchers:
    """Who is followed now."""

    def __init__(self):
        self.followed = {}

    def follows(self, partition):
        return partition.index in self.followed

    def follow(self, partition):
        self.followed[partition.index] = partition.leader_id

    def unfollow(self, partition):
        self.followed.pop(partition.index, None)

    def end_idle(self): ...


class OneBroker:
    """Broker 1, as far as roles need it."""

    def __init__(self, path):
        clock = SystemClock()
        context = ReplicationContext(1, clock, 30_000, lambda broker: True, lambda *_: None, self.lost)
        self.partitions = Partitions(1, BrokerConfig.load({}), clock, [LogDir.open(path)], context)
        self.partitions.open(ClusterView("c"))
        self.fetchers = Fetchers()
        self.changes = self.losses = 0
        self.refusal = None
        self.roles = Roles(1, self.partitions, self.fetchers, self.heed, self.configs_of, self.changed)

    def heed(self, controller_epoch, broker_epoch):
        if self.refusal is not None:
            raise KafkaError(self.refusal)

    def lost(self):
        self.losses += 1

    async def configs_of(self, topics):
        return [{"retention.ms": "5"} for _ in topics]

    def changed(self):
        self.changes += 1

    async def told(self, leader, epoch=0, *, index=0, topic_id=ID, replicas=(1, 2), partition_epoch=None):
        state = LeaderAndIsrPartitionState(
            partition_index=index,
            leader=leader,
            leader_epoch=epoch,
            isr=list(replicas),
            replicas=list(replicas),
            partition_epoch=epoch if partition_epoch is None else partition_epoch,
        )
        topic = LeaderAndIsrTopicState(topic_name="t", topic_id=topic_id, partition_states=[state])
        answers = await self.roles.take(LeaderAndIsrRequest(topic_states=[topic]))
        return answers[topic_id, index]

    async def stopped(self, epoch, *, delete, index=0):
        state = StopReplicaPartitionState(partition_index=index, leader_epoch=epoch, delete_partition=delete)
        topic = StopReplicaTopicState(topic_name="t", partition_states=[state])
        return (await self.roles.stop(StopReplicaRequest(topic_states=[topic])))["t", index]

    @property
    def replica(self):
        return self.partitions.hosted("t", 0)


@pytest.fixture
async def broker(tmp_path):
    one = OneBroker(tmp_path / "logs")
    yield one
    await one.partitions.close()


async def test_a_replica_is_made_with_the_settings_of_its_topic(broker):
    assert await broker.told(leader=1) is ErrorCode.NONE
    assert broker.replica.is_leader
    assert broker.replica.log.config.retention_ms == 5
    assert broker.partitions.leader_by_id(ID, 0) is broker.replica
    assert broker.changes == 1


def shown(config, partitions=1):
    """What a broker is told of the topic in UpdateMetadata, and what it has read of its settings."""
    placed = (PartitionInfo(1, 0, (1, 2), (1, 2), 0),) * partitions
    return ClusterView("c").with_topics([TopicInfo("t", ID, placed, config)])


async def test_settings_that_changed_before_the_topic_was_shown_reach_its_log(broker):
    await broker.told(leader=1)
    await broker.partitions.apply(ClusterView("c"), shown({"min.insync.replicas": "2"}))
    assert broker.replica.log.config.min_insync_replicas == 2


async def test_settings_that_changed_before_a_new_partition_was_shown_reach_its_log(broker):
    old = shown({"retention.ms": "6"})
    await broker.partitions.apply(ClusterView("c"), old)
    await broker.told(leader=1, index=1)
    await broker.partitions.apply(old, shown({"retention.ms": "6"}, partitions=2))
    assert broker.partitions.hosted("t", 1).log.config.retention_ms == 6


async def test_settings_that_changed_while_a_log_was_opened_reach_it(broker):
    await broker.partitions.apply(ClusterView("c"), shown({"retention.ms": "6"}))
    await broker.told(leader=1)
    assert broker.replica.log.config.retention_ms == 6


async def test_settings_of_another_topic_of_that_name_do_not_reach_a_log(broker):
    await broker.told(leader=1, topic_id=UUID(int=8))
    await broker.partitions.apply(ClusterView("c"), shown({"retention.ms": "6"}))
    assert broker.replica.log.config.retention_ms == 5


async def test_logs_whose_settings_stay_are_left_alone(broker, monkeypatch):
    await broker.told(leader=1)
    monkeypatch.delattr(PartitionLog, "update_config")
    await broker.partitions.apply(ClusterView("c"), shown({"retention.ms": "5"}))


async def test_leaders_change_and_following_goes_with_them(broker):
    await broker.told(leader=2)
    assert broker.fetchers.followed == {0: 2}
    await broker.told(leader=1, epoch=1)
    assert broker.fetchers.followed == {}
    assert broker.replica.is_leader
    await broker.told(leader=3, epoch=2)
    assert broker.fetchers.followed == {0: 3}
    assert not broker.replica.is_leader


async def test_a_partition_without_a_leader_follows_nobody(broker):
    await broker.told(leader=2)
    assert await broker.told(leader=-1, epoch=1) is ErrorCode.NONE
    assert broker.fetchers.followed == {}


async def test_old_word_changes_nothing(broker):
    await broker.told(leader=1, epoch=5)
    assert await broker.told(leader=2, epoch=4) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert broker.replica.is_leader


async def test_a_controller_of_old_is_refused_as_a_whole(broker):
    broker.refusal = ErrorCode.STALE_CONTROLLER_EPOCH
    with pytest.raises(KafkaError):
        await broker.told(leader=1)
    assert broker.replica is None


async def test_a_replica_of_others_is_not_ours(broker):
    assert await broker.told(leader=2, replicas=(2, 3)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.replica is None


async def test_another_topic_of_that_name_is_refused_until_the_first_is_deleted(broker):
    await broker.told(leader=1)
    assert await broker.told(leader=1, epoch=1, topic_id=UUID(int=8)) is ErrorCode.INCONSISTENT_TOPIC_ID
    assert await broker.stopped(-2, delete=True) is ErrorCode.NONE
    assert await broker.told(leader=1, topic_id=UUID(int=8)) is ErrorCode.NONE
    assert broker.replica.topic_id == UUID(int=8)


async def test_a_log_that_cannot_be_opened_is_a_storage_error(broker, tmp_path):
    (tmp_path / "logs" / "t-0").write_text("in the way")
    assert await broker.told(leader=1) is ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_replica_whose_disk_failed_leads_nothing_and_the_controller_hears_of_it(broker, monkeypatch):
    await broker.told(leader=1)

    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.pwrite", fail)
    with pytest.raises(KafkaError):
        broker.replica.append(bytearray(batch()))
    await broker.partitions._report_lost_logs()
    await broker.partitions._report_lost_logs()
    assert not broker.replica.is_leader
    assert broker.losses == 1
    assert await broker.told(leader=1, epoch=1) is ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_stopped_replica_rests_and_takes_its_role_again_when_told(broker):
    await broker.told(leader=2, epoch=3)
    assert await broker.stopped(2, delete=False) is ErrorCode.FENCED_LEADER_EPOCH
    assert await broker.stopped(3, delete=False) is ErrorCode.NONE
    assert broker.fetchers.followed == {}
    assert not broker.replica.is_serving
    await broker.told(leader=2, epoch=3)
    assert broker.fetchers.followed == {0: 2}


async def test_what_was_never_here_is_stopped_all_the_same(broker):
    assert await broker.stopped(-1, delete=True) is ErrorCode.NONE


async def test_many_replicas_are_made_while_others_are_served(broker):
    states = [
        LeaderAndIsrPartitionState(partition_index=n, leader=1, replicas=[1], isr=[1]) for n in range(200)
    ]
    topic = LeaderAndIsrTopicState(topic_name="t", topic_id=ID, partition_states=states)
    taking = asyncio.ensure_future(broker.roles.take(LeaderAndIsrRequest(topic_states=[topic])))
    turns = 0
    while not taking.done():
        await asyncio.sleep(0)
        turns += 1
    assert set((await taking).values()) == {ErrorCode.NONE}
    assert turns > 10


async def test_a_deletion_is_answered_when_no_checkpoint_speaks_of_it_any_more(broker, tmp_path):
    await broker.told(leader=1)
    await broker.told(leader=1, index=1)
    broker.replica.append(bytearray(batch(3)), acks=1)
    await broker.partitions._checkpoint()
    assert await broker.stopped(-2, delete=True) is ErrorCode.NONE
    for name in ("recovery-point", "replication"):
        assert list(read_offsets(tmp_path / "logs" / f"{name}-offset-checkpoint")) == [("t", 1)]
