"""A log held against a list: whatever is done to it, it keeps the batches a list would keep."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pykafka_broker.clock import ManualClock
from pykafka_broker.protocol.records.batch import read_header
from tests.log.samples import NOW, append, batch, open_log, producer_states, read, segment_bases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafka_broker.log.partition_log import PartitionLog


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """What reaches the disk is proven elsewhere; here it only takes time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        patch.setattr(os, "fdatasync", lambda fd: None)
        yield


@dataclass(frozen=True)
class Kept:
    """One batch of the model."""

    first: int
    last: int
    data: bytes
    timestamp: int
    producer_id: int


class LogAgainstList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        self.clock = ManualClock()
        self.settings = {"segment_bytes": 600, "index_interval_bytes": 150, "retention_ms": -1}
        self.log: PartitionLog = open_log(self.path, self.clock, **self.settings)
        self.kept: list[Kept] = []
        self.start = 0
        self.end = 0
        self.written: list[
            tuple[int, int, int]
        ] = []  # last offset, producer id, next sequence of all but the cut off

    def teardown(self) -> None:
        self.log.close(clean=False)
        shutil.rmtree(self.path)

    @rule(
        count=st.integers(1, 4),
        size=st.integers(0, 80),
        late=st.integers(0, 5),
        producer_id=st.sampled_from([-1, -1, 7, 8]),
    )
    def append(self, count: int, size: int, late: int, producer_id: int) -> None:
        timestamp = NOW - late
        sequence = next((after for _, who, after in reversed(self.written) if who == producer_id), 0)
        producer = (producer_id, 0, sequence) if producer_id >= 0 else None
        (first,) = append(self.log, batch(count, size=size, timestamp=timestamp, producer=producer))
        assert first == self.end
        self.end += count
        self.written.append((self.end - 1, producer_id, sequence + count))
        data = read(self.log, first)
        self.kept.append(Kept(first, self.end - 1, data[: read_header(data).size], timestamp, producer_id))

    @rule(counts=st.lists(st.integers(1, 4), min_size=5, max_size=12))
    def append_many(self, counts: list[int]) -> None:
        for number, count in enumerate(counts):
            self.append(count, 20 * count, number % 6, 7 if number % 2 else -1)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        offset = self.start + round(where * (self.end - self.start))
        self.log.truncate_to(offset)
        cut = [batch for batch in self.kept if batch.last >= offset]
        if cut:
            self.end = cut[0].first
            self.kept = [batch for batch in self.kept if batch.last < offset]
        self.start = min(self.start, self.end)
        self.written = [made for made in self.written if made[0] < self.end]

    @rule(where=st.floats(0, 1))
    def advance_start(self, where: float) -> None:
        offset = self.start + round(where * (self.end - self.start))
        self.log.advance_start(offset)
        self.start = max(self.start, offset)

    @rule(limit=st.integers(0, 3000))
    def retain(self, limit: int) -> None:
        """Only whole segments go, from the front. Producers are remembered longer than what they wrote."""
        self.log.update_config(replace(self.log.config, retention_bytes=limit))
        before, bases = self.log.size, segment_bases(self.log)
        gone = self.log.apply_retention(self.log.log_end_offset)
        if gone and bases[gone:]:
            assert segment_bases(self.log) == bases[gone:]
            assert self.log.size >= limit or self.start >= bases[gone]
        elif not gone:
            assert self.log.size == before
        first = segment_bases(self.log)[0]
        self.start = max(self.start, first)
        self.kept = [made for made in self.kept if made.first >= first]

    @rule(clean=st.booleans(), flush=st.booleans())
    def reopen(self, clean: bool, flush: bool) -> None:
        if flush:
            self.log.flush()
        states, epochs = producer_states(self.log), self.log.leader_epochs.entries
        self.log.close(clean=clean)
        self.log = open_log(
            self.path,
            self.clock,
            clean=clean,
            recovery_point=self.log.recovery_point,
            log_start_offset=self.start,
            **self.settings,
        )
        assert producer_states(self.log) == states
        assert self.log.leader_epochs.entries == tuple(entry for entry in epochs if entry[1] < self.end)

    @invariant()
    def spans_the_same_offsets(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        assert self.log.recovery_point <= self.end

    @invariant()
    def every_offset_leads_to_its_batch(self) -> None:
        for made in self.kept:
            for offset in {max(made.first, self.start), made.last}:
                if offset >= self.start and made.last >= self.start:
                    data = read(self.log, offset)
                    assert data[: len(made.data)] == made.data
                    assert read(self.log, offset, upto=made.last + 1) == made.data

    @invariant()
    def sizes_add_up(self) -> None:
        on_disk = sum(path.stat().st_size for path in self.log.directory.glob("*.log"))
        assert self.log.size == on_disk == sum(len(made.data) for made in self.kept)

    @invariant()
    def times_are_found(self) -> None:
        readable = [made for made in self.kept if made.last >= self.start]
        for late in range(6):
            found = self.log.offset_for_timestamp(NOW - late)
            first = next((made for made in readable if made.timestamp >= NOW - late), None)
            if first is None:
                assert found is None
            else:
                assert found is not None
                assert (found.offset, found.timestamp) == (max(first.first, self.start), first.timestamp)
        newest = self.log.max_timestamp()
        largest = max((made.timestamp for made in self.kept), default=None)
        assert (newest.timestamp if newest else None) == largest


TestLogAgainstList = LogAgainstList.TestCase
TestLogAgainstList.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
