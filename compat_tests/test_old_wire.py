"""The old wire byte by byte: Produce 0-2, Fetch 0-3, ListOffsets 0, with the answers of Apache Kafka 3.9.1.

Messages are built by kafka-python and damaged by hand; what a library would never send is sent here.
"""

from __future__ import annotations

import gzip
import struct
import time
import zlib
from typing import TYPE_CHECKING

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from compat_tests.wire import FETCH, LIST_OFFSETS, PRODUCE, Wire, batch, string

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.servers import Server

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
OK, UNKNOWN_SERVER_ERROR, OUT_OF_RANGE, CORRUPT, UNKNOWN_TOPIC = 0, -1, 1, 2, 3
TOO_LARGE, BAD_ACKS, UNSUPPORTED_VERSION, UNSUPPORTED_CODEC, INVALID_RECORD = 10, 21, 35, 76, 87
THEN_MS = 1_700_000_000_000
EVERY_OLD_FETCH = pytest.mark.parametrize("version", [0, 1, 2, 3])


@pytest.fixture
def wire(against: str, broker: Server) -> Iterator[Wire]:
    if against == "kafka-4.3.1":
        pytest.skip("Apache Kafka 4 does not speak the old wire")
    with Wire(broker.port) as connection:
        yield connection


def messages(
    *values: bytes, magic: int = 1, codec: int = NONE, key: bytes | None = b"k", timestamp: int = THEN_MS
) -> bytearray:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 30)
    for n, value in enumerate(values):
        builder.append(n, timestamp + n, key, value)
    return bytearray(builder.build())


def sealed(data: bytearray) -> bytearray:
    """The one message in `data` with its size and checksum made right again."""
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
    return data


def patched(at: int, form: str, value: int, seal: bool = True) -> bytearray:
    data = messages(b"abc")
    struct.pack_into(form, data, at, value)
    return sealed(data) if seal else data


def damaged(data: bytearray) -> bytearray:
    data[-1] ^= 1
    return data


def wrapper(inner: bytes, offset: int = 0, codec: int = GZIP, packed: bool = True) -> bytearray:
    data = messages(gzip.compress(inner) if packed else inner, key=None)
    data[17] = codec
    struct.pack_into(">q", data, 0, offset)
    return sealed(data)


def without_value() -> bytearray:
    data = messages(b"a", key=None)[:-5] + struct.pack(">i", -1)
    data[17] = GZIP
    return sealed(data)


def produce(
    wire: Wire, topic: str, records: bytes | bytearray, version: int = 2, acks: int = -1
) -> tuple[int, int]:
    """Error and base offset."""
    body = struct.pack(">hii", acks, 5000, 1) + string(topic) + struct.pack(">iii", 1, 0, len(records))
    answer = wire.request(PRODUCE, version, body + bytes(records))
    _, error, offset = struct.unpack_from(">ihq", answer, 4 + 2 + len(topic) + 4)
    return error, offset


def fetch(
    wire: Wire, topic: str, version: int, offset: int = 0, max_bytes: int = 1 << 20
) -> tuple[int, int, bytes]:
    """Error, high watermark and messages."""
    limit = struct.pack(">i", 1 << 20) if version >= 3 else b""
    place = string(topic) + struct.pack(">iiqi", 1, 0, offset, max_bytes)
    answer = wire.request(
        FETCH, version, struct.pack(">iii", -1, 300, 1) + limit + struct.pack(">i", 1) + place
    )
    at = (4 if version >= 1 else 0) + 4 + 2 + len(topic) + 4 + 4
    error, high_watermark, size = struct.unpack_from(">hqi", answer, at)
    return error, high_watermark, answer[at + 14 : at + 14 + size]


def read(data: bytes) -> list[tuple[int, int | None, bytes | None, bytes | None]]:
    batches, found = MemoryRecords(data), []
    while (one := batches.next_batch()) is not None:
        assert one.validate_crc()
        found += [(record.offset, record.timestamp, record.key, record.value) for record in one]
    return found


def segments_before(wire: Wire, topic: str, timestamp: int, most: int) -> tuple[int, tuple[int, ...]]:
    place = string(topic) + struct.pack(">iiqi", 1, 0, timestamp, most)
    answer = wire.request(LIST_OFFSETS, 0, struct.pack(">ii", -1, 1) + place)
    at = 4 + 2 + len(topic) + 4 + 4
    error, count = struct.unpack_from(">hi", answer, at)
    return error, struct.unpack_from(f">{count}q", answer, at + 6)


