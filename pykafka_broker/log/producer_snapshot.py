"""`<offset>.snapshot`: what a log knew of its producers when it ended at that offset, in Kafka's format."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from construct import (
    Const,
    ConstructError,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    PrefixedArray,
    Struct,
)
from crc32c import crc32c

from pykafka_broker.log.checkpoints import sync_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SUFFIX = ".snapshot"
VERSION = 1

SNAPSHOT_ENTRY = Struct(
    "producer_id" / Int64sb,
    "epoch" / Int16sb,
    "last_sequence" / Int32sb,
    "last_offset" / Int64sb,
    "offset_delta" / Int32sb,
    "timestamp" / Int64sb,
    "coordinator_epoch" / Int32sb,
    "txn_first_offset" / Int64sb,
)
SNAPSHOT = Struct(
    "version" / Const(VERSION, Int16ub),
    "crc" / Int32ub,  # CRC-32C of everything behind it
    "entries" / PrefixedArray(Int32sb, SNAPSHOT_ENTRY),
)
# A log may have very many producers and takes a snapshot with every segment, so entries are packed by hand.
_HEAD = struct.Struct(">HI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


class CorruptSnapshotError(Exception):
    """A snapshot file that is damaged or of another version."""


class SnapshotEntry(NamedTuple):
    """One producer. `last_offset` and `txn_first_offset` are -1 where there is none."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    packed = [_ENTRY.pack(*entry) for entry in entries]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[SnapshotEntry]:
    """CorruptSnapshotError unless every byte is as it was written."""
    try:
        parsed = SNAPSHOT.parse(data)
    except ConstructError as error:
        raise CorruptSnapshotError(f"not a producer snapshot of version {VERSION}: {error}") from error
    if (actual := crc32c(memoryview(data)[_HEAD.size :])) != parsed.crc:
        raise CorruptSnapshotError(f"checksum {actual:#010x} instead of {parsed.crc:#010x}")
    return [SnapshotEntry(*(entry[name] for name in SnapshotEntry._fields)) for entry in parsed.entries]


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020d}{SUFFIX}"


def write_snapshot(
    directory: Path, offset: int, entries: Iterable[SnapshotEntry], *, durable: bool = False
) -> Path:
    """Put a snapshot in its place. Only with `durable` forced to disk: else its checksum tells, and the log can be
    read again."""
    path = snapshot_path(directory, offset)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(encode_snapshot(entries))
    if durable:
        sync_file(temporary)
    temporary.replace(path)
    return path


def read_snapshot(path: Path) -> list[SnapshotEntry]:
    return decode_snapshot(path.read_bytes())


def list_snapshots(directory: Path) -> dict[int, Path]:
    """The snapshots in `directory` by their offset, lowest first."""
    found = {int(path.stem): path for path in directory.glob(f"*{SUFFIX}") if path.stem.isdecimal()}
    return dict(sorted(found.items()))
