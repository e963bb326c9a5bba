"""The batches a coordinator writes. Records are encoded one by one, except those of offsets without metadata, which are
most of all there ever are: they are of one form, and all that are committed at once are packed at once."""

from __future__ import annotations

import struct
from functools import lru_cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

from pykafka_broker.coordinator.effects import Record
from pykafka_broker.coordinator.records.codec import encode_record
from pykafka_broker.coordinator.records.committed import CommittedOffsets, TopicOffsets
from pykafka_broker.coordinator.records.offset import OffsetCommitKey, OffsetCommitValue
from pykafka_broker.protocol.records.batch import varint
from pykafka_broker.protocol.records.plain_batch import NO_HEADERS, START, PlainBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

_NO_METADATA = 1
"""The length of none, as OffsetCommitValue has it."""


def batch_of(records: Iterable[Sequence[Record]], timestamp: int) -> bytearray:
    """One batch of all these records, at least one."""
    batch = PlainBatch()
    for some in records:
        if type(some) is CommittedOffsets and some.expire_timestamp < 0:
            for topic in some.topics:
                _add_offsets(batch, some.group, topic)
        else:
            _add_each(batch, some)
    return batch.sealed(timestamp)


def _add_each(batch: PlainBatch, records: Iterable[Record]) -> None:
    for record in records:
        batch.add(*encode_record(record))


def _add_offsets(batch: PlainBatch, group: str, offsets: TopicOffsets) -> None:
    topic, topic_id, partitions, *columns, metadata, timestamps = offsets
    if any(metadata):
        _add_each(batch, CommittedOffsets(group, (offsets,)))
        return
    form = _form(group, topic, topic_id)
    if len(partitions) == 1:  # as in most commits
        batch.add_packed(
            form.record(batch.count, partitions[0], columns[0][0], columns[1][0], timestamps[0]), 1
        )
        return
    done = 0
    while done < len(partitions):
        # Deltas of one width make records of one width.
        delta = batch.count
        upto = done + _as_wide(delta) - delta
        rows = [column[done:upto] for column in (partitions, *columns, timestamps)]
        batch.add_packed(form.records(delta, *rows), len(rows[0]))
        done += len(rows[0])


def _as_wide(delta: int) -> int:
    """The first number whose varint is longer than that of `delta`."""
    return 1 << 7 * len(varint(delta)) - 1


class _Form(NamedTuple):
    """What the records of one topic's offsets in one group have in common."""

    starts: tuple[bytes, ...]
    """What comes before the offset delta, by the width of the delta."""
    key: bytes
    """The key and its length, up to the partition."""
    value: bytes
    """The length of the value, and its version."""
    tail: bytes

    def record(self, delta: int, partition: int, offset: int, epoch: int, timestamp: int) -> bytes:
        number = varint(delta)
        fixed = _FIXED(partition, self.value, offset, epoch, _NO_METADATA, timestamp)
        return b"".join((self.starts[len(number)], number, self.key, fixed, self.tail))

    def records(
        self,
        delta: int,
        partitions: Sequence[int],
        offsets: Sequence[int],
        epochs: Sequence[int],
        timestamps: Sequence[int],
    ) -> bytes:
        """A record for each row, with offset deltas of one width."""
        count, width = len(partitions), len(varint(delta))
        start, key, tail = self.starts[width], self.key, self.tail
        rows = zip(
            repeat(start),
            map(varint, range(delta, delta + count)),
            repeat(key),
            partitions,
            repeat(self.value),
            offsets,
            epochs,
            repeat(_NO_METADATA),
            timestamps,
            repeat(tail),
            strict=False,
        )
        sizes = (len(start), width, len(key), len(tail))
        return _packer(*sizes, count)(*chain.from_iterable(rows))


_FIXED = struct.Struct(">i3sqiBq").pack


@lru_cache(maxsize=256)
def _packer(start: int, delta: int, key: int, tail: int, count: int) -> Callable[..., bytes]:
    return struct.Struct(">" + f"{start}s{delta}s{key}si3sqiBq{tail}s" * count).pack


# A group commits for the same few topics all the time.
@lru_cache(maxsize=4096)
def _form(group: str, topic: str, topic_id: UUID) -> _Form:
    key, value = encode_record(
        Record(
            OffsetCommitKey(group=group, topic=topic, partition=0),
            OffsetCommitValue(offset=0, metadata="", commit_timestamp=0, topic_id=topic_id),
        )
    )
    assert value is not None
    head, fixed = varint(len(value)) + value[:2], struct.calcsize(">qiBq")
    counted = varint(len(key)) + key + varint(len(value)) + value + NO_HEADERS
    starts = tuple([varint(len(START) + width + len(counted)) + START for width in range(6)])
    return _Form(starts, (varint(len(key)) + key)[:-4], head, value[2 + fixed :] + NO_HEADERS)
