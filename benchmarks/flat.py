"""Whether the cost of a request and the memory stay flat as partitions, the log and idle connections grow."""

from __future__ import annotations

import contextlib
import os
import random
import time
from typing import TYPE_CHECKING

from benchmarks.contenders import Contender, create_topic, until_served
from benchmarks.measures import GB, MB
from benchmarks.rounds import Lab, Metric, Row, Sample, Section
from benchmarks.startup import memory_sample
from benchmarks.wire import NEW_SESSION, Connection, batch, fetch_request, produce_request

if TYPE_CHECKING:
    from collections.abc import Callable

PRODUCE = (Metric("produce", "Produce µs"), Metric("produce cpu", "Produce CPU µs"))
FETCH = (Metric("fetch", "Fetch µs"), Metric("fetch cpu", "Fetch CPU µs"))
SESSION = (Metric("session", "session round µs"), Metric("session cpu", "session round CPU µs"))
MEMORY = (Metric("anonymous", "anonymous MB"), Metric("file", "mapped files MB"))
VALUE = 100
"""So small that 2,000 partitions stay below their first index entry, a cost of its own that comes once."""
LOG_BATCH = 64_000
PIPELINE = 8
SEED = 20_240_601
WARM_REQUESTS = 20_000
"""What a JVM wants to see before it has compiled its way through a request: else growth would hide behind it."""


def partitions(lab: Lab) -> list[Section]:
    """One request after another, each to the next partition of a topic with few or many."""
    rows, number = [], _number(lab)
    created = Metric("created", "topic created s")
    with lab.running() as contenders:
        _warm(lab, contenders)
        for count in (1, 100, lab.scaled(2_000, 500)):
            topic = f"flat-{count}"
            seconds = {contender.name: create_topic(contender, topic, count) for contender in contenders}

            def run(contender: Contender, _: int, topic: str = topic, count: int = count) -> Sample:
                sample = _requests(contender, topic, count, number) | _session(lab, contender, topic, count)
                return sample | memory_sample(contender) | {"created": seconds[contender.name]}  # noqa: B023 - same turn

            row = Row(
                f"{count} partition{'s' if count > 1 else ''}", (*PRODUCE, *FETCH, *SESSION, created, *MEMORY)
            )
            rows.append(lab.alternate(row, contenders, run))
    note = (
        "Produce and Fetch: one connection, one request at a time, one record of 100 B, the next partition each time."
        " A session round is a Produce to one partition and the Fetch of a session over all partitions that brings it."
    )
    return [Section("Flat: partitions", rows, note, compared=False)]


def connections(lab: Lab) -> list[Section]:
    """The same requests while many other clients hold a connection and say nothing."""
    rows, number = [], _number(lab)
    with lab.running() as contenders:
        _warm(lab, contenders)
        for contender in contenders:
            create_topic(contender, "flat", 1)
        for count in (0, 1_000):
            with contextlib.ExitStack() as open_connections:
                for contender in contenders:
                    for _ in range(count):
                        open_connections.enter_context(contender.connect()).api_versions()

                def run(contender: Contender, _: int) -> Sample:
                    return _requests(contender, "flat", 1, number) | memory_sample(contender)

                row = Row(f"{count:,} idle connections", (*PRODUCE, *FETCH, *MEMORY))
                rows.append(lab.alternate(row, contenders, run))
    return [Section("Flat: idle connections", rows, compared=False)]


