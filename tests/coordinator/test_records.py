"""Bytes that Apache Kafka 4.3.1 wrote to its __consumer_offsets, read and written again."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.coordinator import records
from pykafka_broker.coordinator.effects import Record
from pykafka_broker.coordinator.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_record,
    encode_record,
)
from pykafka_broker.protocol.errors import MalformedError
from tests.protocol.strategies import messages

TOPIC_ID = UUID("9aeb43d4-eb0d-47e1-a171-25b9df8bc9f0")

# A classic group at its birth and with a member, its offsets, and all records of a consumer group.
WRITTEN_BY_KAFKA = [
    ("00020007636c6173736963", "0003000000000000ffffffff000001a1ee5b100100000000"),
    (
        "00020006737461746963",
        (
            "00030008636f6e73756d657200000001000572616e67650029696e73742d33376135363766352d383066632d343337632d61316135"
            "2d613536333662333733393833000001a1ee5b11ac000000010029696e73742d33376135363766352d383066632d343337632d6131"
            "61352d6135363336623337333938330004696e7374000772646b61666b61000a2f3132372e302e302e31000493e00000afc8000000"
            "170003000000010001740000000000000000ffffffff000000000019000000000001000174000000020000000000000001000000"
            "00"
        ),
    ),
    (
        "00010007636c617373696300017400000000",
        "000400000000000000070000000001000001a1ee5b11560100109aeb43d4eb0d47e1a17125b9df8bc9f0",
    ),
    (
        "000500036e657700163965326a577a4176514775624d5472546d5873564877",
        "000000000872646b61666b610b2f3132372e302e302e310107285e742e2a29000493e00001000100",
    ),
    ("000800036e657700163965326a577a4176514775624d5472546d5873564877", "0000000000010000000000010100"),
    ("001000036e65770006285e742e2a29", "0000020274000000000000004d000001a1ee5b126100"),
    ("000300036e6577", "000000000002010008d75733529ac214de"),
    (
        "000700036e657700163965326a577a4176514775624d5472546d5873564877",
        "0000029aeb43d4eb0d47e1a17125b9df8bc9f00300000000000000010000",
    ),
    ("000600036e6577", "000000000002010008000001a1ee5b25e3"),
    (
        "000800036e657700163965326a577a4176514775624d5472546d5873564877",
        "0000000000020000000100029aeb43d4eb0d47e1a17125b9df8bc9f00300000000000000010100090300000002000000020100",
    ),
    ("001000036e65770006285e742e2a29", None),
    ("000300036e6577", "00000000000300"),
]


@pytest.mark.parametrize(("key", "value"), WRITTEN_BY_KAFKA)
def test_what_kafka_wrote_is_written_back_byte_for_byte(key: str, value: str | None) -> None:
    key_bytes, value_bytes = bytes.fromhex(key), None if value is None else bytes.fromhex(value)
    record = decode_record(key_bytes, value_bytes)
    assert record is not None
    assert encode_record(record) == (key_bytes, value_bytes)


def test_an_offset_reads_as_kafka_meant_it() -> None:
    key, value = WRITTEN_BY_KAFKA[2]
    assert decode_record(bytes.fromhex(key), bytes.fromhex(value or "")) == Record(
        OffsetCommitKey(group="classic", topic="t", partition=0),
        OffsetCommitValue(
            offset=7, leader_epoch=0, metadata="", commit_timestamp=1795000308054, topic_id=TOPIC_ID
        ),
    )


def test_an_offset_with_a_time_to_expire_is_written_in_the_version_that_has_one() -> None:
    record = Record(
        OffsetCommitKey(group="g", topic="t", partition=3),
        OffsetCommitValue(offset=1, metadata="m", commit_timestamp=10, expire_timestamp=20),
    )
    _, value = encode_record(record)
    assert value is not None
    assert value[:2] == b"\0\1"
    assert decode_record(*encode_record(record)) == record


def test_an_offset_of_a_very_old_broker_is_read_under_todays_key() -> None:
    key = bytes.fromhex("000000016700017400000003")
    value = bytes.fromhex("000000000000000000050000000000000000000a")
    assert decode_record(key, value) == Record(
        OffsetCommitKey(group="g", topic="t", partition=3), OffsetCommitValue(offset=5, commit_timestamp=10)
    )


def test_a_group_of_an_old_version_has_defaults_for_what_it_lacks() -> None:
    value = bytes.fromhex("00010008636f6e73756d657200000002ffffffff00000000")
    assert decode_record(b"\0\2\0\1g", value) == Record(
        GroupMetadataKey(group="g"),
        GroupMetadataValue(protocol_type="consumer", generation=2, protocol=None, leader=None),
    )


def test_types_for_other_purposes_are_skipped() -> None:
    for kind in (9, 10, 15, 17, 99):
        assert decode_record(kind.to_bytes(2, "big") + b"whatever", b"\0\0whatever") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", None),
        (b"\0", None),
        (b"\0\2\0\7g", None),
        (b"\0\2\0\1g", b""),
        (b"\0\2\0\1g", b"\0\x09"),
        (b"\0\2\0\1g", b"\0\3\0"),
    ],
)
def test_bytes_that_are_no_record_are_malformed(key: bytes, value: bytes | None) -> None:
    with pytest.raises(MalformedError):
        decode_record(key, value)


PAIRS = [
    (cls, getattr(records, name.removesuffix("Key") + "Value"))
    for name, cls in vars(records).items()
    if name.endswith("Key")
]


@pytest.mark.parametrize(("key_class", "value_class"), PAIRS)
@given(data=st.data())
def test_every_record_comes_back_as_it_was(key_class: type, value_class: type, data: st.DataObject) -> None:
    version = {GroupMetadataValue: 3, OffsetCommitValue: 4}.get(value_class, 0)
    record = Record(data.draw(messages(key_class, 0)), data.draw(st.none() | messages(value_class, version)))
    assert decode_record(*encode_record(record)) == record
