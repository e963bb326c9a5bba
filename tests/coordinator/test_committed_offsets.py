"""The records of a commit are the same, packed and replayed together or one by one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.coordinator.effects import Record
from pykafka_broker.coordinator.offsets import Offsets
from pykafka_broker.coordinator.records import (
    CommittedOffsets,
    GroupMetadataKey,
    OffsetCommitValue,
    TopicOffsets,
    decode_record,
    encode_record,
)
from pykafka_broker.coordinator.records.batches import batch_of
from pykafka_broker.protocol.records.plain_batch import build_plain_batch
from pykafka_broker.protocol.records.record import iter_records
from pykafka_broker.protocol.types import ZERO_UUID, spec_of

int32, int64 = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
names = st.text(max_size=4) | st.integers(60, 70).map(lambda size: "n" * size)
metadata = st.sampled_from(["", "", "a note"])


@st.composite
def topics(draw: st.DrawFn) -> TopicOffsets:
    count = draw(st.integers(1, 4) | st.sampled_from([63, 64, 65, 130]))
    first = draw(st.tuples(int64, int32, metadata, int64))
    rows = [first] * (count - 1) + [draw(st.tuples(int64, int32, metadata, int64))]
    columns: Any = zip(*rows, strict=True)
    topic_id = draw(st.just(ZERO_UUID) | st.uuids())
    return TopicOffsets(draw(names), topic_id, range(count), *columns)


commits = st.builds(
    CommittedOffsets, names, st.lists(topics(), min_size=1, max_size=2), st.just(-1) | st.integers(0, 1 << 40)
)


@given(st.lists(commits, min_size=1, max_size=4), st.integers(0, 1 << 40))
def test_they_are_written_as_single_records_are(several: list[CommittedOffsets], now: int) -> None:
    one_by_one = [encode_record(record) for some in several for record in some]
    assert batch_of(several, now) == build_plain_batch(one_by_one, now)


def test_offset_deltas_of_every_width_are_written() -> None:
    many = TopicOffsets("t", UUID(int=1), *[range(9_000)] * 3, ("",) * 9_000, range(9_000))
    batch = batch_of([CommittedOffsets("g", [many])] * 2, 5)
    found = list(iter_records(batch))
    assert [record.offset for record in found] == list(range(18_000))
    keys = [decode_record(record.key or b"", record.value) for record in found]
    assert [record.key.partition for record in keys if record] == [*range(9_000)] * 2


def test_records_of_other_kinds_lie_between_them() -> None:
    one = CommittedOffsets("g", [TopicOffsets("t", UUID(int=1), (3,), (7,), (0,), ("",), (9,))])
    other = [Record(GroupMetadataKey(group="g"), None)]
    expected = [encode_record(record) for record in (*one, *other, *one)]
    assert batch_of([one, other, one], 5) == build_plain_batch(expected, 5)


@given(commits)
def test_they_are_replayed_as_single_records_are(committed: CommittedOffsets) -> None:
    together, single = Offsets(), Offsets()
    for offsets in (together, single):
        for record in committed:
            offsets.put(record.key, record.value, producer_id=7)  # a transaction they overtake
    together.put_all(committed)
    for record in committed:
        single.put(record.key, record.value)
    for offsets in (together, single):
        offsets.end_transaction(7, committed=True)
    assert plain(together, committed.group) == plain(single, committed.group)


def plain(offsets: Offsets, group: str) -> Any:
    names = [field.name for field in spec_of(OffsetCommitValue).fields]
    return {
        (topic, partition): [getattr(value, name) for name in names]
        for topic, partitions in offsets.of_group(group).items()
        for partition, value in partitions.items()
    }
