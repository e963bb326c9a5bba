"""Record batches as part of generated requests: right ones, and ones with a fault."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from compat_tests.wire import resealed
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import MAGIC, iter_headers, records_bytes
from pykafka_broker.protocol.records.compression import Codec

if TYPE_CHECKING:
    from random import Random

    from compat_tests.differential.symbols import Symbols

FAULTS = (
    "crc",
    "magic",
    "short",
    "count",
    "empty",
    "control",
    "log-append",
    "negative count",
    "large",
    "size",
    "codec",
)
CODECS = {0: [0, 0, 1, 2], 1: [0, 0, 0, 1, 2, 3], 2: [0, 0, 0, 1, 2, 3, 4]}
BATCHES_ONLY_SINCE = 3
SHAPELESS = {"short", "empty", "size", "magic", "count", "negative count", "codec"}
_ATTRIBUTES_AT, MAGIC_AT, _LAST_DELTA_AT, _COUNT_AT, _SIZE_AT = 21, 16, 23, 57, 8


@dataclass(frozen=True, slots=True)
class Batches:
    """What to produce; made into bytes by each side, as producers have other ids on each."""

    values: tuple[bytes, ...]
    codec: int
    producer_id: int
    epoch: int
    sequence: int
    timestamp: int
    fault: str | None
    times: int
    magic: int = MAGIC
    key: bytes | None = None

    def __len__(self) -> int:
        return len(bytes(self))

    def __bytes__(self) -> bytes:
        return b"".join(bytes(self._one()) for _ in range(self.times))

    def _one(self) -> bytearray:
        if self.magic < MAGIC:
            return self._messages()
        is_large = self.fault == "large"
        builder = DefaultRecordBatchBuilder(
            2, 0 if is_large else self.codec, False, self.producer_id, self.epoch, self.sequence, 1 << 30
        )
        for n, value in enumerate((b"x" * 1_100_000,) if is_large else self.values):
            builder.append(n, self.timestamp, self.key, value, [])
        return _with_fault(bytearray(builder.build()), self.fault)

    def of_today(self) -> Batches:
        """The same records in a batch, as a broker makes it of old messages."""
        time = self.timestamp if self.magic else -1
        return replace(self, magic=MAGIC, timestamp=time)

    def _messages(self) -> bytearray:
        """Of an old format, in a wrapper where they are packed."""
        builder = LegacyRecordBatchBuilder(self.magic, self.codec, 1 << 30)
        for n, value in enumerate(self.values):
            builder.append(n, self.timestamp, self.key, value)
        made = bytearray(builder.build())
        return made[:-3] if self.fault == "short" else _with_fault(made, "crc" if self.fault else None)


def _with_fault(made: bytearray, fault: str | None) -> bytearray:
    match fault:
        case "crc":
            made[-1] ^= 1
        case "magic":
            made[MAGIC_AT] = 3
        case "short":
            return made[:-3]
        case "empty":
            return bytearray()
        case "size":
            struct.pack_into(">i", made, _SIZE_AT, 5)
        case "count" | "negative count":
            struct.pack_into(">i", made, _COUNT_AT, 7 if fault == "count" else -1)
            return resealed(made)
        case "control" | "transactional" | "log-append" | "codec":
            made[_ATTRIBUTES_AT + 1] |= {"control": 32, "transactional": 16, "log-append": 8, "codec": 7}[
                fault
            ]
            return resealed(made)
    return made


def any_batches(random: Random, producers: list[int], now: int, version: int) -> Batches:
    """Mostly right; half of them from a producer that numbers its batches. Old versions take old formats, too."""
    known = bool(producers) and random.random() < 0.5
    producer = random.choice(producers) if known else random.choice([-1] * 12 + [424_242])
    magic = random.choice([0, 1, 1, 2]) if version < BATCHES_ONLY_SINCE else MAGIC
    return Batches(
        magic=magic,
        key=None if magic == MAGIC else b"k",
        values=tuple(b"v%d" % n for n in range(random.choice([1, 1, 2, 3]))),
        codec=random.choice(CODECS[magic]),
        producer_id=producer,
        epoch=-1 if producer == -1 else random.choice([0, 0, 0, 0, 1, 5]),
        sequence=-1 if producer == -1 else random.choice([0, 0, 0, 1, 1, 2, 3, 9, -1]),
        timestamp=now + random.choice([0, 0, 1, 5, 10, 1000, -1000, 7_200_000]),
        fault=random.choice(FAULTS) if random.random() < 0.15 else None,
        times=2 if random.random() < 0.05 else 1,
    )


def described(records: Any, symbols: Symbols) -> Any:
    """Fetched records, batch by batch: all but the times a broker set itself."""
    if records is None:
        return None
    data = bytes(records)
    if len(data) > MAGIC_AT and data[MAGIC_AT] < MAGIC:
        return {"messages": _messages(data)}
    found = []
    try:
        for at, header in iter_headers(memoryview(data)):
            told = header._asdict()
            producer = told["producer_id"]
            if producer >= 0:
                told["producer_id"] = symbols.name("producer", producer)
            if header.codec is not Codec.NONE:  # a broker that packs anew may do it a little better or worse
                told["batch_length"] = 0
            body = bytes(records_bytes(memoryview(data), at, header))
            found.append(
                {**{name: str(value) for name, value in told.items() if name != "crc"}, "body": body}
            )
    except (MalformedError, struct.error):
        return data
    return {"batches": found}


def _messages(data: bytes) -> list[Any]:
    """What a client finds in messages of an old format: Kafka fills what room is left with the beginning of another."""
    found: list[Any] = []
    batches = MemoryRecords(data)
    try:
        while (one := batches.next_batch()) is not None:
            found += [(record.offset, record.timestamp, record.key, record.value) for record in one]
    except RuntimeError:
        found.append("LZ4 as before 0.10, which kafka-python does not unpack without help")
    return found
