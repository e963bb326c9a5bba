"""The checker of histories: it is silent about what a log may do, and names each promise that is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_tests.cluster.history import NO_PLACE, History, Record, group_violations, violations

if TYPE_CHECKING:
    from compat_tests.cluster.history import Log


@st.composite
def honest(draw: st.DrawFn) -> tuple[History, Log]:
    """A log that kept its promises, and clients that each saw a part of it."""
    history, log = History(), {}
    for partition in range(draw(st.integers(1, 3))):
        sent = [b"%d:%d" % (partition, number) for number in range(draw(st.integers(0, 12)))]
        history.sent[partition] = sent
        # A write that was never acknowledged is there or not: both are fine.
        stored = dict(enumerate(value for value in sent if draw(st.integers(0, 4))))
        log[partition] = stored
        records = [Record(partition, *entry) for entry in stored.items()]
        history.acknowledged += [record for record in records if draw(st.booleans())]
        for reader in ("one", "two"):
            start = draw(st.integers(0, len(records)))
            again = draw(st.integers(0, start))
            history.reads[reader] += records[:start] + records[again:]
    return history, log


@given(honest())
def test_an_honest_log_is_not_accused(case: tuple[History, Log]) -> None:
    assert violations(*case) == []


def stored_somewhere(case: tuple[History, Log]) -> bool:
    return any(case[1].values())


told = honest().filter(lambda case: case[0].acknowledged and case[0].reads["one"])


@given(told, st.data())
def test_an_acknowledged_write_that_is_not_there_is_named(
    case: tuple[History, Log], data: st.DataObject
) -> None:
    history, log = case
    victim = data.draw(st.sampled_from(history.acknowledged))
    del log[victim.partition][victim.offset]
    assert any("acknowledged write lost" in text and repr(victim.value) in text for text in violations(*case))


@given(told, st.data())
def test_a_committed_read_that_is_not_there_is_named(case: tuple[History, Log], data: st.DataObject) -> None:
    history, log = case
    victim = data.draw(st.sampled_from(history.reads["one"]))
    del log[victim.partition][victim.offset]
    assert any("committed read lost" in text and repr(victim.value) in text for text in violations(*case))


@given(told, st.data())
def test_bytes_that_changed_between_two_reads_are_named_even_if_the_log_agrees_with_one(
    case: tuple[History, Log], data: st.DataObject
) -> None:
    history, _ = case
    victim = data.draw(st.sampled_from(history.reads["one"]))
    history.reads["two"].append(victim._replace(value=b"other"))
    assert any(f"two values at {victim.partition}@{victim.offset}" in text for text in violations(*case))


@given(honest().filter(stored_somewhere), st.data())
def test_what_nobody_sent_is_named(case: tuple[History, Log], data: st.DataObject) -> None:
    history, log = case
    partition = data.draw(st.sampled_from([p for p, stored in log.items() if stored]))
    history.sent[partition].remove(log[partition][len(log[partition]) - 1])
    assert any("nobody sent" in text for text in violations(*case))


@pytest.mark.parametrize("values", [[b"a", b"c", b"b"], [b"a", b"a", b"b"], [b"a", b"b", b"a"]])
def test_a_reordered_or_doubled_record_is_named_where_it_was_excluded(values: list[bytes]) -> None:
    history, log = History(sent={0: [b"a", b"b", b"c"]}), {0: dict(enumerate(values))}
    assert any("written twice" in text for text in violations(history, log))
    history.exactly_once = False
    assert violations(history, log) == []


def test_an_acknowledged_write_without_a_place_must_be_somewhere() -> None:
    history = History(sent={0: [b"a", b"b"]})
    history.acknowledged = [Record(0, NO_PLACE, b"a"), Record(0, NO_PLACE, b"b")]
    assert violations(history, {0: {0: b"a", 1: b"b"}}) == []
    assert violations(history, {0: {0: b"a"}}) == ["acknowledged write lost: b'b' is nowhere in partition 0"]


def test_a_hole_in_a_log_is_named() -> None:
    history = History(sent={0: [b"a", b"b"]})
    assert violations(history, {0: {0: b"a", 2: b"b"}}) == ["partition 0 went from offset 0 to 2"]
    assert violations(history, {0: {1: b"a", 2: b"b"}}) == ["partition 0 went from offset -1 to 1"]


def test_a_group_that_missed_a_record_or_forgot_a_position_is_named() -> None:
    log = {0: {0: b"a", 1: b"b"}}
    history = History(committed={0: 2})
    history.reads["m1"] = [Record(0, 0, b"a")]
    history.reads["m2"] = [Record(0, 1, b"b")]
    assert group_violations(history, ["m1", "m2"], log, {0: 2}) == []
    assert group_violations(history, ["m1"], log, {0: 2}) == ["no member saw 0@1"]
    assert len(group_violations(history, ["m1", "m2"], log, {0: 1})) == 1
    assert len(group_violations(history, ["m1", "m2"], log, {})) == 1