TAKEN = {
    "format 0": messages(b"a", magic=0),
    "a message cut at the end": messages(b"a", b"b")[:-1],
    "a message that says the log set its time": patched(17, ">b", 0x08),
    "a wrapper with a cut message inside": wrapper(bytes(messages(b"a", b"b"))[:-1]),
    "a wrapper of offset 0": wrapper(bytes(messages(b"a", b"b", b"c"))),
    "more bytes than the value has": patched(31, ">i", 1),
    "no time": messages(b"a", timestamp=-1),
    "a batch": batch(b"a"),
    "a batch packed with Zstandard": batch(b"a" * 200, codec=ZSTD),
}
REFUSED = {
    "a wrong checksum": (CORRUPT, damaged(messages(b"a", b"b"))),
    "a wrong checksum inside": (CORRUPT, wrapper(damaged(messages(b"a")))),
    "too few bytes for a message": (CORRUPT, patched(8, ">i", 13, seal=False)),
    "a negative size": (CORRUPT, patched(8, ">i", -5, seal=False)),
    "a format of the future": (CORRUPT, patched(16, ">b", 3, seal=False)),
    "a negative format": (CORRUPT, patched(16, ">b", -1, seal=False)),
    "two formats": (INVALID_RECORD, messages(b"a", magic=0) + messages(b"b")),
    "a message and a batch": (INVALID_RECORD, messages(b"a") + batch(b"b")),
    "two batches": (INVALID_RECORD, batch(b"a") + batch(b"b")),
    "two wrappers": (INVALID_RECORD, messages(b"a", codec=GZIP) * 2),
    "a message and a wrapper": (INVALID_RECORD, messages(b"a") + messages(b"b", codec=GZIP)),
    "an empty wrapper": (INVALID_RECORD, wrapper(b"")),
    "a wrapper without a value": (INVALID_RECORD, without_value()),
    "a wrapper in a wrapper": (INVALID_RECORD, wrapper(bytes(messages(b"a", codec=GZIP)))),
    "another format inside": (INVALID_RECORD, wrapper(bytes(messages(b"a", magic=0)))),
    "a wrapper's offset below those inside": (INVALID_RECORD, wrapper(bytes(messages(b"a", b"b", b"c")), 1)),
    "a wrapper packed with Zstandard": (INVALID_RECORD, patched(17, ">b", ZSTD)),
    "a codec nobody knows": (UNKNOWN_SERVER_ERROR, patched(17, ">b", 5)),
    "a wrapper that does not unpack": (UNKNOWN_SERVER_ERROR, wrapper(b"no gzip at all, is it", packed=False)),
    "a key longer than the message": (UNKNOWN_SERVER_ERROR, patched(26, ">i", 1000)),
    "a negative time": (UNKNOWN_SERVER_ERROR, messages(b"a", timestamp=-7)),
}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_old_version_takes_every_old_format_and_codec(wire, topic, version):
    name, end = topic(), 0
    for magic in (0, 1):
        for codec in (NONE, GZIP, SNAPPY, LZ4) if magic else (NONE, GZIP, SNAPPY):
            assert produce(wire, name, messages(b"a", b"b", magic=magic, codec=codec), version) == (OK, end)
            end += 2


@pytest.mark.parametrize("what", TAKEN)
def test_taken(wire, topic, what):
    assert produce(wire, topic(), TAKEN[what]) == (OK, 0)


@pytest.mark.parametrize("what", REFUSED)
def test_refused(wire, topic, what):
    code, data = REFUSED[what]
    name = topic()
    assert produce(wire, name, data) == (code, -1)
    assert wire.end_offset(name) == 0


@pytest.mark.parametrize(
    "data",
    [b"", messages(b"a")[:-1], messages(b"a")[:16], batch(b"a")[:-1]],
    ids=["none", "cut", "head", "cut batch"],
)
def test_nothing_whole_is_nothing_wrong(wire, topic, data):
    assert produce(wire, topic(), data) == (OK, -1)


def test_the_limit_holds_for_each_message_and_for_the_batch_made_of_them(wire, topic):
    name = topic(max_message_bytes=1000)
    assert produce(wire, name, messages(b"a" * 1000)) == (TOO_LARGE, -1)
    assert produce(wire, name, messages(*[b"a" * 400] * 3)) == (TOO_LARGE, -1)
    assert produce(wire, name, messages(*[b"a" * 400] * 3, codec=GZIP)) == (OK, 0)
    packed = topic(max_message_bytes=1000, compression_type="gzip")
    assert produce(wire, packed, messages(*[b"a" * 400] * 3)) == (OK, 0)
    assert produce(wire, packed, messages(b"a" * 1000)) == (TOO_LARGE, -1)


