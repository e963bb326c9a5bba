"""Where the newest record of every key lies, in a bounded amount of memory."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from pykafka_broker.log.record_scan import scan_records

if TYPE_CHECKING:
    from pykafka_broker.protocol.records.batch import BatchHeader

_DIGEST_SIZE: Final = 16
_ENTRY_BYTES: Final = 224
"""What an entry takes at most: a digest, an offset, and its part of a dict that has just grown."""


def identity(key: bytes) -> bytes:
    """What stands for a key in the map: a short one for itself, a longer one is hashed to a length no short one has."""
    return key if len(key) < _DIGEST_SIZE else blake2b(key, digest_size=_DIGEST_SIZE).digest()


class OffsetMap:
    """Owner of the keys of one round of cleaning; used by one thread at a time.

    `latest` is the offset up to which the map knows the whole log from where it was begun."""

    __slots__ = ("_limit", "_offsets", "_start", "latest")

    def __init__(self, start: int, memory: int, load_factor: float = 1.0) -> None:
        """A map for the log from offset `start` on, that takes about `memory` bytes when it is full."""
        self._limit = max(int(memory // _ENTRY_BYTES * load_factor), 1)
        self._offsets: dict[bytes, int] = {}
        self._start = start
        self.latest = start - 1

    def __len__(self) -> int:
        return len(self._offsets)

    def get(self, key: bytes) -> int:
        """The offset of the newest record of `key`; -1 if the map has none."""
        return self._offsets.get(identity(key), -1)

    def add_batch(self, header: BatchHeader, data: bytes) -> bool:
        """Takes in the keys of a batch; False if they do not fit: then the map is complete up to the batch before.

        The first batch is taken at any size, or a round could end where it began."""
        offsets, base, start = self._offsets, header.base_offset, self._start
        limit = self._limit if self.latest >= start else len(offsets) + header.record_count
        for _, _, _, _, delta, key, _ in scan_records(data, header.record_count):
            if key is None or base + delta < start:
                continue
            known = key if len(key) < _DIGEST_SIZE else blake2b(key, digest_size=_DIGEST_SIZE).digest()
            if len(offsets) >= limit and known not in offsets:
                return False
            offsets[known] = base + delta
        self.advance(header.last_offset)
        return True

    def advance(self, offset: int) -> None:
        """There is nothing more to know up to and with `offset`."""
        self.latest = max(self.latest, offset)
