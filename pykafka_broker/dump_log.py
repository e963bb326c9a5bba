"""`pykafka-broker dump-log FILE...`: prints the files of a partition for people.

Damage is part of what people look for: it becomes a line that begins with `!!`, and the exit code 1.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from construct import ConstructError

from pykafka_broker.log.checkpoints import CheckpointError, read_lines
from pykafka_broker.log.offset_index import OFFSET_INDEX_ENTRY
from pykafka_broker.log.producer_snapshot import CorruptSnapshotError, read_snapshot
from pykafka_broker.log.time_index import TIME_INDEX_ENTRY
from pykafka_broker.log.txn_index import TXN_INDEX_ENTRY
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import HEADER_SIZE, MAGIC, read_header, verify_crc
from pykafka_broker.protocol.records.control import EndTxnMarker, LeaderChange, OtherControl, parse_control
from pykafka_broker.protocol.records.record import iter_records

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from construct import Construct

    from pykafka_broker.protocol.records.batch import BatchHeader
    from pykafka_broker.protocol.records.record import Record

_EPOCH_FILE = "leader-epoch-checkpoint"
_SHOWN_BYTES = 1000


class _DamageError(Exception):
    """What is wrong, and so where reading the file had to stop."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="files of a partition's directory"
    )
    parser.add_argument(
        "--print-data-log",
        action="store_true",
        help="of a .log file, print the records too (decompressing them)",
    )


def run(args: argparse.Namespace) -> int:
    try:
        return dump(args.files, args.print_data_log, sys.stdout)
    except BrokenPipeError:  # `| head` has seen enough; what Python still wants to flush goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def dump(paths: Iterable[Path], deep: bool, out: TextIO) -> int:
    """Print each file to `out`, with `deep` its records too. 1 if one was damaged or unreadable, else 0."""
    failed = 0
    for path in paths:
        print(f"{path}", file=out)
        try:
            for line in _printer(path, deep)(path):
                print(f"  {line}", file=out)
        except (_DamageError, MalformedError, CheckpointError, CorruptSnapshotError) as damage:
            print(f"  !! {damage}", file=out)
            failed = 1
        except BrokenPipeError:
            raise
        except OSError as error:
            print(f"  !! cannot be read: {error.strerror}", file=out)
            failed = 1
    return failed


def _printer(path: Path, deep: bool) -> Callable[[Path], Iterator[str]]:
    by_suffix: dict[str, Callable[[Path], Iterator[str]]] = {
        ".log": lambda log: _log_lines(log, deep),
        ".index": lambda index: _entry_lines(index, OFFSET_INDEX_ENTRY, _base_offset(index)),
        ".timeindex": lambda index: _entry_lines(index, TIME_INDEX_ENTRY, _base_offset(index)),
        ".txnindex": lambda index: _entry_lines(index, TXN_INDEX_ENTRY, 0),
        ".snapshot": _snapshot_lines,
    }
    if path.name == _EPOCH_FILE:
        return _epoch_lines
    printer = by_suffix.get(path.suffix)
    if printer is None:
        raise _DamageError(f"not a file this command knows ({', '.join(by_suffix)}, {_EPOCH_FILE})")
    return printer


def _base_offset(path: Path) -> int:
    if not re.fullmatch(r"\d+", path.stem):
        raise _DamageError("the name of the file must be the base offset of its segment")
    return int(path.stem)


def _log_lines(path: Path, deep: bool) -> Iterator[str]:
    batches = records = size = 0
    next_offset = _base_offset(path)
    for position, header, batch in _batches(path):
        try:
            yield _batch_line(position, header)
            if not verify_crc(batch, 0, header):
                raise _DamageError(f"the batch at byte {position} has a wrong checksum")
            if header.base_offset < next_offset:
                raise _DamageError(
                    f"offset {header.base_offset} at byte {position} where {next_offset} comes next"
                )
            if deep:
                yield from (f"  {_record_line(record, header)}" for record in iter_records(batch))
        except MalformedError as error:
            raise _DamageError(f"the batch at byte {position}: {error}") from error
        batches, records, size = batches + 1, records + header.record_count, position + header.size
        next_offset = header.next_offset
    yield f"{batches} batches, {records} records, {size} bytes"


