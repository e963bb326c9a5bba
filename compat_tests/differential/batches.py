"""Record batches as part of generated requests: right ones, and ones with a fault."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compat_tests.wire import batch, resealed
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import iter_headers

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
SHAPELESS = {"short", "empty", "size", "magic", "count", "negative count", "codec"}
_ATTRIBUTES_AT, _MAGIC_AT, _LAST_DELTA_AT, _COUNT_AT, _SIZE_AT = 21, 16, 23, 57, 8


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

    def __len__(self) -> int:
        return len(bytes(self))

    def __bytes__(self) -> bytes:
        return b"".join(bytes(self._one()) for _ in range(self.times))

    def _one(self) -> bytearray:
        values = (b"x" * 1_100_000,) if self.fault == "large" else self.values
        made = batch(
            *values,
            codec=0 if self.fault == "large" else self.codec,
            producer_id=self.producer_id,
            epoch=self.epoch,
            sequence=self.sequence,
            timestamp=self.timestamp,
        )
        return _with_fault(made, self.fault)


def _with_fault(made: bytearray, fault: str | None) -> bytearray:
    match fault:
        case "crc":
            made[-1] ^= 1
        case "magic":
            made[_MAGIC_AT] = 3
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


def any_batches(random: Random, producers: list[int], now: int) -> Batches:
    """Mostly right; half of them from a producer that numbers its batches."""
    known = bool(producers) and random.random() < 0.5
    producer = random.choice(producers) if known else random.choice([-1] * 12 + [424_242])
    return Batches(
        values=tuple(b"v%d" % n for n in range(random.choice([1, 1, 2, 3]))),
        codec=random.choice([0, 0, 0, 1, 2, 3, 4]),
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
    found = []
    try:
        for at, header in iter_headers(memoryview(data)):
            told = header._asdict()
            producer = told["producer_id"]
            if producer >= 0:
                told["producer_id"] = symbols.name("producer", producer)
            body = data[at + 61 : at + 12 + struct.unpack_from(">i", data, at + 8)[0]]
            found.append(
                {**{name: str(value) for name, value in told.items() if name != "crc"}, "body": body}
            )
    except (MalformedError, struct.error):
        return data
    return {"size": len(data), "batches": found}
