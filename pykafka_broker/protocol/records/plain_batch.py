"""Batches as coordinators write them: keys and values without headers, all of one time, uncompressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.records.batch import HEADER_SIZE, seal_plain, varint

if TYPE_CHECKING:
    from collections.abc import Iterable

START = b"\0\0"
"""Between the length of a record and its offset delta: no attributes, and the time of the batch."""
NO_HEADERS = b"\0"
_NO_VALUE = b"\1"


class PlainBatch:
    """A batch in the making. The same bytes as from `build_batch`, for half of the cost."""

    __slots__ = ("_data", "count")

    def __init__(self) -> None:
        self._data = bytearray(HEADER_SIZE)
        self.count = 0

    def add(self, key: bytes, value: bytes | None) -> None:
        content = START + varint(self.count) + varint(len(key)) + key
        content += _NO_VALUE + NO_HEADERS if value is None else varint(len(value)) + value + NO_HEADERS
        self._data += varint(len(content))
        self._data += content
        self.count += 1

    @property
    def size(self) -> int:
        return len(self._data)

    def add_packed(self, records: bytes, count: int) -> None:
        """So many records as they lie in a batch, whose offset deltas go on from `count`."""
        self._data += records
        self.count += count

    def sealed(self, timestamp: int) -> bytearray:
        """The batch, which nothing can be added to any more. ValueError if it is empty."""
        if not self.count:
            raise ValueError("a batch holds at least one record")
        seal_plain(self._data, self.count, timestamp)
        return self._data


def build_plain_batch(pairs: Iterable[tuple[bytes, bytes | None]], timestamp: int) -> bytearray:
    """One batch of these keys and values, at least one."""
    batch = PlainBatch()
    for key, value in pairs:
        batch.add(key, value)
    return batch.sealed(timestamp)
