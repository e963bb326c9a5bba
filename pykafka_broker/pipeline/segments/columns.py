"""Records of many batches as Arrow columns, with no work per record beyond finding where each begins.

Records are a chain: each says how long it is, so only a walk finds them all. Small batches are walked side by side, one
step for all of them at a time; in a large one neighbours are often equally long, and such runs are found at once.
Everything behind that is done for all records together: numpy decodes the integers, and Arrow copies keys and values
out of the buffer they lie in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import HEADER_SIZE, TimestampType, records_bytes
from pykafka_broker.protocol.records.compression import Codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pykafka_broker.protocol.records.batch import BatchHeader

    Ints = NDArray[np.int64]
    Octets = NDArray[np.uint8]

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_RUN_WORTH_A_TRY = 400  # below this many records the walk costs less than the calls into numpy
_SMALL_BATCH = 1024
_SIDE_BY_SIDE = 64  # below this many batches a step for all costs more than a step for each
_MAX_VARINT_BITS = 64


def _record_sizes() -> Ints:
    """By the first two bytes of a record, little-endian: its size, the length counted in; 0 if they do not tell."""
    pair = np.arange(1 << 16)
    low, high = pair & 0xFF, pair >> 8
    size = np.where(low < 0x80, 1 + (low >> 1), 2 + ((low & 0x7F | high << 7) >> 1))
    return np.where((low & high & 0x80) != 0, 0, size)  # lengths are zigzag-encoded and never negative


_RECORD_SIZES = _record_sizes()


@dataclass(frozen=True, slots=True)
class Columns:
    """The records of some batches of one partition, in the order of their offsets."""

    key: pa.Array
    value: pa.Array
    offset: Ints
    timestamp: Ints
    """Milliseconds since 1970."""
    timestamp_type: NDArray[np.int32]
    headers: pa.Array | None
    """None where nobody asked for them; a record without headers has null, as in Spark's own source."""


def decode(chunk: bytes, batches: Sequence[tuple[int, BatchHeader]], *, headers: bool) -> Columns:
    """The records of the batches at these positions of `chunk`. MalformedError at the first thing amiss."""
    data, areas = _unpacked(chunk, batches)
    octets = np.frombuffer(data, np.uint8)
    try:
        starts, ends = _find_records(data, octets, areas)
        _, begins = _varints(octets, starts)
        time_delta, at = _varints(octets, begins + 1)  # the byte skipped: attributes, all unused
        offset_delta, at = _varints(octets, at)
        key_size, key_at = _varints(octets, at)
        value_size, value_at = _varints(octets, key_at + np.maximum(key_size, 0))
        at = value_at + np.maximum(value_size, 0)
        found = None
        if headers:
            header_count, at = _long_varints(octets, at)
            found, at = _headers(data, octets, header_count, at)
    except IndexError:
        raise MalformedError("a record reaches past the end of its batch") from None
    if ((at != ends) if headers else (at >= ends)).any():
        raise MalformedError("a record does not end where it says")
    per_batch = [header.record_count for _, header in batches]
    base_offset, base_time = (
        np.repeat(np.array(column, np.int64), per_batch)
        for column in zip(*((h.base_offset, h.base_timestamp) for _, h in batches), strict=True)
    )
    kind = np.repeat(np.array([header.timestamp_type for _, header in batches], np.int32), per_batch)
    timestamp = base_time + time_delta
    if kind.any():
        max_time = np.repeat(np.array([header.max_timestamp for _, header in batches], np.int64), per_batch)
        timestamp = np.where(kind == TimestampType.LOG_APPEND_TIME, max_time, timestamp)
    buffer = pa.py_buffer(data)
    return Columns(
        key=_fields(buffer, key_at, key_size, pa.binary()),
        value=_fields(buffer, value_at, value_size, pa.binary()),
        offset=base_offset + offset_delta,
        timestamp=timestamp,
        timestamp_type=kind,
        headers=found,
    )


