"""Rows kept by field read, compare and travel as the rows they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.protocol.codec import decode, encode
from pykafka_broker.protocol.columns import Columns
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

VERSIONS = pytest.mark.parametrize("version", range(11))


def row(index: int, metadata: str | None = "") -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=index, committed_offset=index * 7, committed_metadata=metadata
    )


def over_the_wire(rows: list[OffsetCommitRequestPartition], version: int) -> Any:
    request = OffsetCommitRequest(topics=[OffsetCommitRequestTopic(name="t", partitions=rows)])
    data = b"".join(encode(request, version))
    return decode(OffsetCommitRequest, version, memoryview(data)).topics[0].partitions


notes = st.sampled_from(["", None, "\0", "x"])


@VERSIONS
@given(data=st.data())
def test_rows_arrive_whether_or_not_they_are_of_one_width(version: int, data: st.DataObject) -> None:
    rows = [row(index, note) for index, note in enumerate(data.draw(st.lists(notes, max_size=5)))]
    got = over_the_wire(rows, version)
    assert isinstance(got, Columns)
    assert got == rows
    assert rows == got
    assert got != [*rows, row(9)]


@VERSIONS
@pytest.mark.parametrize("note", ["", None, "n"])
def test_many_rows_arrive(version: int, note: str | None) -> None:
    rows = [row(index, note) for index in range(3_000)]
    assert over_the_wire(rows, version) == rows


@VERSIONS
def test_rows_are_indexed_and_sliced_like_a_list(version: int) -> None:
    rows = [row(index) for index in range(5)]
    got = over_the_wire(rows, version)
    assert (len(got), got[1], got[-1], got[1:3]) == (5, rows[1], rows[4], rows[1:3])
    assert rows[2] in got


@VERSIONS
@pytest.mark.parametrize("count", [0, 1, 2, 2_000])
def test_an_answer_by_column_is_the_answer_by_row(version: int, count: int) -> None:
    columns = Columns(OffsetCommitResponsePartition, (range(count), [index % 90 for index in range(count)]))
    answers = [
        OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=partitions)])
        for partitions in (columns, list(columns))
    ]
    first, second = (b"".join(encode(answer, version)) for answer in answers)
    assert first == second
    assert decode(OffsetCommitResponse, version, first).topics[0].partitions == list(columns)


@VERSIONS
def test_a_count_beyond_the_bytes_is_malformed(version: int) -> None:
    data = bytearray(b"".join(encode(OffsetCommitRequest(topics=[]), version)))
    rows = b"".join(
        encode(OffsetCommitRequest(topics=[OffsetCommitRequestTopic(partitions=[row(1)])]), version)
    )
    for size in range(len(rows)):
        with pytest.raises(MalformedError):
            decode(OffsetCommitRequest, version, rows[:size])
    assert decode(OffsetCommitRequest, version, data).topics == []
