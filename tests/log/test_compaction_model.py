"""Compaction against a model: whatever was written, rolled, cleaned and restarted, each key keeps its last value."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pykafka_broker.clock import ManualClock
from pykafka_broker.log.cleaner import CleanerSettings
from pykafka_broker.protocol.records.compression import Codec
from tests.log.cleaning import RETENTION, clean, compacted, contents, keyed
from tests.log.samples import append, segment_bases

if TYPE_CHECKING:
    from pykafka_broker.log.producer_snapshot import SnapshotEntry

pairs = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "d", "e" * 20]), st.none() | st.sampled_from(["", "1", "2" * 60])
    ),
    min_size=1,
    max_size=6,
)


class CompactedLog(RuleBasedStateMachine):
    """The model is all that was ever written, and when cleaning first came past each deletion."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        self.clock = ManualClock()
        self.log = compacted(self.path, self.clock, segment_bytes=700)
        self.written: dict[int, tuple[str, str | None]] = {}
        self.met: dict[int, int] = {}
        self.sequence = 0

    def teardown(self) -> None:
        self.log.close(clean=False)
        shutil.rmtree(self.path)

    @rule(records=pairs, codec=st.sampled_from(Codec), idempotent=st.booleans())
    def write(self, records: list[tuple[str, str | None]], codec: Codec, idempotent: bool) -> None:
        producer = {}
        if idempotent:
            producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": self.sequence}
            self.sequence += len(records)
        (first,) = append(self.log, keyed(*records, codec=codec, timestamp=self.clock.wall_ms(), **producer))
        self.written |= {first + number: record for number, record in enumerate(records)}

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(ms=st.sampled_from([1, RETENTION // 2, RETENTION]))
    def wait(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule(map_bytes=st.sampled_from([1, 1000, 1 << 20]))
    def clean(self, map_bytes: int) -> None:
        before = contents(self.log)
        dirty = self.log.survey(self.log.log_end_offset)
        end = clean(self.log, self.clock, CleanerSettings(map_bytes=map_bytes))
        assert end > dirty.first_dirty_offset or dirty.cleanable_bytes == 0
        after = contents(self.log)
        assert [record for record in before if record[0] >= end] == [r for r in after if r[0] >= end]
        keys = [key for offset, key, _ in after if offset < end]
        assert len(keys) == len(set(keys)), "a key occurs twice in the clean part"
        for offset, _, value in after:
            if offset < end and value is None:
                assert self.clock.wall_ms() < self.met.get(offset, self.clock.wall_ms()) + RETENTION
                self.met.setdefault(offset, self.clock.wall_ms())

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def read_from_the_middle(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.log.log_end_offset - 1))
        expected = [found for found, _, _ in contents(self.log) if found >= offset]
        got = self.log.read(offset, 1 << 20, self.log.log_end_offset, True)
        assert bool(got.size) or not expected

    @rule(clean_stop=st.booleans())
    def restart(self, clean_stop: bool) -> None:
        before, states, dirty = contents(self.log), self._producers(), self.log.first_dirty_offset
        self.log.close(clean=clean_stop)
        self.log = compacted(self.path, self.clock, segment_bytes=700, clean=clean_stop)
        self.log.first_dirty_offset = dirty
        assert contents(self.log) == before
        assert {k: v for k, v in self._producers().items() if k in states} == states

    def _producers(self) -> dict[int, SnapshotEntry]:
        """Without their times: in a batch that lost its newest record to cleaning the time is that of what is left."""
        return {
            producer.producer_id: producer.to_snapshot()._replace(timestamp=0)
            for producer in self.log.producers
        }

    @invariant()
    def the_last_value_of_every_key_is_there(self) -> None:
        found = contents(self.log)
        offsets = [offset for offset, _, _ in found]
        assert offsets == sorted(set(offsets))
        assert all(self.written[offset] == (key, value) for offset, key, value in found)
        last = {key: (offset, value) for offset, (key, value) in self.written.items()}
        now = {key: (offset, value) for offset, key, value in found}
        for key, (offset, value) in last.items():
            if key not in now:
                assert value is None, f"{key} is lost"
                assert self.met[offset] + RETENTION <= self.clock.wall_ms()
            else:
                assert now[key] == (offset, value)

    @invariant()
    def the_figures_are_right(self) -> None:
        assert self.log.log_end_offset == len(self.written)
        assert self.log.size == sum(path.stat().st_size for path in self.log.directory.glob("*.log"))
        assert segment_bases(self.log) == [s.base_offset for s in self.log.segments_to_clean()[0]]


TestCompactedLog = CompactedLog.TestCase
TestCompactedLog.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