def _unpacked(
    chunk: bytes, batches: Sequence[tuple[int, BatchHeader]]
) -> tuple[bytes, list[tuple[int, int, int]]]:
    """One buffer, and where in it the records of each batch lie: (begin, end, how many)."""
    if all(header.codec is Codec.NONE for _, header in batches):
        return chunk, [(at + HEADER_SIZE, at + header.size, header.record_count) for at, header in batches]
    parts = [records_bytes(chunk, at, header) for at, header in batches]
    areas, begin = [], 0
    for part, (_, header) in zip(parts, batches, strict=True):
        areas.append((begin, begin + len(part), header.record_count))
        begin += len(part)
    return b"".join(parts), areas


def _find_records(data: bytes, octets: Octets, areas: list[tuple[int, int, int]]) -> tuple[Ints, Ints]:
    """Where each record begins, with its length, and where it ends."""
    begins, finishes, counts = (np.array(column, np.int64) for column in zip(*areas, strict=True))
    firsts = np.cumsum(counts) - counts
    starts = np.empty(firsts[-1] + counts[-1], np.int64)
    small = np.flatnonzero(counts <= _SMALL_BATCH)
    if len(small) < _SIDE_BY_SIDE:
        small = small[:0]
    reached = _walk_together(data, begins[small], counts[small], firsts[small], starts)
    alone = np.ones(len(areas), bool)
    alone[small] = reached != finishes[small]  # damaged, or with a record of 8 KB or more
    for number in np.flatnonzero(alone):
        begin, first, count = int(begins[number]), int(firsts[number]), int(counts[number])
        _walk_alone(data, octets, begin, int(finishes[number]), starts[first : first + count])
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    ends[firsts + counts - 1] = finishes
    return starts, ends


def _walk_together(data: bytes, begins: Ints, counts: Ints, firsts: Ints, starts: Ints) -> Ints:
    """Where the last record of each of these batches ends; all of their starts are put behind `firsts`.

    A record that two bytes do not tell the length of is never left, and one that leads out of the data neither.
    """
    pairs = np.ndarray(max(len(data) - 1, 0), "<u2", data, strides=(1,))
    order = np.argsort(
        -counts, kind="stable"
    )  # the batches that still have records are always the first ones
    at, slot, left = begins[order], firsts[order], counts[order]
    last = len(pairs) - 1
    for turn, active in enumerate(_still_active(left)):
        now = at[:active]
        starts[slot[:active] + turn] = now
        now += _RECORD_SIZES[pairs[np.minimum(now, last)]]
    reached = np.empty_like(at)
    reached[order] = at
    return reached


def _still_active(falling: Ints) -> list[int]:
    """For each turn, how many of these counts are larger than its number."""
    turns = int(falling[0]) if len(falling) else 0
    found: list[int] = np.searchsorted(-falling, -np.arange(turns), side="left").tolist()
    return found


def _walk_alone(data: bytes, octets: Octets, at: int, end: int, starts: Ints) -> None:
    """Put down where the records of one batch begin."""
    done, count = 0, len(starts)
    runs = True
    while runs and count - done >= _RUN_WORTH_A_TRY:
        run, at = _run(data, octets, at, end, count - done)
        starts[done : done + len(run)] = run
        done += len(run)
        runs = len(run) >= _RUN_WORTH_A_TRY
    found = _walk(data, at, count - done)
    if found[-1] != end:
        raise MalformedError("the records of a batch do not end where it does")
    starts[done:] = found[:-1]