def _batches(path: Path) -> Iterator[tuple[int, BatchHeader, bytes]]:
    """Position, header and bytes of each batch, unjudged but for its length."""
    size = path.stat().st_size
    position = 0
    with path.open("rb") as file:
        while position < size:
            head = file.read(HEADER_SIZE)
            if len(head) < HEADER_SIZE:
                raise _DamageError(
                    f"torn: {len(head)} bytes at byte {position} are too few for a batch header"
                )
            header = read_header(head)
            if header.magic != MAGIC:
                raise _DamageError(
                    f"magic {header.magic} at byte {position} is not a batch of version {MAGIC}"
                )
            if header.size < HEADER_SIZE:
                raise _DamageError(f"batch at byte {position} claims a length of {header.size} bytes")
            if position + header.size > size:
                raise _DamageError(
                    f"torn: the batch at byte {position} takes {header.size} bytes, {size - position} are left"
                )
            yield position, header, head + file.read(header.size - HEADER_SIZE)
            position += header.size


def _batch_line(position: int, header: BatchHeader) -> str:
    parts = [
        f"offsets {header.base_offset}-{header.last_offset}",
        f"records {header.record_count}",
        f"position {position}",
        f"size {header.size}",
        f"leader epoch {header.partition_leader_epoch}",
        f"{header.timestamp_type.name} {header.max_timestamp}",
        f"codec {header.codec.name.lower()}",
    ]
    if header.has_producer_id:
        parts.append(
            f"producer {header.producer_id} epoch {header.producer_epoch} "
            f"sequences {header.base_sequence}-{header.last_sequence}"
        )
    if header.is_transactional:
        parts.append("transactional")
    if header.is_control:
        parts.append("control")
    return " | ".join([*parts, f"crc {header.crc:#010x}"])


def _record_line(record: Record, header: BatchHeader) -> str:
    line = f"offset {record.offset} | timestamp {record.timestamp}"
    if not header.is_control:
        headers = ", ".join(f"{name}={_shown(value)}" for name, value in record.headers)
        return f"{line} | key {_shown(record.key)} | value {_shown(record.value)} | headers [{headers}]"
    match parse_control(record):
        case EndTxnMarker(commit, coordinator_epoch):
            return f"{line} | {'COMMIT' if commit else 'ABORT'} by coordinator epoch {coordinator_epoch}"
        case LeaderChange(leader_id, voters):
            return f"{line} | leader {leader_id} of voters {list(voters)}"
        case OtherControl(kind):
            return f"{line} | control record of type {kind}"


def _shown(data: bytes | None) -> str:
    """Text where it is text, `null` for none; only the beginning of what is long."""
    if data is None:
        return "null"
    head = data[:_SHOWN_BYTES]
    text = head.decode(errors="backslashreplace")
    shown = text if text.isprintable() else repr(head)[1:].strip("'\"")
    return shown if len(data) <= _SHOWN_BYTES else f"{shown}... ({len(data)} bytes)"


def _entry_lines(path: Path, entry: Construct, base_offset: int) -> Iterator[str]:
    """Index entries by their declared fields, offsets made absolute."""
    data = path.read_bytes()
    width = entry.sizeof()
    # Apache Kafka makes index files larger than it needs and cuts them when it is done with them.
    reserved = len(data) - -(-len(data.rstrip(b"\0")) // width) * width
    if reserved < width:
        reserved = 0
    count = (len(data) - reserved) // width
    previous = -1
    for start in range(0, count * width, width):
        try:
            parsed = entry.parse(data[start : start + width])
        except ConstructError as error:
            raise _DamageError(f"the entry at byte {start} is of an unknown form") from error
        fields = {name: value for name, value in parsed.items() if name != "_io"}
        if "relative_offset" in fields:
            fields["offset"] = base_offset + fields.pop("relative_offset")
        yield " | ".join(f"{name.replace('_', ' ')} {value}" for name, value in fields.items())
        offset: int = fields["offset" if "offset" in fields else "last_offset"]
        if offset <= previous:
            raise _DamageError(
                f"the entry at byte {start} is for offset {offset}, the one before for {previous}"
            )
        previous = offset
    yield f"{count} entries"
    if reserved:
        yield f"{reserved} bytes reserved"
    elif len(data) % width:
        raise _DamageError(f"torn: {len(data) % width} bytes behind the last whole entry")


def _snapshot_lines(path: Path) -> Iterator[str]:
    entries = read_snapshot(path)
    for entry in entries:
        yield " | ".join(f"{name.replace('_', ' ')} {value}" for name, value in entry._asdict().items())
    yield f"{len(entries)} producers"


def _epoch_lines(path: Path) -> Iterator[str]:
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    entries = read_lines(path)
    for number, fields in enumerate(entries, start=1):
        try:
            epoch, start_offset = map(int, fields)
        except ValueError as error:
            raise _DamageError(f"entry {number} is not an epoch and an offset: {' '.join(fields)}") from error
        yield f"epoch {epoch} | start offset {start_offset}"
    yield f"{len(entries)} epochs"
