"""A group of members in child processes, and the stream of records they consume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from confluent_kafka import ConsumerGroupState, Producer
from confluent_kafka.admin import AdminClient

from compat_tests import provision
from compat_tests.groups.clients import Client, environment_of
from compat_tests.groups.history import CLOCK_GRAIN, WATCHING_GRAIN, Event, History
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.servers import Server

SESSION_MS = 3000
HEARTBEAT_MS = 300
SETTLE_SECONDS = 40
ARRIVE_SECONDS = 60
PARTITIONS = 12


class Program:
    """One process with members of a group; a signal reaches all that belongs to it."""

    def __init__(
        self, client: Client, orders: dict[str, object], history: History, life: int, log: Path
    ) -> None:
        with provision.or_skip():
            command, environment = client.command(), environment_of(client)
        self._history = history
        self._watched = client.watched
        self._life = life
        self.names = [f"{name}#{life}" for name in orders["members"]]
        self._complaints = log.open("ab")
        self._process = subprocess.Popen(
            [*command, json.dumps(orders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            env=environment,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def go(self) -> None:
        """Let a program that was held join."""
        self._say("go")

    def leave(self) -> None:
        """All members say goodbye and the process ends."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(30) == 0, "the program ends well"
        self._reader.join()

    def kill(self) -> None:
        """kill -9."""
        if self._watched:
            self._say("kill")
        else:
            self._signal(signal.SIGKILL)
        self._process.wait(30)
        self._reader.join()
        self._gone()

    def freeze(self) -> None:
        """Silence without an end, as of a machine that was suspended."""
        self._signal(signal.SIGSTOP)
        self._gone()

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        if self._process.poll() is None:
            self._signal(signal.SIGKILL)
            self._process.wait()
        self._reader.join(10)
        for pipe in (self._process.stdin, self._process.stdout, self._complaints):
            if pipe is not None:
                pipe.close()

    @property
    def ready(self) -> bool:
        return bool(self._history.of(f"#{self._life}", "ready"))

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _signal(self, what: signal.Signals) -> None:
        os.killpg(self._process.pid, what)

    def _gone(self) -> None:
        for name in self.names:
            self._history.add(Event(time.time(), name, "gone", {}))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith("{"):
                continue
            try:
                what = json.loads(line)
            except ValueError:  # cut short by kill -9
                continue
            member = f"{what.pop('member')}#{self._life}"
            self._history.add(Event(what.pop("at"), member, what.pop("event"), what))


class Crew:
    """One group on one topic; owns its programs and ends them on exit."""

    def __init__(self, client: Client, broker: Server, topic: str, group: str, directory: Path) -> None:
        self.client, self.broker, self.topic, self.group = client, broker, topic, group
        self.history = History()
        self._directory = directory
        self._programs: list[Program] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._programs:
            program.close()

    def start(
        self,
        *names: str,
        client: Client | None = None,
        session_ms: int = SESSION_MS,
        assignor: str | None = None,
        metadata: str | None = None,
        static: bool = False,
        hold: bool = False,
    ) -> Program:
        """A new process with these members; `client` where it is not the crew's own."""
        by = client or self.client
        orders = {
            "bootstrap": self.broker.bootstrap,
            "group": self.group,
            "topic": self.topic,
            "members": names,
            "session_ms": session_ms,
            "heartbeat_ms": HEARTBEAT_MS,
            "protocol": by.protocol,
            "assignor": assignor,
            "metadata": metadata,
            "static": static,
            "hold": hold,
        }
        life = len(self._programs) + 1
        program = Program(by, orders, self.history, life, self._directory / f"{self.group}-{life}.err")
        self._programs.append(program)
        return program

    def assert_one_owner_at_a_time(self) -> None:
        self.history.assert_one_owner_at_a_time(WATCHING_GRAIN if self.client.watched else CLOCK_GRAIN)

    def settle(self, *programs: Program, partitions: int = PARTITIONS) -> dict[str, set[int]]:
        """Wait until exactly these programs' members share all partitions; who holds what."""
        members = {name for program in programs for name in program.names}
        if not members:
            self._wait_until_empty()
            return {}
        every = list(range(partitions))

        def shared() -> bool:
            owners = self.history.owners()
            held = sorted(p for own in owners.values() for p in own)
            return set(owners) == members and held == every

        try:
            wait_until(shared, f"{sorted(members)} share {self.topic}", SETTLE_SECONDS)
        except AssertionError as late:
            raise AssertionError(f"{late}; they hold {self.history.owners()}\n{self.complaints()}") from None
        return self.history.owners()

    def complaints(self) -> str:
        """What the libraries said, to show beside a failure."""
        errors = [
            path.read_text(errors="replace")[-2000:] for path in self._directory.glob(f"{self.group}-*.err")
        ]
        return "\n".join([*self.history.trouble()[-20:], *errors])

    def _wait_until_empty(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})

        def empty() -> bool:
            found = admin.describe_consumer_groups([self.group])[self.group].result(10)
            return found.state == ConsumerGroupState.EMPTY

        wait_until(empty, f"{self.group} is empty", SETTLE_SECONDS)


class Feed:
    """Produces to every partition in turn, on and on, and remembers what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str, partitions: int = PARTITIONS, pause: float = 0.02) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._topic, self._partitions, self._pause = topic, partitions, pause
        self._stop = threading.Event()
        self._producing = threading.Lock()
        self._thread = threading.Thread(target=self._run)
        self._number = 0
        self.acknowledged: dict[tuple[int, int], str] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nothing is produced meanwhile, and all that was is acknowledged."""
        with self._producing:
            assert self._producer.flush(30) == 0
            yield

    def send(self, count: int) -> None:
        """Some records, all acknowledged on return."""
        for _ in range(count):
            self._one()
        assert self._producer.flush(30) == 0

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            with self._producing:
                self._one()
                self._producer.poll(0)
        assert self._producer.flush(30) == 0

    def _one(self) -> None:
        value = f"record {self._number}"
        partition = self._number % self._partitions
        self._number += 1
        self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)

    def _delivered(self, error: object, message: object) -> None:
        assert error is None, error
        self.acknowledged[message.partition(), message.offset()] = message.value().decode()


def everything_arrives(crew: Crew, feed: Feed) -> None:
    """Every acknowledged record reaches the group, with the value it was sent with."""

    def missing() -> dict[tuple[int, int], str]:
        seen = crew.history.delivered()
        return {place: value for place, value in feed.acknowledged.items() if seen.get(place) != value}

    try:
        wait_until(lambda: not missing(), "all records arrive", ARRIVE_SECONDS)
    except AssertionError:
        raise AssertionError(f"never delivered: {sorted(missing())}\n{crew.complaints()}") from None
