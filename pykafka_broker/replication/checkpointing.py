"""How far each log has come, as its log directory remembers it: written now and then, and forgotten with the log."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pykafka_broker.log.log_dir import LogDir
    from pykafka_broker.replication.partition import Partition

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Position:
    """How far a partition had come at one moment on the event loop, where its figures belong together."""

    where: LogDir
    partition: Partition
    recovery_point: int
    log_start_offset: int
    high_watermark: int

    @property
    def key(self) -> TopicPartition:
        return self.partition.topic, self.partition.index


class Checkpoints:
    """Who alone writes the recovery points, log starts and high watermarks of all log directories. What it does may run
    in any thread and is done one after the other.

    `hosted` says which partition there is of a name now: positions are a little old when they are written, and one
    that has been forgotten meanwhile must not come back."""

    def __init__(
        self, log_dirs: Iterable[LogDir], hosted: Callable[[TopicPartition], Partition | None]
    ) -> None:
        self._dirs = list(log_dirs)
        self._hosted = hosted
        self._lock = threading.Lock()

    def write(self, positions: Sequence[Position]) -> None:
        with self._lock:
            for where in self._dirs:
                mine = self._still_in(where, positions)
                where.write_checkpoints(
                    recovery_points={position.key: position.recovery_point for position in mine},
                    log_start_offsets={position.key: position.log_start_offset for position in mine},
                    high_watermarks={position.key: position.high_watermark for position in mine},
                )

    def write_high_watermarks(self, positions: Sequence[Position]) -> None:
        with self._lock:
            for where in self._dirs:
                mine = self._still_in(where, positions)
                where.write_high_watermarks({position.key: position.high_watermark for position in mine})

    def _still_in(self, where: LogDir, positions: Sequence[Position]) -> list[Position]:
        return [
            position
            for position in positions
            if position.where is where and self._hosted(position.key) is position.partition
        ]

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Nothing of these is left when this returns. They are not hosted any more."""
        with self._lock:
            for where in self._dirs:
                where.forget(partitions)
