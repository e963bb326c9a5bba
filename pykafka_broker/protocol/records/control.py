"""Control records: what a broker itself writes between the records of clients."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from construct import (
    Array,
    Bytes,
    Const,
    ConstructError,
    If,
    Int16sb,
    Int32sb,
    Struct,
    VarInt,
    this,
)

from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.protocol.records.record import Record, iter_records

if TYPE_CHECKING:
    from pykafka_broker.protocol.records.compression import Bytes as Buffer

CONTROL_KEY = Struct("version" / Int16sb, "type" / Int16sb)

END_TXN_VALUE = Struct("version" / Int16sb, "coordinator_epoch" / Int32sb)

# Compact arrays carry their length plus one; a struct of a flexible message ends in a count of tags.
_VOTERS = Struct(
    "count_plus_one" / VarInt,
    "items"
    / Array(
        this.count_plus_one - 1,
        Struct("id" / Int32sb, "directory_id" / If(this._._.version >= 1, Bytes(16)), "tags" / Const(b"\0")),
    ),
)
LEADER_CHANGE_VALUE = Struct(
    "version" / Int16sb,
    "leader_id" / Int32sb,
    "voters" / _VOTERS,
    "granting_voters" / _VOTERS,
    "tags" / Const(b"\0"),
)


class ControlType(enum.IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@dataclass(frozen=True, slots=True)
class EndTxnMarker:
    """The end of a producer's transaction on this partition."""

    commit: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """A KRaft quorum elected a leader."""

    leader_id: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OtherControl:
    """A control record that means nothing to us; readers skip it."""

    type: int


ControlRecord = EndTxnMarker | LeaderChange | OtherControl


def end_txn_marker(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch that commits or aborts a producer's transaction."""
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return build_batch(
        [
            Record(
                key=CONTROL_KEY.build({"version": 0, "type": kind}),
                value=END_TXN_VALUE.build({"version": 0, "coordinator_epoch": coordinator_epoch}),
                timestamp=timestamp,
            )
        ],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def parse_control(record: Record) -> ControlRecord:
    """What a record of a control batch says. MalformedError if its bytes make no sense."""
    try:
        key = CONTROL_KEY.parse(record.key or b"")
        if key.version < 0:
            raise MalformedError(f"control record key of version {key.version}")
        # later versions only add fields at the end, so they are read as the ones known here
        match key.type:
            case ControlType.ABORT | ControlType.COMMIT:
                value = END_TXN_VALUE.parse(record.value or b"")
                return EndTxnMarker(key.type == ControlType.COMMIT, value.coordinator_epoch)
            case ControlType.LEADER_CHANGE:
                value = LEADER_CHANGE_VALUE.parse(record.value or b"")
                return LeaderChange(
                    value.leader_id,
                    tuple(voter.id for voter in value.voters["items"]),
                    tuple(voter.id for voter in value.granting_voters["items"]),
                )
            case _:
                return OtherControl(key.type)
    except ConstructError as error:
        raise MalformedError(f"control record: {type(error).__name__}") from error


def read_marker(batch_view: Buffer) -> EndTxnMarker | None:
    """The transaction marker in the control batch at the start of `batch_view`.

    None if it holds something else, or nothing: compaction may have emptied it.
    """
    for record in iter_records(batch_view):
        control = parse_control(record)
        return control if isinstance(control, EndTxnMarker) else None
    return None
