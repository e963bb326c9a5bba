"""A broker killed while a cleaned segment takes the place of old ones: at whichever step, nothing is lost."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.clock import ManualClock
from tests.log.cleaning import clean, compacted, contents, keyed
from tests.log.samples import append, append_marker, marker, read_all, segment_bases

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.log.partition_log import PartitionLog


class Killed(BaseException):
    """What no code catches, as nothing runs after kill -9."""


def dirty_log(path: Path) -> PartitionLog:
    """Three segments that become one, with an aborted transaction, and a fourth that stays."""
    log = compacted(path)
    log.append_as_leader(keyed(("a", "1"), ("b", "1")), 0)
    log.roll()
    append(log, keyed(("a", "2")))
    append(log, keyed(("c", "9"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True))
    append_marker(log, marker(5, commit=False))
    log.roll()
    append(log, keyed(("c", "3"), ("a", "3")))
    log.roll()
    append(log, keyed(("d", "4")))
    log.flush()
    return log


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int) -> Callable[[], int]:
    """From the given file operation on nothing reaches the disk; gives how many there were."""
    steps = 0

    def dying(operation: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object, **more: object) -> object:
            nonlocal steps
            steps += 1
            if steps > step:
                raise Killed
            return operation(*arguments, **more)

        return run

    for name in ("rename", "unlink"):
        monkeypatch.setattr(Path, name, dying(getattr(Path, name)))
    return lambda: steps


def steps_of_a_cleaning(tmp_path: Path) -> int:
    with pytest.MonkeyPatch.context() as counting:
        log = dirty_log(tmp_path / "counted")
        count = kill_at(counting, 1 << 30)
        clean(log, ManualClock())
        return count()


OLD = [
    (0, "a", "1"),
    (1, "b", "1"),
    (2, "a", "2"),
    (3, "c", "9"),
    (5, "c", "3"),
    (6, "a", "3"),
    (7, "d", "4"),
]
NEW = [(1, "b", "1"), (5, "c", "3"), (6, "a", "3"), (7, "d", "4")]


def test_a_kill_at_any_step_leaves_the_old_log_or_the_new(tmp_path: Path) -> None:
    count = steps_of_a_cleaning(tmp_path)
    assert count > 20
    outcomes = []
    for step in range(count + 1):
        path = tmp_path / str(step)
        log = dirty_log(path)
        with pytest.MonkeyPatch.context() as killing:
            kill_at(killing, step)
            if step < count:
                with pytest.raises(Killed):
                    clean(log, ManualClock())
            else:
                clean(log, ManualClock())
        recovered = compacted(path, recovery_point=7)
        found = contents(recovered)
        assert found in (OLD, NEW), f"killed at step {step}"
        outcomes.append(found == NEW)
        check_tidy(recovered)
        assert recovered.aborted_transactions(0, 8) == [(5, 3)]
        clean(recovered, ManualClock())
        assert contents(recovered) == NEW
    assert outcomes == sorted(outcomes), "once the new log is decided for, it stays"
    assert not outcomes[0]
    assert outcomes[-1]


def test_a_second_kill_while_the_first_is_made_good_changes_nothing(tmp_path: Path) -> None:
    for step in range(steps_of_a_cleaning(tmp_path)):
        for second in range(6):
            path = tmp_path / f"{step}-{second}"
            log = dirty_log(path)
            with pytest.MonkeyPatch.context() as killing:
                kill_at(killing, step)
                with pytest.raises(Killed):
                    clean(log, ManualClock())
            with pytest.MonkeyPatch.context() as killing:
                kill_at(killing, second)
                with contextlib.suppress(Killed):
                    compacted(path, recovery_point=7)
            recovered = compacted(path, recovery_point=7)
            assert contents(recovered) in (OLD, NEW), f"killed at steps {step} and {second}"
            assert recovered.aborted_transactions(0, 8) == [(5, 3)], f"killed at steps {step} and {second}"


def check_tidy(log: PartitionLog) -> None:
    """Nothing of the cleaning lies around, and every log has its indexes."""
    names = {path.name for path in log.directory.iterdir()}
    assert not {name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))}
    for base in segment_bases(log):
        assert {f"{base:020}.index", f"{base:020}.timeindex"} <= names
    assert log.size == sum(path.stat().st_size for path in log.directory.glob("*.log"))
    assert sum(len(batch) for batch in read_all(log)) == log.size
