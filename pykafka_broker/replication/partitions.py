"""All partitions of this broker: opened at the start, made and removed as the cluster's view changes, looked after by
a few background loops, closed at the end."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from pykafka_broker.config import in_force_for_logs, log_config
from pykafka_broker.log.log_dir import LogDirError, partition_directory
from pykafka_broker.log.partition_log import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.replication.checkpointing import Checkpoints, Position
from pykafka_broker.replication.compactor import CleanerCheckpoints, Compactor
from pykafka_broker.replication.partition import NO_EPOCH, Partition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
    from uuid import UUID

    from pykafka_broker.clock import Clock
    from pykafka_broker.cluster.view import ClusterView, TopicInfo
    from pykafka_broker.config import BrokerConfig
    from pykafka_broker.log.log_dir import LogDir
    from pykafka_broker.replication.partition import ReplicationContext

log = logging.getLogger(__name__)

TopicPartition = tuple[str, int]

_LOST_LOGS_CHECK_MS: Final = 1000


class Partitions:
    """Owner of every Partition of one broker, and through them of the logs in its log directories."""

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        clock: Clock,
        log_dirs: list[LogDir],
        context: ReplicationContext | None = None,
    ) -> None:
        """With a context this is one broker of a cluster: partitions rest until the controller gives them a role."""
        self._broker_id = broker_id
        self._context = context
        self._config = self._defaults = config
        self._changed_defaults: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        self._clock = clock
        self._dirs = log_dirs
        self._hosted: dict[TopicPartition, Partition] = {}
        self._dir_of: dict[TopicPartition, LogDir] = {}
        self._logs_in = [0] * len(log_dirs)
        self._names: dict[UUID, str] = {}
        self._known: ClusterView | None = None
        self._background: list[asyncio.Task[None]] = []
        self._dying: list[PartitionLog] = []
        self._compactor = Compactor(config, clock)
        self._cleaned = CleanerCheckpoints(log_dirs)
        self._checkpoints = Checkpoints(log_dirs, self._hosted.get)

    # -- looking up

    def leader(self, topic: str, index: int) -> Partition:
        partition = self._hosted.get((topic, index))
        if partition is None or not partition.is_leader:
            raise KafkaError(self._why_absent(topic, index))
        return partition

    def replica(self, topic: str, index: int) -> Partition:
        """The partition to read from, be it led here or not."""
        partition = self._hosted.get((topic, index))
        if partition is None or not partition.is_serving:
            raise KafkaError(self._why_absent(topic, index))
        return partition

    def replica_by_id(self, topic_id: UUID, index: int) -> Partition:
        name = self._names.get(topic_id)
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        return self.replica(name, index)

    def leader_by_id(self, topic_id: UUID, index: int) -> Partition:
        name = self._names.get(topic_id)
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        return self.leader(name, index)

    def _why_absent(self, topic: str, index: int) -> ErrorCode:
        if (topic, index) in self._hosted:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        known = self._known.partition(topic, index) if self._known is not None else None
        if known is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        led_here = known.leader == self._broker_id
        return ErrorCode.KAFKA_STORAGE_ERROR if led_here else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._hosted.values())

    def __len__(self) -> int:
        return len(self._hosted)

    def highest_producer_id(self) -> int:
        """The greatest id among the producers the logs remember, -1 if there are none."""
        return max((p.producer_id for partition in self for p in partition.log.producers), default=-1)

    # -- life

    def open(self, view: ClusterView) -> None:
        """Open what is on disk and make what is missing, several logs at a time: recovery is mostly checksums, which
        run outside the interpreter's lock."""
        self._follow_defaults(view)
        self._learn(view)
        known = {
            (topic.name, index): topic.topic_id
            for topic in view.topics.values()
            for index in range(len(topic.partitions))
        }
        for where in self._dirs:
            where.remove_deleted()
            where.set_strays_aside(known)
            where.forget_missing()
        on_disk = {tp: where for where in self._dirs for tp in where.partitions()}
        jobs = [
            (topic, index, info.leader_epoch if self._context is None else NO_EPOCH)
            for topic in view.topics.values()
            for index, info in enumerate(topic.partitions)
            if self._broker_id in info.replicas
        ]
        for topic, index, _ in jobs:
            self._place((topic.name, index), on_disk.get((topic.name, index)))
        with ThreadPoolExecutor(max_workers=4, thread_name_prefix="open-log") as pool:
            for (topic, index, epoch), opened in zip(
                jobs, pool.map(lambda job: self._try_open(job[0], job[1]), jobs), strict=True
            ):
                if opened is not None:
                    key = (topic.name, index)
                    if key in on_disk:
                        opened.first_dirty_offset = self._cleaned.read(on_disk[key]).get(key)
                    self._host(topic, index, epoch, opened)
        self._write_cleaner_offsets()  # of those that are there
        for where in self._dirs:
            where.mark_running()

    def _try_open(self, topic: TopicInfo, index: int) -> PartitionLog | None:
        try:
            return self._open_log(topic, index)
        except (OSError, KafkaError, LogDirError):
            log.exception("partition %s-%d stays offline: its log cannot be opened", topic.name, index)
            return None

    def _open_log(self, topic: TopicInfo, index: int) -> PartitionLog:
        where = self._dir_of[topic.name, index]
        key = (topic.name, index)
        directory = partition_directory(where.path, topic.name, index)
        if not directory.exists():  # no checkpoint can be its own; there is none, unless a disk failed
            self._checkpoints.forget([key])
        opened = PartitionLog.open(
            directory,
            log_config(self._defaults, topic.config),
            self._clock,
            recovery_point=where.recovery_points.get(key, 0),
            clean=where.clean,
            log_start_offset=where.log_start_offsets.get(key, 0),
            producer_expiry_ms=self._config.producer_id_expiration_ms,
        )
        where.write_topic_id(directory, topic.topic_id)
        return opened

    def _host(self, topic: TopicInfo, index: int, leader_epoch: int, opened: PartitionLog) -> None:
        key = (topic.name, index)
        committed = self._dir_of[key].high_watermarks.get(key, 0)
        self._hosted[key] = Partition(
            topic.name, index, topic.topic_id, opened, leader_epoch, self._context, committed
        )
        self._names.setdefault(topic.topic_id, topic.name)

    def _place(self, key: TopicPartition, where: LogDir | None = None) -> None:
        """Where it lies already, else where the fewest logs are."""
        number = self._dirs.index(where) if where is not None else self._logs_in.index(min(self._logs_in))
        self._dir_of[key] = self._dirs[number]
        self._logs_in[number] += 1

    async def apply(self, old: ClusterView, new: ClusterView) -> None:
        """Follow the view: topics that came, went, grew or changed their settings. In a cluster, which replicas there
        are to be is the controller's word (see `Roles`), and only settings follow the view."""
        if self._follow_defaults(new):
            for topic in new.topics.values():
                self._reconfigure(topic)
        missing: list[tuple[TopicInfo, int]] = []
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is topic:
                continue
            if before is not None and before.topic_id != topic.topic_id:
                before = None
            missing += [
                (topic, i) for i, info in enumerate(topic.partitions) if self._broker_id in info.replicas
            ]
            # In a cluster logs may be older than the news of their topic, or of its growth.
            grown = before is None or len(before.partitions) < len(topic.partitions)
            if before is None or grown or before.config != topic.config:
                self._reconfigure(topic)
        self._learn(new)
        if self._context is None:
            await self.remove(_partitions_gone(old, new))
            await self.create(missing)

    async def create(self, wanted: Iterable[tuple[TopicInfo, int]]) -> None:
        """Makes or opens the logs that are not open yet, in threads, so that thousands of them hold up nobody. One that
        cannot be opened is not hosted."""
        missing = [(topic, index) for topic, index in wanted if (topic.name, index) not in self._hosted]
        for topic, index in missing:
            key = (topic.name, index)
            if key not in self._dir_of:
                self._place(key, next((where for where in self._dirs if where.holds(*key)), None))
        opening = (asyncio.to_thread(self._try_open, topic, index) for topic, index in missing)
        for (topic, index), opened in zip(missing, await asyncio.gather(*opening), strict=True):
            if opened is not None:
                epoch = topic.partitions[index].leader_epoch if self._context is None else NO_EPOCH
                self._host(topic, index, epoch, opened)
        self._catch_up({topic.topic_id: topic for topic, _ in missing}.values())

    def _catch_up(self, topics: Iterable[TopicInfo]) -> None:
        """The settings of these were read a while ago, and what changed before their logs were hosted reached none."""
        for topic in topics:
            now = self._known.topics.get(topic.name) if self._known is not None else None
            if now is not None and now.topic_id == topic.topic_id:
                self._reconfigure(now)

    def hosted(self, topic: str, index: int) -> Partition | None:
        """The replica of this broker, whatever its role."""
        return self._hosted.get((topic, index))

    def _learn(self, view: ClusterView) -> None:
        self._known = view
        self._names = {topic.topic_id: name for name, topic in view.topics.items()}
        if self._context is not None:
            for partition in self:  # told to be hosted before the view told of it
                self._names.setdefault(partition.topic_id, partition.topic)

    def _follow_defaults(self, view: ClusterView) -> bool:
        """Whether what topics without a value of their own go by was changed."""
        own, default = view.broker_configs.get(self._broker_id, {}), view.broker_configs.get(None, {})
        changed = (own, default) != self._changed_defaults
        if changed:
            self._changed_defaults = own, default
            self._defaults = in_force_for_logs(self._config, own, default)
        return changed

    def _reconfigure(self, topic: TopicInfo) -> None:
        """Logs of this topic that go by other settings go by these from now on."""
        found = (self._hosted.get((topic.name, index)) for index in range(len(topic.partitions)))
        here = [p for p in found if p is not None and p.topic_id == topic.topic_id]
        if here:
            config = log_config(self._defaults, topic.config)
            for partition in here:
                if partition.log.config != config:
                    partition.log.update_config(config)

    async def remove(self, keys: Iterable[TopicPartition]) -> None:
        """Deletes replicas, those of this broker that are there. When this returns no checkpoint speaks of them: it
        would be taken to speak of a topic of the same name, whose records would be lost."""
        doomed = list(keys)
        if not doomed:
            return
        try:
            for key in doomed:
                self._delete(key)
        finally:
            # A thread runs to its end even if the caller goes away.
            await asyncio.to_thread(self._forget, doomed)

    def _delete(self, key: TopicPartition) -> None:
        partition = self._hosted.pop(key, None)
        where = self._dir_of.pop(key, None)
        if where is not None:
            self._logs_in[self._dirs.index(where)] -= 1
        if partition is not None:
            partition.log.delete()
            self._dying.append(partition.log)
            partition.wake()

    def _forget(self, keys: list[TopicPartition]) -> None:
        self._checkpoints.forget(keys)
        self._write_cleaner_offsets()

    # -- looking after

    def start(self) -> None:
        config = self._config
        for every_ms, work in (
            (config.log_retention_check_interval_ms, self._retain),
            (config.log_flush_scheduler_interval_ms, self._flush_due),
            (min(1000, config.log_segment_delete_delay_ms or 1000), self._purge),
            (config.log_flush_offset_checkpoint_interval_ms, self._checkpoint),
        ):
            self._background.append(asyncio.create_task(_every(every_ms, work)))
        if self._context is not None:
            for every_ms, work in (
                (config.replica_high_watermark_checkpoint_interval_ms, self._checkpoint_high_watermarks),
                (max(self._context.lag_ms // 2, 1), self._check_isrs),
                (_LOST_LOGS_CHECK_MS, self._report_lost_logs),
            ):
                self._background.append(asyncio.create_task(_every(every_ms, work)))
        for _ in range(config.log_cleaner_threads if config.log_cleaner_enable else 0):
            cleaning = self._compactor.run(self, self._write_cleaner_offsets)
            self._background.append(asyncio.create_task(cleaning))

    async def _retain(self) -> None:
        for partition in tuple(self):
            try:
                partition.log.roll_if_due()
                if partition.log.apply_retention(partition.high_watermark):
                    partition.wake()
            except KafkaError:
                log.exception("retention of %s-%d failed", partition.topic, partition.index)
            await asyncio.sleep(0)  # a broker of thousands of partitions goes on serving meanwhile

    async def _flush_due(self) -> None:
        now = self._clock.wall_ms()
        for partition in tuple(self):
            if partition.log.unflushed_ms(now) >= partition.log.config.flush_ms:
                await partition.flushed()

    async def _purge(self) -> None:
        now = self._clock.wall_ms()
        for owner in (*(partition.log for partition in tuple(self)), *self._dying):
            if owner.pending_deletes():
                await asyncio.to_thread(owner.purge, now)
        self._dying = [owner for owner in self._dying if owner.pending_deletes()]

    async def _checkpoint(self) -> None:
        await asyncio.to_thread(self._checkpoints.write, self._positions())
        await asyncio.to_thread(self._write_cleaner_offsets)

    async def _checkpoint_high_watermarks(self) -> None:
        """More often than the rest: a leader that comes back begins with what it knows to be committed."""
        await asyncio.to_thread(self._checkpoints.write_high_watermarks, self._positions())

    async def _report_lost_logs(self) -> None:
        """A replica whose disk failed leads nothing any more; the controller finds somebody else."""
        assert self._context is not None
        lost = [partition for partition in self if partition.log.offline and partition.is_serving]
        for partition in lost:
            partition.rest()
        if lost:
            self._context.lost_logs()

    async def _check_isrs(self) -> None:
        for partition in tuple(self):
            partition.check_isr()

    def _positions(self) -> list[Position]:
        return [
            Position(self._dir_of[key], p, p.log.recovery_point, p.log.log_start_offset, p.high_watermark)
            for key, p in self._hosted.items()
        ]

    def _write_cleaner_offsets(self) -> None:
        self._cleaned.write(
            lambda: (
                (self._dir_of[key], key, partition.log.first_dirty_offset)
                for key, partition in tuple(self._hosted.items())
                if partition.log.first_dirty_offset is not None and key in self._dir_of
            )
        )

    async def close(self) -> None:
        """A clean stop: flush, snapshot, checkpoint, and leave word that no recovery is needed."""
        self._compactor.stop()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await asyncio.to_thread(self._compactor.close)
        await asyncio.to_thread(self._close_logs)

    def _close_logs(self) -> None:
        clean = {id(where): True for where in self._dirs}
        for key, partition in self._hosted.items():
            try:
                partition.log.close()
            except (OSError, KafkaError):
                clean[id(self._dir_of[key])] = False
                log.exception("the log of %s-%d did not close cleanly", partition.topic, partition.index)
        self._checkpoints.write(self._positions())
        self._write_cleaner_offsets()
        for where in self._dirs:
            where.close(clean=clean[id(where)])


def _partitions_gone(old: ClusterView, new: ClusterView) -> Iterator[TopicPartition]:
    """Those of the topics that went, and of those whose name another topic has now."""
    for name, topic in old.topics.items():
        now = new.topics.get(name)
        if now is None or now.topic_id != topic.topic_id:
            yield from ((name, index) for index in range(len(topic.partitions)))


async def _every(ms: int, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(ms / 1000)
        try:
            await work()
        except Exception:
            log.exception("background work failed and will be tried again: %s", partial(work))