def log(lab: Lab) -> list[Section]:
    """A log that grows to 10 GB: appending, reading anywhere, starting again after a stop and after a kill."""
    small, large, number = lab.scaled(100 * MB), lab.scaled(10 * GB), _number(lab)
    starts = (Metric("clean", "start after stop s"), Metric("killed", "start after kill -9 s"))
    filled = Metric("fill", "filled MB/s")
    rows = [
        Row(f"{size / GB:g} GB log", (*PRODUCE, *FETCH, *MEMORY, filled, *(starts if size == large else ())))
        for size in (small, large)
    ]
    # One broker at a time: both logs at once would push each other out of the page cache.
    for name in lab.names:
        with lab.running(name) as (contender,):
            _warm(lab, [contender])
            create_topic(contender, "flat", 1)
            batches = 0
            for row, size in zip(rows, (small, large), strict=True):
                rate = _fill(contender, "flat", size // LOG_BATCH - batches)
                batches = size // LOG_BATCH

                def run(contender: Contender, _: int, batches: int = batches, rate: float = rate) -> Sample:
                    sample = _requests(contender, "flat", 1, number, below=batches)
                    return sample | memory_sample(contender) | {"fill": rate}

                lab.alternate(row, [contender], run)
            if name not in rows[1].missing:
                rows[1].samples[name].append(_restarts(contender))
    note = (
        f"Batches of {LOG_BATCH // 1000} kB, one record each, {PIPELINE} requests under way while filling; Fetch reads"
        " one batch at a random offset, from the page cache. A start ends when a fetch of the last record is answered."
    )
    return [Section("Flat: size of the log", rows, note, compared=False)]


def _number(lab: Lab) -> int:
    """How many requests of a kind one reading is taken over."""
    return lab.scaled(3_000, 1_000)


def _warm(lab: Lab, contenders: list[Contender]) -> None:
    for contender in contenders:
        create_topic(contender, "warm", 1)
        _requests(contender, "warm", 1, lab.scaled(WARM_REQUESTS))


def _requests(contender: Contender, topic: str, count: int, number: int, below: int | None = None) -> Sample:
    """Cost of a Produce and of a Fetch, over `count` partitions in turn; fetched offsets are 0, or random below."""
    chosen = random.Random(SEED)
    sends = [produce_request(topic, partition, batch(VALUE)) for partition in range(count)]
    places = [(at % count, chosen.randrange(below) if below else 0) for at in range(number)]
    asks = [fetch_request(topic, [place], max_bytes=VALUE) for place in places]
    with contender.connect() as connection:

        def produce(at: int) -> None:
            connection.send(sends[at % count])
            connection.produced(topic)

        def fetch(at: int) -> None:
            connection.send(asks[at])
            assert connection.fetched().records, "a fetch came back empty"

        for at in range(count):
            produce(at)
        return _cost("produce", contender, number, produce) | _cost("fetch", contender, number, fetch)


def _session(lab: Lab, contender: Contender, topic: str, count: int) -> Sample:
    """Cost of a record sent to one of many partitions and fetched through one session that spans them all."""
    with contender.connect() as producer, contender.connect() as consumer:
        sends = [produce_request(topic, partition, batch(VALUE)) for partition in range(count)]
        ends = []
        for send in sends:
            producer.send(send)
            ends.append(producer.produced(topic) + 1)
        consumer.send(fetch_request(topic, list(enumerate(ends)), session=NEW_SESSION))
        session, epoch = consumer.fetched().session_id, 0
        assert session, "the broker gave no fetch session"
        moved: list[tuple[int, int]] = []

        def turn(at: int) -> None:
            nonlocal epoch, moved
            partition = at % count
            producer.send(sends[partition])
            ends[partition] = producer.produced(topic) + 1
            epoch += 1
            consumer.send(fetch_request(topic, moved, session=(session, epoch), max_wait_ms=500))
            assert consumer.fetched().records, "the session's fetch came back empty"
            moved = [(partition, ends[partition])]

        return _cost("session", contender, lab.scaled(400, 200), turn)


def _cost(name: str, contender: Contender, number: int, work: Callable[[int], None]) -> Sample:
    """Microseconds of time and of server CPU that one call of `work` takes."""
    spent, started = contender.process.cpu_seconds(), time.perf_counter()
    for at in range(number):
        work(at)
    seconds, spent = time.perf_counter() - started, contender.process.cpu_seconds() - spent
    return {name: seconds / number * 1e6, f"{name} cpu": spent / number * 1e6}


def _fill(contender: Contender, topic: str, batches: int) -> float:
    """Append so many batches, a few requests ahead of the answers: MB/s."""
    frame = produce_request(topic, 0, batch(LOG_BATCH))
    started = time.perf_counter()
    with contender.connect() as connection:
        for at in range(batches + PIPELINE):
            if at >= PIPELINE:
                connection.produced(topic)
            if at < batches:
                connection.send(frame)
    rate = batches * LOG_BATCH / MB / (time.perf_counter() - started)
    os.sync()  # else the kernel writes to disk beside what is measured next
    return rate


def _restarts(contender: Contender) -> Sample:
    """Seconds to serve the log's last record again, after a clean stop and after a kill."""
    with contender.connect() as connection:
        last = _append_one(connection)
    contender.server.stop()
    clean = _start(contender, last)
    with contender.connect() as connection:
        last = _append_one(connection)
    contender.server.kill()
    return {"clean": clean, "killed": _start(contender, last)}


def _append_one(connection: Connection) -> int:
    connection.send(produce_request("flat", 0, batch(VALUE)))
    return connection.produced("flat")


def _start(contender: Contender, last: int) -> float:
    started = time.perf_counter()
    contender.server.start()
    assert until_served(contender, "flat", [(0, last)]), "an acknowledged record is not there after the start"
    return time.perf_counter() - started