def _run(data: bytes, octets: Octets, at: int, end: int, count: int) -> tuple[Ints, int]:
    """The record at `at` and those behind it that are as long as it is, and where they end."""
    _, after = _walk(data, at, 1)
    stride = after - at
    if after > end:
        raise MalformedError(f"record of {stride} bytes where {end - at} are left")
    starts = at + stride * np.arange(min(count, (end - at) // stride), dtype=np.int64)
    same = octets[starts] == data[at]
    byte = at
    while data[byte] >= 0x80:  # equal up to the last byte of the length
        byte += 1
        same &= octets[starts + (byte - at)] == data[byte]
    if not same.all():
        starts = starts[: int(same.argmin())]
    return starts, at + stride * len(starts)


def _walk(data: bytes, at: int, count: int) -> list[int]:
    """The bounds of this many records. The only loop over single records, so the usual lengths are decoded in place."""
    bounds = [at]
    add = bounds.append
    for _ in range(count):
        low = data[at]
        if low < 0x80:
            at += 1 + (low >> 1)  # lengths are zigzag-encoded and never negative
        elif (high := data[at + 1]) < 0x80:
            at += 2 + ((low & 0x7F | high << 7) >> 1)
        else:
            at += _long(data, at)
        add(at)
    return bounds


def _long(data: bytes, at: int) -> int:
    """The size of a record whose length takes three bytes or more, the length counted in."""
    result = size = 0
    while True:
        byte = data[at + size]
        result |= (byte & 0x7F) << 7 * size
        size += 1
        if byte < 0x80:
            return size + (result >> 1)


def _varints(octets: Octets, at: Ints) -> tuple[Ints, Ints]:
    """The integers at these positions, none of them the last of the data, and the positions behind them."""
    low, high = octets[at], octets[at + 1]
    two = low >> 7
    if (two & high >> 7).any():
        return _long_varints(octets, at)
    value = (low & 0x7F).astype(np.uint16)
    value |= (high * two).astype(np.uint16) << np.uint16(7)
    signed = (value >> 1).astype(np.int16) ^ -(value & 1).astype(np.int16)
    return signed.astype(np.int64), at + (two + np.uint8(1))


def _long_varints(octets: Octets, at: Ints) -> tuple[Ints, Ints]:
    """The same of any length, at any position."""
    byte = octets[at]
    value = (byte & 0x7F).astype(np.uint64)
    at = at + 1
    more = np.flatnonzero(byte & 0x80)
    shift = 7
    while more.size:
        if shift >= _MAX_VARINT_BITS:
            raise MalformedError("integer of more than ten bytes")
        byte = octets[at[more]]
        value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        at[more] += 1
        more = more[byte >= 0x80]
        shift += 7
    return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64), at


def _fields(buffer: pa.Buffer, at: Ints, size: Ints, kind: pa.DataType) -> pa.Array:
    """The byte strings at these rising positions; a negative size is null.

    The buffer is seen as strings and the gaps between them, in turn; taking every other one is a single copy.
    """
    missing = size < 0
    if missing.all():
        return pa.nulls(len(at), kind)
    bounds = np.empty(2 * len(at), np.int32)
    bounds[0::2] = at
    bounds[1::2] = at + np.maximum(size, 0)
    if bounds[-1] > buffer.size or (bounds[1:] < bounds[:-1]).any():
        raise MalformedError("a field reaches past the end of its record")
    strings = pa.Array.from_buffers(kind, len(bounds) - 1, [None, pa.py_buffer(bounds), buffer])
    chosen = pa.array(np.arange(0, len(bounds), 2), mask=missing if missing.any() else None)
    return strings.take(chosen)


def _headers(data: bytes, octets: Octets, counts: Ints, at: Ints) -> tuple[pa.Array, Ints]:
    """A list of headers for each record, and the positions behind them."""
    if (counts < 0).any():
        raise MalformedError("a negative number of record headers")
    bounds = np.concatenate([[0], np.cumsum(counts)])
    places: Any = np.zeros((4, bounds[-1]), np.int64)
    having = np.flatnonzero(counts)
    turn = 0
    while having.size:  # the first header of every record that has one, then the second, and so on
        slot = bounds[having] + turn
        places[0, slot], name_at = _long_varints(octets, at[having])
        places[1, slot] = name_at
        places[2, slot], value_at = _long_varints(octets, name_at + np.maximum(places[0, slot], 0))
        places[3, slot] = value_at
        at[having] = value_at + np.maximum(places[2, slot], 0)
        turn += 1
        having = having[counts[having] > turn]
    if not bounds[-1]:
        return pa.nulls(len(counts), HEADERS), at
    buffer = pa.py_buffer(data)
    name = _fields(buffer, places[1], places[0], pa.string())
    value = _fields(buffer, places[3], places[2], pa.binary())
    items = pa.StructArray.from_arrays([name, value], ["key", "value"])
    none = pa.array(counts == 0)
    lists = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), items, mask=none)
    return lists.cast(HEADERS), at
