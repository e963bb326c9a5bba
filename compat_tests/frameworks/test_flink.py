"""Flink's Kafka connector, at least once: from a topic into another, killed, and carried on."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from compat_tests.frameworks.flink import CONNECTOR, Jobs
from compat_tests.frameworks.topics import Reader, Said, wait_for_commit, write

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server


def lines(name: str, count: int) -> list[Said]:
    return [Said(None, f"{name} {number}", partition=number % 2) for number in range(count)]


def capitals(*texts: list[Said]) -> set[str]:
    return {str(record.value).upper() for text in texts for record in text}


@pytest.mark.long
@pytest.mark.client("Flink Kafka connector", CONNECTOR)
@pytest.mark.feature("flink: source to sink", "flink: killed and restored")
@pytest.mark.parametrize("restored", ["checkpoint", "committed-offsets"])
def test_a_killed_job_goes_on_and_loses_nothing(
    broker: Server, topic: MakeTopic, fresh_name: str, tmp_path: Path, restored: str
) -> None:
    source, sink = topic(2), topic(2)
    before, during, after = lines("before", 500), lines("during", 2000), lines("after", 500)
    with (
        closing(Jobs(broker, fresh_name, source, sink, tmp_path)) as jobs,
        Reader(broker.bootstrap, sink) as out,
    ):

        def arrived() -> Counter[str | None]:
            return Counter(value for _, value in out.pull())

        write(broker.bootstrap, source, before)
        first = jobs.start()
        out.wait(lambda: capitals(before) <= set(arrived()), "the first lines arrive")
        wait_for_commit(broker.bootstrap, jobs.group, source)
        write(broker.bootstrap, source, during)
        first.kill()
        write(broker.bootstrap, source, after)
        second = jobs.start(jobs.last_checkpoint() if restored == "checkpoint" else None)
        everything = capitals(before, during, after)
        out.wait(lambda: everything <= set(arrived()), "nothing is lost")
        second.finish()
        found = arrived()
        assert set(found) == everything
        # What had been committed when it was killed is not written again.
        assert {found[line] for line in capitals(before)} == {1}
