"""What a log knows of its producers: who may write what next, and what readers of committed data may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.clock import ManualClock
from pykafka_broker.log.producer_snapshot import (
    SNAPSHOT,
    CorruptSnapshotError,
    SnapshotEntry,
    decode_snapshot,
    encode_snapshot,
    list_snapshots,
)
from pykafka_broker.log.producer_state import ProducerState
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import read_header
from pykafka_broker.protocol.records.control import read_marker
from tests.log.samples import NOW, batch, marker

if TYPE_CHECKING:
    from pathlib import Path

LAST_SEQUENCE = 2**31 - 1


class Written:
    """A state fed with batches as a log would."""

    def __init__(self, path: Path, clock: ManualClock | None = None) -> None:
        self.state = ProducerState(path, clock or ManualClock())
        self.end = 0

    def data(self, producer_id: int, sequence: int, count: int = 1, epoch: int = 0, **more: bool) -> None:
        header = read_header(batch(count, producer=(producer_id, epoch, sequence), **more))
        assert self.state.check(header) is None
        self.state.update(header, self.end)
        self.end += count

    def end_transaction(self, producer_id: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0):
        made = marker(producer_id, commit=commit, epoch=epoch, coordinator_epoch=coordinator_epoch)
        header, said = read_header(made), read_marker(made)
        assert said is not None
        self.state.check_marker(header, said)
        completed = self.state.update(header, self.end, said)
        self.end += 1
        return completed

    def answer(self, producer_id: int, sequence: int, count: int = 1, epoch: int = 0, **more: bool) -> str:
        """What would happen to this batch: taken, the offset of the batch it repeats, or the name of an error."""
        try:
            earlier = self.state.check(
                read_header(batch(count, producer=(producer_id, epoch, sequence), **more))
            )
        except KafkaError as error:
            return error.code.name
        return "taken" if earlier is None else f"repeats {earlier.first_offset}"


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def test_every_row_of_the_table(written: Written) -> None:
    assert written.answer(1, 1234) == "taken", "of an unknown producer"
    for sequence in range(0, 12, 2):
        written.data(1, sequence, 2, epoch=3)
    assert written.answer(1, 2, 2, epoch=3) == "repeats 2"
    assert written.answer(1, 0, 2, epoch=3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name, "the sixth last"
    assert written.answer(1, 10, 1, epoch=3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name, (
        "half a repetition"
    )
    assert written.answer(1, 12, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH.name
    assert written.answer(1, 12, epoch=3) == "taken"
    assert written.answer(1, 13, epoch=3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name
    assert written.answer(1, 0, epoch=4) == "taken"
    assert written.answer(1, 12, epoch=4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name


def test_sequences_start_again_after_the_last_one(written: Written) -> None:
    written.data(1, LAST_SEQUENCE - 1, 4)
    assert written.answer(1, 2) == "taken"
    assert written.answer(1, LAST_SEQUENCE - 1, 4) == "repeats 0"
    written.data(1, 2)
    assert written.answer(1, 2) == "repeats 4"


def test_a_producer_does_not_write_outside_of_its_open_transaction(written: Written) -> None:
    written.data(1, 0, transactional=True)
    assert written.answer(1, 1) == ErrorCode.INVALID_TXN_STATE.name
    written.end_transaction(1, commit=True)
    assert written.answer(1, 1) == "taken"


def test_a_marker_of_a_new_epoch_fences_the_old_one(written: Written) -> None:
    written.data(1, 0, transactional=True)
    written.end_transaction(1, commit=False, epoch=1)
    assert written.answer(1, 1) == ErrorCode.INVALID_PRODUCER_EPOCH.name
    assert written.answer(1, 0, epoch=1) == "taken"
    assert written.answer(1, 5, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name


def test_a_deposed_coordinator_ends_no_transaction(written: Written) -> None:
    written.data(1, 0, transactional=True)
    written.end_transaction(1, commit=True, coordinator_epoch=5)
    with pytest.raises(KafkaError) as error:
        written.end_transaction(1, commit=True, coordinator_epoch=4)
    assert error.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_the_last_stable_offset_waits_for_the_oldest_open_transaction(written: Written) -> None:
    stable = written.state.last_stable_offset
    written.data(1, 0, transactional=True)  # at 0
    written.data(2, 0, transactional=True)  # at 1
    assert (stable(2), written.state.first_undecided_offset) == (0, 0)
    ended = written.end_transaction(1, commit=False)  # at 2
    assert (ended.first_offset, ended.last_offset, ended.aborted, ended.last_stable_offset) == (0, 2, True, 1)
    assert stable(2) == 0, "the marker is not yet replicated"
    assert stable(3) == 1
    ended = written.end_transaction(2, commit=True)
    assert (ended.aborted, ended.last_stable_offset) == (False, 4)
    assert stable(4) == 4
    assert written.end_transaction(2, commit=True) is None, "a transaction without data here"


def test_producers_expire_but_not_in_an_open_transaction(tmp_path: Path) -> None:
    clock = ManualClock()
    written = Written(tmp_path, clock)
    written.data(1, 0)
    written.data(2, 0, transactional=True)
    clock.advance(86_399_999)
    assert written.state.expire() == 0
    clock.advance(1)
    assert written.state.expire() == 1
    assert [producer.producer_id for producer in written.state] == [2]


# Snapshots


entries = st.lists(
    st.builds(
        SnapshotEntry,
        producer_id=st.integers(0, 2**63 - 1),
        epoch=st.integers(0, 2**15 - 1),
        last_sequence=st.integers(-1, LAST_SEQUENCE),
        last_offset=st.integers(-1, 2**63 - 1),
        offset_delta=st.integers(0, LAST_SEQUENCE),
        timestamp=st.integers(-1, 2**63 - 1),
        coordinator_epoch=st.integers(-1, LAST_SEQUENCE),
        txn_first_offset=st.integers(-1, 2**63 - 1),
    ),
    max_size=5,
)


@given(made=entries)
def test_a_snapshot_reads_as_it_is_declared(made: list[SnapshotEntry]) -> None:
    data = encode_snapshot(made)
    assert decode_snapshot(data) == made
    declared = SNAPSHOT.parse(data)
    assert [entry.producer_id for entry in declared.entries] == [entry.producer_id for entry in made]


@given(made=entries.filter(bool), at=st.integers(0), flip=st.integers(1, 255))
def test_a_snapshot_with_a_changed_byte_is_refused(made: list[SnapshotEntry], at: int, flip: int) -> None:
    data = bytearray(encode_snapshot(made))
    data[at % len(data)] ^= flip
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(bytes(data))
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(encode_snapshot(made)[: at % len(data)])


def test_a_snapshot_brings_producers_and_transactions_back(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.data(1, 0, 3, transactional=True)
    written.data(2, 7, 2)
    assert written.state.take_snapshot() is not None
    assert written.state.take_snapshot() is None, "nothing happened since"
    restored = ProducerState(tmp_path, ManualClock())
    assert restored.restore(0, 5) == 5
    assert restored.last_stable_offset(5) == 0
    assert [tuple(producer.to_snapshot()) for producer in restored] == [
        tuple(producer.to_snapshot()) for producer in written.state
    ]


def test_the_newest_snapshot_within_the_log_counts(tmp_path: Path) -> None:
    written = Written(tmp_path)
    for sequence in range(4):
        written.data(1, sequence)
        written.state.take_snapshot()
    assert sorted(list_snapshots(tmp_path)) == [1, 2, 3, 4]
    restored = ProducerState(tmp_path, ManualClock())
    assert restored.restore(2, 3, tidy=False) == 3
    assert len(list_snapshots(tmp_path)) == 4
    assert restored.restore(2, 3) == 3
    assert sorted(list_snapshots(tmp_path)) == [2, 3]
    list_snapshots(tmp_path)[3].write_bytes(b"damaged")
    assert restored.restore(2, 3) == 2
    assert sorted(list_snapshots(tmp_path)) == [2]


def test_snapshots_that_start_no_segment_go_but_the_newest(tmp_path: Path) -> None:
    written = Written(tmp_path)
    for sequence in range(6):
        written.data(1, sequence)
        written.state.take_snapshot()
    written.state.remove_stray_snapshots([0, 2, 4])
    assert sorted(list_snapshots(tmp_path)) == [2, 4, 6]
    written.state.remove_stray_snapshots([0, 7])
    assert sorted(list_snapshots(tmp_path)) == []


def test_an_expired_producer_does_not_come_back(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.data(1, 0)
    written.state.take_snapshot()
    late = ProducerState(tmp_path, ManualClock(NOW + 86_400_000))
    late.restore(0, 1)
    assert len(late) == 0
