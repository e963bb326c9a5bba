"""What is to be done later, by a clock that may be set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.coordinator.deadlines import Deadlines
from pykafka_broker.coordinator.group import Decision

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 4), st.integers(0, 50)),
        st.tuples(st.just("cancel"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("pass"), st.just(0), st.integers(1, 30)),
        st.tuples(st.just("clock"), st.just(0), st.integers(-1000, 1000)),
    )
)


def run(deadlines: Deadlines, now: int) -> None:
    for do in deadlines.due(now):
        do(Decision())


@given(STEPS)
def test_each_is_done_once_in_its_time_however_the_clock_is_set(steps: list[tuple[str, int, int]]) -> None:
    deadlines, done = Deadlines(), []
    elapsed, ahead = 0, 10_000
    expected: dict[int, int] = {}
    for step, key, amount in steps:
        if step == "set":
            at = elapsed + amount
            deadlines.set(key, at + ahead, lambda _, __, key=key, at=at: done.append((key, at)))
            expected[key] = at
        elif step == "cancel":
            deadlines.cancel(key)
            expected.pop(key, None)
        elif step == "clock":
            deadlines.shift(amount)
            ahead += amount
        else:
            elapsed += amount
            done.clear()
            run(deadlines, elapsed + ahead)
            due = {(key, at) for key, at in expected.items() if at <= elapsed}
            assert set(done) == due
            assert len(done) == len(due)
            expected = {key: at for key, at in expected.items() if at > elapsed}
        following = deadlines.next()
        assert (following is None) <= (not expected)
        if following is not None and expected:
            assert following <= min(expected.values()) + ahead
