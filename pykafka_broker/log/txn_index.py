"""`.txnindex`: the aborted transactions whose markers lie in a segment."""

from __future__ import annotations

import errno
import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from construct import Const, Int16sb, Int64sb, Struct

from pykafka_broker.log.index_file import CorruptIndexError

if TYPE_CHECKING:
    from pathlib import Path

TXN_INDEX_ENTRY = Struct(
    "version" / Const(0, Int16sb),
    "producer_id" / Int64sb,
    "first_offset" / Int64sb,
    "last_offset" / Int64sb,
    "last_stable_offset" / Int64sb,
)
_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """Where the abort marker lies."""
    last_stable_offset: int
    """The last stable offset once this marker was written."""


class TxnIndex:
    """The aborted transactions of one segment, in the order of their markers. Owned by that segment.

    The file appears with the first entry, as in Apache Kafka; no descriptor is kept.
    """

    __slots__ = ("_last_offset", "entries", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries = path.stat().st_size // _ENTRY.size if path.exists() else 0
        self._last_offset = -1
        if self.entries:
            with path.open("rb") as file:
                file.seek((self.entries - 1) * _ENTRY.size)
                self._last_offset = _ENTRY.unpack(file.read(_ENTRY.size))[3]

    def append(self, txn: AbortedTxn) -> None:
        """Add an entry. ValueError unless its marker comes after the last one's."""
        if txn.last_offset <= self._last_offset:
            raise ValueError(
                f"{self.path}: marker at {txn.last_offset} is not above the last, {self._last_offset}"
            )
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            written = os.pwrite(fd, _ENTRY.pack(_VERSION, *txn), self.entries * _ENTRY.size)
        finally:
            os.close(fd)
        if written != _ENTRY.size:
            raise OSError(errno.ENOSPC, "index entry written in part", str(self.path))
        self.entries += 1
        self._last_offset = txn.last_offset

    def all(self) -> list[AbortedTxn]:
        """Every entry. CorruptIndexError for a version nobody has defined."""
        if not self.entries:
            return []
        data = self.path.read_bytes()[: self.entries * _ENTRY.size]
        txns = []
        for version, *fields in _ENTRY.iter_unpack(data):
            if version != _VERSION:
                raise CorruptIndexError(f"{self.path}: entry of unknown version {version}")
            txns.append(AbortedTxn(*fields))
        return txns

    def aborted(self, first: int, upto: int) -> tuple[list[AbortedTxn], bool]:
        """The transactions that touch offsets `first` to `upto` (exclusive), and whether that is all of them.

        When it is not, the following segments may hold markers of transactions that began in the range.
        """
        found = []
        for txn in self.all():
            if txn.last_offset >= first and txn.first_offset < upto:
                found.append(txn)
            if txn.last_stable_offset >= upto:
                return found, True
        return found, False

    def sanity_check(self, base_offset: int) -> None:
        """CorruptIndexError if the file cannot belong to the segment that starts at `base_offset`."""
        size = self.path.stat().st_size if self.path.exists() else 0
        if size % _ENTRY.size:
            raise CorruptIndexError(f"{self.path}: {size} bytes are not a multiple of {_ENTRY.size}")
        last = base_offset - 1
        for txn in self.all():
            if txn.last_offset <= last:
                raise CorruptIndexError(f"{self.path}: marker at {txn.last_offset} is not above {last}")
            last = txn.last_offset

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker lies at or above `offset`."""
        if self._last_offset >= offset:
            kept = [txn for txn in self.all() if txn.last_offset < offset]
            os.truncate(self.path, len(kept) * _ENTRY.size)
            self.entries = len(kept)
            self._last_offset = kept[-1].last_offset if kept else -1

    def reset(self) -> None:
        """Empty the index, for a rebuild."""
        if self.path.exists():
            os.truncate(self.path, 0)
        self.entries, self._last_offset = 0, -1
