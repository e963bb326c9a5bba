from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import build_batch, read_header, verify_crc
from pykafka_broker.protocol.records.control import (
    EndTxnMarker,
    LeaderChange,
    OtherControl,
    end_txn_marker,
    parse_control,
    read_marker,
)
from pykafka_broker.protocol.records.record import Record


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_says_how_the_transaction_ended(commit):
    batch = end_txn_marker(
        commit=commit, producer_id=7, producer_epoch=2, coordinator_epoch=11, timestamp=99, base_offset=5
    )
    header = read_header(batch)
    assert verify_crc(batch, 0, header)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, -1)
    assert (header.base_offset, header.record_count, header.max_timestamp) == (5, 1, 99)
    assert read_marker(batch) == EndTxnMarker(commit, 11)


def test_the_bytes_of_a_marker_are_kafkas():
    record_bytes = end_txn_marker(
        commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=3, timestamp=0
    )[61:]
    # length 16, attributes, deltas, key of 4 bytes (version 0, type 1), value of 6 (version 0, epoch 3), no headers
    assert record_bytes.hex() == "20" + "000000" + "08" + "00000001" + "0c" + "000000000003" + "00"


def test_a_leader_change_names_the_leader_and_its_voters():
    key = bytes.fromhex("00000002")
    version_0 = bytes.fromhex("0000" + "00000003" + "02" + "00000001" + "00" + "01" + "00")
    assert parse_control(Record(key, version_0)) == LeaderChange(3, (1,), ())
    version_1 = bytes.fromhex("0001" + "00000003" + "02" + "00000001" + "ab" * 16 + "00" + "01" + "00")
    assert parse_control(Record(key, version_1)) == LeaderChange(3, (1,), ())


def test_unknown_control_records_are_told_apart():
    record = Record(bytes.fromhex("00000063"), b"whatever")
    assert parse_control(record) == OtherControl(99)
    assert read_marker(build_batch([record], control=True)) is None


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_a_broken_control_key_is_malformed(key):
    with pytest.raises(MalformedError):
        parse_control(Record(key, bytes(6)))


def test_a_short_marker_value_is_malformed():
    with pytest.raises(MalformedError):
        parse_control(Record(bytes(4), bytes(5)))
