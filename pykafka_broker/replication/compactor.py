"""Keeps compacted topics compacted: picks the dirtiest log, lets a thread clean it, swaps the result in."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from weakref import WeakSet

from pykafka_broker.log.batch_filter import last_batches
from pykafka_broker.log.checkpoints import sync_directory
from pykafka_broker.log.cleaner import CleanerSettings, CleaningRound, discard
from pykafka_broker.log.pace import Pace, Stopped
from pykafka_broker.protocol.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pykafka_broker.clock import Clock
    from pykafka_broker.config import BrokerConfig
    from pykafka_broker.log.compaction import Survey
    from pykafka_broker.log.log_dir import LogDir
    from pykafka_broker.log.partition_log import PartitionLog
    from pykafka_broker.replication.partition import Partition

log = logging.getLogger(__name__)

TopicPartition = tuple[str, int]
CleanedUpTo = tuple["LogDir", TopicPartition, int]


class Compactor:
    """Owner of the cleaning threads, and of which logs they are at or cannot clean; lives on the event loop."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._threads = max(config.log_cleaner_threads, 1)
        self._settings = CleanerSettings(
            map_bytes=config.log_cleaner_dedupe_buffer_size // self._threads,
            map_load_factor=config.log_cleaner_io_buffer_load_factor,
            read_bytes=max(config.log_cleaner_io_buffer_size // self._threads // 2, 4096),
        )
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="log-cleaner")
        self._busy: set[PartitionLog] = set()
        self._uncleanable: WeakSet[PartitionLog] = WeakSet()

    async def run(self, partitions: Iterable[Partition], note: Callable[[], None]) -> None:
        """Cleans one log after another, for ever; `note`, called in a thread, remembers how far they are clean."""
        while True:
            if await self.clean_dirtiest(partitions):
                await asyncio.to_thread(note)
            else:
                await asyncio.sleep(self._config.log_cleaner_backoff_ms / 1000)

    async def clean_dirtiest(self, partitions: Iterable[Partition]) -> bool:
        """One round with the log that needs it most; False if none does, or if it could not be done."""
        due: list[tuple[float, int, Partition, Survey]] = []
        for number, partition in enumerate(tuple(partitions)):
            if self._is_candidate(partition.log):
                plan = partition.log.survey(partition.high_watermark)
                if plan.is_due(partition.log.config):
                    due.append((plan.ratio, number, partition, plan))
            await asyncio.sleep(0)
        for _, _, partition, plan in sorted(due, key=lambda entry: entry[0], reverse=True):
            if self._is_candidate(partition.log):
                return await self._guarded(partition.log, plan)
        return False

    def _is_candidate(self, candidate: PartitionLog) -> bool:
        return (
            candidate.config.compact
            and not candidate.offline
            and candidate not in self._busy
            and candidate not in self._uncleanable
        )

    async def _guarded(self, target: PartitionLog, plan: Survey) -> bool:
        self._busy.add(target)
        try:
            return await self._clean(target, plan)
        except (Stopped, FileNotFoundError):
            return False  # the broker stops, or the log has lost a segment meanwhile
        except (KafkaError, OSError) as error:
            log.warning("cleaning of %s ended early: %s", target.directory.name, error)
            return False
        except Exception:
            log.exception("%s cannot be cleaned and is left alone from now on", target.directory.name)
            self._uncleanable.add(target)
            return False
        finally:
            self._busy.discard(target)

    async def _clean(self, target: PartitionLog, plan: Survey) -> bool:
        loop = asyncio.get_running_loop()
        segments, ticket = target.segments_to_clean()
        pace = Pace(self._stop, self._config.log_cleaner_io_max_bytes_per_second)
        work = CleaningRound(segments, plan, target.config, self._settings, pace, self._clock.wall_ms())
        # An older record may go only when the newer one is safe on the disk.
        await loop.run_in_executor(self._pool, target.flush, plan.upto)
        for group in await loop.run_in_executor(self._pool, work.begin):
            cleaned = await loop.run_in_executor(
                self._pool, work.clean, group, last_batches(target.producers)
            )
            if not target.swap_in(cleaned, group, ticket):
                discard(cleaned)
                return False
            await loop.run_in_executor(self._pool, sync_directory, target.directory)
        target.first_dirty_offset = work.end_offset
        log.info("cleaned %s up to offset %d", target.directory.name, work.end_offset)
        return work.end_offset > plan.first_dirty_offset

    def stop(self) -> None:
        """Tells the threads to end soon."""
        self._stop.set()

    def close(self) -> None:
        """Waits until they have; may run in a thread."""
        self._stop.set()
        self._pool.shutdown()


class CleanerCheckpoints:
    """Owner of the cleaner-offset-checkpoint files: up to where each log is clean. `write` may run in any thread."""

    def __init__(self, log_dirs: Iterable[LogDir]) -> None:
        self._dirs = list(log_dirs)
        self._written: dict[LogDir, dict[TopicPartition, int]] = {}
        self._lock = threading.Lock()

    def read(self, where: LogDir) -> dict[TopicPartition, int]:
        if where not in self._written:
            self._written[where] = where.read_cleaner_offsets()
        return self._written[where]

    def write(self, current: Callable[[], Iterable[CleanedUpTo]]) -> None:
        """Replaces the files that do not say what `current` says; it is asked when nobody else can be writing."""
        with self._lock:
            entries = list(current())
            for where in self._dirs:
                offsets = {key: offset for at, key, offset in entries if at is where}
                if offsets != self.read(where):
                    where.write_cleaner_offsets(offsets)
                    self._written[where] = offsets
