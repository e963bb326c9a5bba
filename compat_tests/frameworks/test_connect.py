"""Kafka Connect: lines of a file through a topic into another file, by one worker and by a cluster of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.frameworks.connect import sink, source
from compat_tests.frameworks.topics import bounds, configs
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from compat_tests.conftest import MakeTopic
    from compat_tests.frameworks.conftest import MakeConnect
    from compat_tests.frameworks.connect import Connect, Worker

NEWEST, OLDER = "4.3.1", "3.9.1"
SECONDS = 90
CREATE = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
"""The source makes its topic itself."""


def named(*versions: str, long: bool) -> list:
    marks = [pytest.mark.long] if long else []
    return [pytest.param(v, marks=[pytest.mark.client("Kafka Connect", v), *marks]) for v in versions]


BOTH = pytest.mark.parametrize("version", named(NEWEST, OLDER, long=True))
NEWEST_ALWAYS = pytest.mark.parametrize("version", [*named(NEWEST, long=False), *named(OLDER, long=True)])


class Lines:
    """The file that is read and the file that is written."""

    def __init__(self, home: Path) -> None:
        self.read, self.written = home / "in.txt", home / "out.txt"
        self.told: list[str] = []

    def tell(self, count: int) -> None:
        """Append lines nobody wrote before."""
        new = [f"line {len(self.told) + n}" for n in range(count)]
        with self.read.open("a") as file:
            file.writelines(f"{line}\n" for line in new)
        self.told += new

    def arrived(self) -> list[str]:
        whole = self.written.read_text().rpartition("\n")[0] if self.written.exists() else ""
        return whole.splitlines()

    def mend(self) -> None:
        """End a line that a killed sink had written half of; whole it comes again, and shall stand alone."""
        if self.written.exists() and not self.written.read_text().endswith("\n"):
            with self.written.open("a") as file:
                file.write("\n")

    def wait(self, enough: Callable[[list[str]], object], worker: Worker, what: str) -> None:
        try:
            wait_until(lambda: enough(self.arrived()), what, SECONDS)
        except AssertionError as late:
            told = f"{len(self.arrived())} of {len(self.told)} lines"
            raise AssertionError(f"{late}: {told}\n{worker.tail()}") from None

    def all_in_order(self, worker: Worker) -> None:
        self.wait(lambda found: len(found) >= len(self.told), worker, "every line arrives")
        assert self.arrived() == self.told

    def none_lost(self, worker: Worker) -> None:
        self.wait(lambda found: set(self.told) <= set(found), worker, "no line is lost")


def through(connect: Connect, lines: Lines, topic: str) -> dict[str, dict[str, str]]:
    return {"source": source(lines.read, topic, **CREATE), "sink": sink(lines.written, topic)}


def create(worker: Worker, connectors: dict[str, dict[str, str]]) -> None:
    for name, config in connectors.items():
        worker.change("PUT", f"/connectors/{name}/config", config)


def running(worker: Worker, *connectors: str) -> set[str]:
    """The workers on which the tasks of connectors run, once they do."""
    found: list[tuple[str, str]] = []

    def all_run() -> bool:
        nonlocal found
        found = [worker.task(name) for name in connectors]
        return {state for state, _ in found} == {"RUNNING"}

    wait_until(all_run, f"{connectors} run\n{worker.tail()}", SECONDS)
    return {where for _, where in found}


@pytest.mark.feature("connect: standalone", "connect: stopped and started")
@NEWEST_ALWAYS
def test_lines_go_through_a_topic_and_a_stopped_worker_goes_on_where_it_was(
    connect: MakeConnect, topic: MakeTopic, version: str
) -> None:
    at_work, name = connect(version), topic()
    lines = Lines(at_work.home)
    lines.tell(100)
    worker = at_work.standalone(**through(at_work, lines, name))
    lines.all_in_order(worker)
    worker.stop()
    lines.tell(100)
    lines.all_in_order(at_work.standalone(**through(at_work, lines, name)))
    assert bounds(at_work.broker.bootstrap, name) == {(name, 0): (0, 200)}


@pytest.mark.feature("connect: standalone", "connect: killed and replaced")
@BOTH
def test_a_killed_worker_loses_no_line(connect: MakeConnect, fresh_name: str, version: str) -> None:
    at_work = connect(version)
    lines = Lines(at_work.home)
    lines.tell(5000)
    worker = at_work.standalone(**through(at_work, lines, fresh_name))
    lines.wait(lambda found: found, worker, "lines arrive")
    worker.kill()
    lines.mend()
    lines.tell(1000)
    lines.none_lost(at_work.standalone(**through(at_work, lines, fresh_name)))


@pytest.mark.feature("connect: distributed", "connect: killed and replaced", "connect: internal topics")
@BOTH
def test_a_cluster_goes_on_when_a_worker_is_killed_and_replaced(
    connect: MakeConnect, fresh_name: str, version: str
) -> None:
    at_work = connect(version)
    lines = Lines(at_work.home)
    lines.tell(1000)
    first, second = (worker.wait_until_up() for worker in (at_work.distributed(), at_work.distributed()))
    create(first, through(at_work, lines, fresh_name))
    lines.none_lost(first)
    assert internal_topics(at_work) == {
        "config": ("compact", 1),
        "offset": ("compact", 3),
        "status": ("compact", 2),
    }
    wait_until(lambda: len(running(first, "source", "sink")) == 2, "the workers share the tasks", SECONDS)
    lines.tell(1000)
    (where,) = running(first, "source")  # the sink, on the other worker, writes on
    killed, left = (first, second) if where == first.address else (second, first)
    killed.kill()
    lines.none_lost(left)
    wait_until(
        lambda: running(left, "source", "sink") == {left.address}, "all runs on the worker left", SECONDS
    )
    third = at_work.distributed().wait_until_up()
    wait_until(
        lambda: running(third, "source", "sink") == {left.address, third.address},
        "the new worker has its share",
        SECONDS,
    )
    lines.tell(1000)
    lines.none_lost(third)


@pytest.mark.feature("connect: distributed", "connect: stopped and started", "connect: offsets altered")
@BOTH
def test_a_cluster_that_was_stopped_remembers_everything_and_can_be_told_to_begin_again(
    connect: MakeConnect, fresh_name: str, version: str
) -> None:
    at_work = connect(version)
    lines = Lines(at_work.home)
    lines.tell(300)
    worker = at_work.distributed().wait_until_up()
    create(worker, through(at_work, lines, fresh_name))
    lines.all_in_order(worker)
    worker.stop()
    lines.tell(300)
    worker = at_work.distributed().wait_until_up()
    lines.all_in_order(worker)
    begin_again(worker)
    lines.wait(lambda found: len(found) >= 1800, worker, "what was in the topic, and the file once more")
    # The sink reads the topic from its beginning, the source appends the whole file to it.
    assert lines.arrived() == lines.told * 3


def begin_again(worker: Worker) -> None:
    """Stop both connectors, forget the offsets of the sink, set that of the source to nought, and let them run."""
    for name in ("source", "sink"):
        worker.change("PUT", f"/connectors/{name}/stop")
    wait_until(
        lambda: not any(tasks_of(worker, name) for name in ("source", "sink")), "both are stopped", SECONDS
    )
    (kept,) = worker.call("GET", "/connectors/source/offsets")["offsets"]
    worker.change("PATCH", "/connectors/source/offsets", {"offsets": [{**kept, "offset": {"position": 0}}]})
    worker.change("DELETE", "/connectors/sink/offsets")
    for name in ("source", "sink"):
        worker.change("PUT", f"/connectors/{name}/resume")


def tasks_of(worker: Worker, connector: str) -> Iterable[object]:
    told = worker.seen(f"/connectors/{connector}/status")
    return told["tasks"] if told and told["connector"]["state"] == "STOPPED" else ["not stopped"]


def internal_topics(at_work: Connect) -> dict[str, tuple[str, int]]:
    """Cleanup policy and partitions of each."""
    found = {}
    for kind in ("config", "offset", "status"):
        name = at_work.internal(kind)
        policy = configs(at_work.broker.bootstrap, name)["cleanup.policy"]
        found[kind] = policy, len(bounds(at_work.broker.bootstrap, name))
    return found
