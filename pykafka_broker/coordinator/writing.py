"""Writing what a shard decided to the partition it lives in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from pykafka_broker.coordinator.records.batches import batch_of
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from pykafka_broker.clock import Clock
    from pykafka_broker.coordinator.effects import Record
    from pykafka_broker.coordinator.shard import GroupShard
    from pykafka_broker.protocol.types import Buffer

log = logging.getLogger(__name__)

_RECORDS_AT_ONCE: Final = 1_000

_OF_THE_RECORDS: Final = {
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Why an append is refused for what it brings; otherwise it is for the state of the log."""


class ShardLog(Protocol):
    """The one partition of an internal topic that a shard lives in."""

    @property
    def commits_at_once(self) -> bool:
        """Whether what is appended is committed by that. A log that has followers has them before it waits for any."""

    def append(self, batch: bytearray) -> int:
        """Write it; gives the offset behind it. KafkaError if that cannot be."""

    def when_committed(self, offset: int, call: Callable[[], None]) -> None:
        """Calls back when everything below `offset` is committed, at once if it is."""

    def committed(self) -> AsyncIterator[Buffer]:
        """Everything committed, from the start, in runs of whole batches."""


class ShardWriter:
    """Appends records and replays them into the shard. Its owner is a runtime; KafkaError, whatever goes wrong."""

    def __init__(self, shard: GroupShard, log: ShardLog, clock: Clock) -> None:
        self._shard = shard
        self._log = log
        self._clock = clock
        self.end = 0
        """Behind all that was written."""

    def write(self, records: Sequence[Record]) -> None:
        """All of them in one batch, or none."""
        self.append([records])
        self._shard.replay_all(records)

    def append(self, records: Iterable[Sequence[Record]]) -> None:
        """As `write`, but they are yet to be replayed."""
        try:
            self.end = self._log.append(batch_of(records, self._clock.wall_ms()))
        except KafkaError:
            raise
        except Exception as error:
            log.exception("records of a coordinator cannot be written")
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error

    def write_divided(self, records: Sequence[Record]) -> None:
        """In batches of what fits into one. A record that fits into none is passed over."""
        for first in range(0, len(records), _RECORDS_AT_ONCE):
            parts = [records[first : first + _RECORDS_AT_ONCE]]
            while parts:
                part = parts.pop()
                try:
                    self.write(part)
                except KafkaError as error:
                    if error.code not in _OF_THE_RECORDS:
                        raise
                    middle = len(part) // 2
                    if middle:
                        parts += [part[middle:], part[:middle]]
                    else:
                        log.warning("a record of a coordinator was refused: %s", error.text)
