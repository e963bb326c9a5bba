"""`leader-epoch-checkpoint`: at which offset each leader of a partition began to write."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from pykafka_broker.log.checkpoints import CheckpointError, read_lines, write_lines

if TYPE_CHECKING:
    from pathlib import Path

NO_EPOCH = -1
NO_OFFSET = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """The epochs of one log, rising in epoch and in start offset. Owned by the log.

    Every change is on disk when the method that made it returns, except that of the start: a log that comes back
    forgets again what lies before its start, and nobody has to wait for the disk then.
    """

    __slots__ = ("_entries", "_unsaved", "path")

    def __init__(self, path: Path) -> None:
        """Reads the checkpoint; CheckpointError if it is damaged. The file appears with the first epoch."""
        self.path = path
        self._entries: list[EpochEntry] = []
        self._unsaved = False
        for fields in read_lines(path):
            try:
                epoch, start_offset = map(int, fields)
            except ValueError as error:
                raise CheckpointError(f"{path}: {error}") from error
            self._insert(epoch, start_offset)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        """The epoch that wrote last; -1 if none is known."""
        return self._entries[-1].epoch if self._entries else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` writes from `start_offset` on. Nothing happens if it is the latest already.

        Entries it contradicts (no lower epoch, or no lower offset) give way.
        """
        if (
            self._entries
            and self._entries[-1].epoch == epoch
            and self._entries[-1].start_offset <= start_offset
        ):
            return
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"{self.path}: epoch {epoch} from offset {start_offset}")
        self._insert(epoch, start_offset)
        self._save()

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The greatest known epoch not above `epoch`, and where it ended.

        (-1, -1) if `epoch` is -1 or above all known ones. An epoch below all known ones answers itself and
        the start of the first known one, where the log now begins.
        """
        if epoch == NO_EPOCH or epoch > self.latest or not self._entries:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end
        above = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        found = self._entries[above - 1].epoch if above else epoch
        return found, self._entries[above].start_offset

    def end_offset_as_leader(self, epoch: int, leader_epoch: int, log_end: int) -> tuple[int, int]:
        """As `end_offset_for`, on the leader: `leader_epoch` begins at the end of the log if it has written nothing."""
        latest = self.latest
        if epoch < NO_EPOCH and not self._entries:  # no such epoch, but below the one that begins here
            return epoch, log_end
        if not latest <= epoch <= leader_epoch or epoch < 0:
            return self.end_offset_for(epoch, log_end)
        between = latest < epoch < leader_epoch
        return latest if between and self._entries else epoch, log_end

    def epoch_for(self, offset: int) -> int:
        """The epoch that wrote `offset`; -1 if that is not known."""
        above = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[above - 1].epoch if above else NO_EPOCH

    def truncate_from_end(self, offset: int) -> None:
        """Forget epochs that began at or above `offset`: the log now ends there."""
        if self._entries and self._entries[-1].start_offset >= offset:
            while self._entries and self._entries[-1].start_offset >= offset:
                self._entries.pop()
            self._save()

    def truncate_from_start(self, offset: int) -> None:
        """Forget epochs that ended at or below `offset`: the log now begins there."""
        above = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        if above and (above > 1 or self._entries[0].start_offset != offset):
            self._entries[:above] = [EpochEntry(self._entries[above - 1].epoch, offset)]
            self._unsaved = True

    def clear(self) -> None:
        if self._entries:
            self._entries.clear()
            self._save()

    def save(self) -> None:
        """Write down what was not yet."""
        if self._unsaved:
            self._save()

    def _insert(self, epoch: int, start_offset: int) -> None:
        while self._entries and (
            self._entries[-1].epoch >= epoch or self._entries[-1].start_offset >= start_offset
        ):
            self._entries.pop()
        self._entries.append(EpochEntry(epoch, start_offset))

    def _save(self) -> None:
        write_lines(self.path, (f"{entry.epoch} {entry.start_offset}" for entry in self._entries))
        self._unsaved = False
