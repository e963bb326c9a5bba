"""A crash at any byte: what comes back is the longest run of whole batches, and everything that is known about it."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka_broker.protocol.records.batch import iter_headers
from tests.log.samples import append, append_marker, batch, marker, open_log, producer_states, read_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafka_broker.log.partition_log import PartitionLog

INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex", ".snapshot")


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """What reaches the disk is proven elsewhere; here it only takes time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        patch.setattr(os, "fdatasync", lambda fd: None)
        yield


class Step(NamedTuple):
    """One append: of a producer (-1: none), its batch in or outside of a transaction, or the end of one."""

    producer_id: int
    count: int
    size: int
    ends: bool | None  # an abort (False) or commit (True) instead of data


steps = st.lists(
    st.builds(
        Step,
        producer_id=st.sampled_from([-1, 7, 8]),
        count=st.integers(1, 4),
        size=st.integers(0, 120),
        ends=st.sampled_from([None, None, None, True, False]),
    ),
    min_size=1,
    max_size=25,
)


def write(log: PartitionLog, taken: list[Step], epochs: int, flush_after: int) -> None:
    sequences = {7: 0, 8: 0}
    for number, step in enumerate(taken):
        if step.producer_id < 0:
            append(log, batch(step.count, size=step.size), leader_epoch=number // epochs)
        elif step.ends is None:
            producer = (step.producer_id, 0, sequences[step.producer_id])
            made = batch(step.count, size=step.size, producer=producer, transactional=step.producer_id == 8)
            append(log, made, leader_epoch=number // epochs)
            sequences[step.producer_id] += step.count
        else:
            append_marker(log, marker(8, commit=step.ends))
        if number == flush_after:
            log.flush()


def damage(path: Path, how: int, byte: int) -> None:
    """Takes an index file away, cuts it, makes it longer, or writes noughts or something else into it."""
    data = bytearray(path.read_bytes())
    where = byte % max(len(data), 1)
    match how:
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(data[:where])
        case 2:
            path.write_bytes(data + b"\0" * (1 + byte % 40))
        case 3:
            data[where:] = bytes(len(data) - where)
            path.write_bytes(data)
        case _:
            data[where : where + 8] = bytes((byte + i) % 256 for i in range(len(data[where : where + 8])))
            path.write_bytes(data)


@settings(max_examples=80)
@given(
    taken=steps,
    segment_bytes=st.integers(600, 1500),
    interval=st.sampled_from([0, 200, 4096]),
    epochs=st.integers(3, 12),
    flush_after=st.integers(-1, 25),
    cut=st.integers(0, 1 << 16),
    damages=st.lists(
        st.tuples(st.integers(0, 1 << 16), st.integers(0, 4), st.integers(0, 1 << 16)), max_size=6
    ),
)
def test_a_log_cut_anywhere_comes_back_as_its_longest_whole_beginning(
    taken: list[Step],
    segment_bytes: int,
    interval: int,
    epochs: int,
    flush_after: int,
    cut: int,
    damages: list[tuple[int, int, int]],
) -> None:
    home = Path(tempfile.mkdtemp())
    config = {"segment_bytes": segment_bytes, "index_interval_bytes": interval}
    try:
        log = open_log(home / "a", **config)
        write(log, taken, epochs, flush_after)
        recovery_point = log.recovery_point
        log.close(clean=False)

        active = max((home / "a" / "topic-0").glob("*.log"))
        flushed = max(int(active.stem), recovery_point)
        whole = active.read_bytes()
        least = sum(header.size for _, header in iter_headers(whole) if header.last_offset < flushed)
        length = least + cut % (len(whole) - least + 1)
        active.write_bytes(whole[:length])
        kept = [whole[at : at + header.size] for at, header in iter_headers(whole[:length])]
        for path in sorted((home / "a" / "topic-0").glob("*.log"))[:-1]:
            data = path.read_bytes()
            kept = [*kept, *(data[at : at + header.size] for at, header in iter_headers(data))]
        kept.sort()  # a batch begins with its offset

        # Below the recovery point the disk keeps its word; what has been synced is not damaged by a crash.
        bases = sorted(int(path.stem) for path in (home / "a" / "topic-0").glob("*.log"))
        first_unflushed = max([base for base in bases if base <= recovery_point], default=0)
        for pick, how, byte in damages:
            files = sorted(
                path
                for path in (home / "a" / "topic-0").iterdir()
                if path.suffix in INDEX_SUFFIXES
                and (int(path.stem) >= first_unflushed or path.suffix == ".snapshot" or how == 0)
                and not (path.suffix == ".txnindex" and int(path.stem) < first_unflushed)
            )
            if files:
                damage(files[pick % len(files)], how, byte)

        again = open_log(home / "a", recovery_point=recovery_point, **config)
        assert read_all(again) == kept

        # The same batches, replayed one after another into a log that never saw a crash.
        replayed = open_log(home / "b", **config)
        for made in kept:
            replayed.append_as_follower(made)
        assert (again.log_start_offset, again.log_end_offset) == (0, replayed.log_end_offset)
        assert again.recovery_point <= again.log_end_offset
        assert producer_states(again) == producer_states(replayed)
        assert again.leader_epochs.entries == replayed.leader_epochs.entries
        end = again.log_end_offset
        assert again.aborted_transactions(0, end) == replayed.aborted_transactions(0, end)
        assert again.last_stable_offset(end) == replayed.last_stable_offset(end)
        assert again.max_timestamp() == replayed.max_timestamp()

        # And it goes on as if nothing had happened, through a clean stop too.
        assert append(again, batch(2)) == [end]
        again.close()
        once_more = open_log(home / "a", clean=True, **config)
        assert read_all(once_more)[:-1] == kept
        assert producer_states(once_more) == producer_states(replayed)
    finally:
        shutil.rmtree(home)


@settings(max_examples=40)
@given(
    taken=steps,
    segment_bytes=st.integers(600, 1500),
    where=st.integers(0, 1 << 16),
    what=st.integers(1, 255),
)
def test_behind_a_damaged_byte_nothing_is_kept_and_before_it_everything(
    taken: list[Step], segment_bytes: int, where: int, what: int
) -> None:
    home = Path(tempfile.mkdtemp())
    try:
        log = open_log(home, segment_bytes=segment_bytes, index_interval_bytes=0)
        write(log, taken, 99, -1)
        log.close(clean=False)
        files = sorted((home / "topic-0").glob("*.log"))
        data = b"".join(path.read_bytes() for path in files)
        where %= len(data)
        before, at_fault = [], -1
        for at, header in iter_headers(data):
            if at + header.size <= where:
                before.append(data[at : at + header.size])
            elif at <= where:
                at_fault = where - at
        start = 0
        for path in files:
            content = bytearray(path.read_bytes())
            if start <= where < start + len(content):
                content[where - start] ^= what
                path.write_bytes(content)
            start += len(content)
        again = open_log(home, segment_bytes=segment_bytes, index_interval_bytes=0)
        found = read_all(again)
        assert found[: len(before)] == before
        # Offset and epoch of a batch lie outside of its checksum: there a flaw may pass for truth.
        if at_fault >= 16:
            assert found == before
        end = again.log_end_offset
        assert append(again, batch(2)) == [end]
    finally:
        shutil.rmtree(home)