def test_what_holds_for_every_producer_holds_for_old_ones(wire, topic):
    assert produce(wire, topic(cleanup_policy="compact"), messages(b"a", key=None)) == (INVALID_RECORD, -1)
    assert produce(wire, topic(), messages(b"a"), acks=2) == (BAD_ACKS, -1)
    assert produce(wire, "nobody-made-it", messages(b"a"))[0] == UNKNOWN_TOPIC


@EVERY_OLD_FETCH
@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY])
def test_a_batch_of_today_is_read_in_the_format_of_the_version(wire, topic, version, codec):
    name = topic()
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 30)
    for n in range(3):
        builder.append(n, THEN_MS + n, b"k", b"%d" % n * 200, [("lost", b"x")])
    wire.produce_one(name, bytes(builder.build()))
    error, high_watermark, data = fetch(wire, name, version, offset=1)
    assert (error, high_watermark) == (OK, 3)
    first = 1 if codec == NONE else 0
    assert read(data) == [
        (n, THEN_MS + n if version >= 2 else None, b"k", b"%d" % n * 200) for n in range(first, 3)
    ]


@EVERY_OLD_FETCH
def test_the_time_of_the_log_is_told_where_there_is_a_place_for_it(wire, topic, version):
    name = topic(message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000) - 1000
    assert produce(wire, name, messages(b"a", b"b")) == (OK, 0)
    times = {timestamp for _, timestamp, _, _ in read(fetch(wire, name, version)[2])}
    assert len(times) == 1
    assert times.pop() == pytest.approx(before, abs=60_000) if version >= 2 else times == {None}


@EVERY_OLD_FETCH
def test_zstandard_is_not_for_old_readers(wire, topic, version):
    name = topic()
    produce(wire, name, messages(b"a"))
    wire.produce_one(name, batch(b"b" * 200, codec=ZSTD))
    assert [record[0] for record in read(fetch(wire, name, version)[2])] == [0]
    assert fetch(wire, name, version, offset=1) == (UNSUPPORTED_CODEC, -1, b"")
    packed = topic(compression_type="zstd")
    assert produce(wire, packed, messages(b"a", codec=GZIP)) == (OK, 0)
    assert fetch(wire, packed, version) == (UNSUPPORTED_CODEC, -1, b"")


@EVERY_OLD_FETCH
def test_a_topic_may_be_closed_to_old_readers(wire, topic, version):
    name = topic(message_downconversion_enable="false")
    assert produce(wire, name, messages(b"a")) == (OK, 0)
    assert fetch(wire, name, version) == (UNSUPPORTED_VERSION, -1, b"")


@EVERY_OLD_FETCH
def test_a_reader_outside_of_the_log_or_without_one_is_told(wire, topic, version):
    assert fetch(wire, topic(), version, offset=9) == (OUT_OF_RANGE, -1, b"")
    assert fetch(wire, "nobody-made-it", version) == (UNKNOWN_TOPIC, -1, b"")


@EVERY_OLD_FETCH
def test_a_batch_larger_than_asked_for_comes_from_version_3_on(wire, topic, version):
    name = topic()
    produce(wire, name, messages(b"a" * 100))
    error, _, data = fetch(wire, name, version, max_bytes=20)
    assert (error, len(read(data))) == (OK, 1 if version >= 3 else 0)


def test_offsets_of_segments_are_told_newest_first(wire, topic):
    name = topic(segment_bytes=1 << 20)
    assert segments_before(wire, name, -1, 5) == (OK, (0,))
    for _ in range(3):
        produce(wire, name, messages(b"a" * 900_000))
    far = 1 << 50
    assert segments_before(wire, name, -1, 100) == (OK, (3, 2, 1, 0))
    assert segments_before(wire, name, -1, 2) == (OK, (3, 2))
    assert segments_before(wire, name, -2, 100) == (OK, (0,))
    assert segments_before(wire, name, far, 1) == (OK, (3,))
    assert segments_before(wire, name, 5, 100) == (OK, ())
    assert segments_before(wire, name, -1, 0) == (OK, ())
    assert segments_before(wire, name, -3, 1) == (UNSUPPORTED_VERSION, ())
    assert segments_before(wire, "nobody-made-it", -1, 1) == (UNKNOWN_TOPIC, ())
