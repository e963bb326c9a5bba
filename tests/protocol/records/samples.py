"""Records to build batches from, drawn by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from pykafka_broker.protocol.records.record import Record

optional_bytes = st.none() | st.binary(max_size=200)
timestamps = st.integers(min_value=0, max_value=1 << 45)
headers = st.lists(st.tuples(st.text(max_size=10), optional_bytes), max_size=3).map(tuple)
records = st.lists(
    st.builds(
        Record,
        key=optional_bytes,
        value=optional_bytes,
        timestamp=timestamps,
        headers=headers,
        offset=st.just(-1),
    ),
    min_size=1,
    max_size=20,
)
