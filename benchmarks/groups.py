"""Consumer groups: joining, surviving members that are killed, committing, and loading what was committed."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from benchmarks import groups_wire as wire
from benchmarks.contenders import POLL_SECONDS, START_SECONDS, Contender, create_topic
from benchmarks.groups_commits import commit_all
from benchmarks.groups_members import ClassicMember, ConsumerMember, Member, Setting, join_and_lose
from benchmarks.rounds import Goal, Lab, Metric, Row, Sample, Section
from benchmarks.wire import WireError
from compat_tests.servers import HOST

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.wire import Connection

NO_SLOWER = Goal(1.0, at_least=False)
NO_FEWER = Goal(1.0, at_least=True)
JOINED = Metric("joined", "joined s", NO_SLOWER)
REASSIGNED = Metric("reassigned", "reassigned after kill s", NO_SLOWER)
AFTERWARDS = Metric("after", "of it after the session ended, ms", NO_SLOWER)
RATE = Metric("rate", "commits/s", NO_FEWER)
CPU = Metric("cpu", "CPU µs/commit")
START = Metric("start", "start to answer s", NO_SLOWER)
START_CPU = Metric("cpu", "CPU s")

MEMBERS, KILLED, TOPIC = 100, 10, "shared"
CROWDS = 3
SESSION_MS, BEAT_MS = 2_000, 50
SHORT_SESSIONS = {
    "group.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": str(BEAT_MS),
    "group.consumer.min.heartbeat.interval.ms": str(BEAT_MS),
    "group.consumer.assignment.interval.ms": "0",
}
WARM_COMMITS = 20_000
OFFSETS, PER_COMMIT, GROUPS = 100_000, 10, 1_000
ASKED_GROUPS = 100
"""Names enough that every one of 50 partitions is asked for a group."""


def members(lab: Lab) -> list[Section]:
    """A hundred members join at once; when they have settled, ten are killed."""
    kinds: dict[str, type[Member]] = {"classic": ClassicMember, "consumer": ConsumerMember}
    rows = []
    with lab.running(properties=SHORT_SESSIONS) as contenders:
        for contender in contenders:
            create_topic(contender, TOPIC, MEMBERS)
            _until_coordinated(contender)
        for name, kind in kinds.items():

            def run(contender: Contender, number: int, name: str = name, kind: type[Member] = kind) -> Sample:
                return _crowds(contender, kind, f"{name}-{number}")

            row = Row(f"group.protocol={name}, {MEMBERS} members", (JOINED, REASSIGNED, AFTERWARDS))
            rows.append(lab.alternate(row, contenders, run))
    note = (
        f"{MEMBERS} members on {MEMBERS} connections join at the same moment, and have joined when each holds one of"
        f" {MEMBERS} partitions. Then {KILLED} of them hang up without a word, as kill -9 makes them,"
        " just after a heartbeat; reassigned is when the others hold all partitions between them."
        f" {SESSION_MS / 1000:g} s of that is the session timeout, the same for both brokers; what comes after it is"
        " the time until the last survivor's next heartbeat, and then what the broker takes. Heartbeats are"
        f" {BEAT_MS} ms apart and assignments as often as need be, so that what is waited for is not only the next"
        f" of them. A round is the median of {CROWDS} groups."
    )
    return [Section("Groups: members", rows, note)]


def _crowds(contender: Contender, kind: type[Member], group: str) -> Sample:
    """The medians of several groups, one after another: who happens to be first makes one alone a matter of luck."""
    times = [
        join_and_lose(
            kind,
            Setting(
                host=HOST,
                port=contender.server.port,
                group=f"{group}-{number}",
                topic=TOPIC,
                partitions=MEMBERS,
                members=MEMBERS,
                killed=KILLED,
                session_ms=SESSION_MS,
                beat_seconds=BEAT_MS / 1000,
            ),
        )
        for number in range(CROWDS)
    ]
    reassigned = statistics.median(each.reassigned for each in times)
    return {
        "joined": statistics.median(each.joined for each in times),
        "reassigned": reassigned,
        "after": reassigned * 1000 - SESSION_MS,
    }


def commits(lab: Lab) -> list[Section]:
    """OffsetCommits without members, one group a connection."""
    shapes = [  # connections, requests under way on each, partitions a commit, commits
        (1, 1, 1, 5_000),
        (10, 8, 1, 40_000),
        (100, 8, 1, 40_000),
        (10, 8, 100, 2_000),
    ]
    rows = []
    with lab.running() as contenders:
        for contender in contenders:
            create_topic(contender, TOPIC, 100)
            _until_coordinated(contender)
            _commit(contender, 10, 8, 1, lab.scaled(WARM_COMMITS))
        for connections, window, partitions, count in shapes:

            def run(
                contender: Contender,
                _: int,
                shape: tuple[int, int, int] = (connections, window, partitions),
                count: int = lab.scaled(count),
            ) -> Sample:
                return _commit(contender, *shape, count)

            title = f"{connections} connection{'s' if connections > 1 else ''}, {window} under way on each,"
            title += f" {partitions} partition{'s' if partitions > 1 else ''}"
            rows.append(lab.alternate(Row(title, (RATE, CPU)), contenders, run))
    note = (
        "OffsetCommit requests over bare sockets, a group for each connection, all groups in one partition of"
        " `__consumer_offsets`. Both brokers answer one request of a connection after another; what is under way"
        " beside it is there when they come for it."
    )
    return [Section("Groups: commits", rows, note)]


def load(lab: Lab) -> list[Section]:
    """A start on many committed offsets, until all of them are served; and one on few, for what a start costs alone."""
    rows = []
    for offsets, partitions in ((GROUPS, 1), (lab.scaled(OFFSETS), 1), (lab.scaled(OFFSETS), 50)):
        with lab.running(properties={"offsets.topic.num.partitions": str(partitions)}) as contenders:
            for contender in contenders:
                create_topic(contender, TOPIC, OFFSETS // GROUPS)
                _until_coordinated(contender)
                _fill(contender, offsets)
                contender.server.stop()
            title = f"{offsets:,} offsets in {partitions} partition{'s' if partitions > 1 else ''}"
            rows.append(lab.alternate(Row(title, (START, START_CPU)), contenders, _restart))
    note = (
        f"{GROUPS:,} groups, {PER_COMMIT} offsets to a commit, read again after a clean stop: from the start of the"
        f" process until OffsetFetch has given {ASKED_GROUPS} groups, spread over all partitions, what they committed."
    )
    return [Section("Groups: loading", rows, note)]


def _restart(contender: Contender, _: int) -> Sample:
    started = time.perf_counter()
    contender.server.start()
    _until_loaded(contender)
    sample = {"start": time.perf_counter() - started, "cpu": contender.process.cpu_seconds()}
    contender.server.stop()
    return sample


def _commit(contender: Contender, connections: int, window: int, partitions: int, count: int) -> Sample:
    wanted = range(partitions)
    each = max(count // connections, 1)
    flows = [[wire.offset_commit(_group(number), TOPIC, wanted, 42)] * each for number in range(connections)]
    spent = contender.process.cpu_seconds()
    seconds = commit_all((HOST, contender.server.port), flows, TOPIC, wanted, window)
    spent = contender.process.cpu_seconds() - spent
    return {"rate": each * connections / seconds, "cpu": spent / (each * connections) * 1e6}


def _fill(contender: Contender, offsets: int) -> None:
    """Commit `offsets` different offsets, the same share for every group."""
    each = offsets // GROUPS
    for first in range(0, each, PER_COMMIT):
        wanted = range(first, min(first + PER_COMMIT, each))
        frames = [wire.offset_commit(_group(number), TOPIC, wanted, number) for number in range(GROUPS)]
        flows = [frames[place::PER_COMMIT] for place in range(PER_COMMIT)]
        commit_all((HOST, contender.server.port), flows, TOPIC, wanted, window=8)


def _group(number: int) -> str:
    return f"group-{number:04}"


def _until_coordinated(contender: Contender) -> None:
    """Have `__consumer_offsets` made, and wait until all its partitions answer for their groups."""
    with contender.connect() as connection:
        _answered(connection, wire.find_coordinator(TOPIC), wire.coordinator_error)
        for number in range(ASKED_GROUPS):
            _answered(
                connection,
                wire.offset_fetch(_group(number), TOPIC, 0),
                lambda answer: wire.fetched(answer)[0],
            )


def _until_loaded(contender: Contender) -> None:
    """Ask groups of all partitions for what they have committed until they know."""
    with contender.connect() as connection:
        for number in range(ASKED_GROUPS):
            request = wire.offset_fetch(_group(number), TOPIC, 0)
            answer = _answered(connection, request, lambda answer: wire.fetched(answer)[0])
            offset = wire.fetched(answer)[1]
            assert offset == number, f"{_group(number)} committed {number}, and {offset} came back"


def _answered(connection: Connection, request: bytes, error_of: Callable[[bytes], int]) -> bytes:
    """The answer to a request, asked again until it is without error."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        connection.send(request)
        answer = bytes(connection.receive())
        if not (error := error_of(answer)):
            return answer
        if time.monotonic() > deadline:
            raise WireError(f"the broker still answers error code {error}")
        time.sleep(POLL_SECONDS)
