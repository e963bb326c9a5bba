"""`make cluster` as a person meets it: what it says, what it does when told, and that it leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from compat_tests import provision
from compat_tests.servers import HOST, free_port, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STOP_SECONDS = 120


class Played:
    """A running playground: lines it printed, and a way to tell it something."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def until(self, pattern: str) -> re.Match[str]:
        """The match of the next line that has one."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"never said {pattern!r}:\n{''.join(lines)}")

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()


@contextmanager
def playing(directory: Path, port: int) -> Iterator[Played]:
    """A playground of its own process group, as a shell would start it."""
    options = ["--directory", str(directory), "--port", str(port), "--zookeeper-port", str(free_port())]
    process = subprocess.Popen(
        [sys.executable, "-m", "compat_tests.playground", *options],
        cwd=provision.PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield Played(process)
    finally:
        for one in [*psutil.Process(process.pid).children(recursive=True)] if process.poll() is None else []:
            one.kill()
        process.kill()
        process.communicate()


def three_free_ports() -> int:
    """The first of three free ports in a row."""
    while True:
        first = free_port()
        try:
            for port in range(first + 1, first + 3):
                with socket.socket() as probe:
                    probe.bind((HOST, port))
        except OSError:
            continue
        return first


@pytest.fixture(autouse=True)
def _jars() -> None:
    with provision.or_skip():
        provision.java()
        provision.kafka_classpath("3.9.1")


def test_three_brokers_run_one_is_taken_and_brought_back_and_ctrl_c_stops_all(tmp_path: Path) -> None:
    port = three_free_ports()
    with playing(tmp_path / "cluster", port) as played:
        pids = [int(played.until(rf"^{name} .*, process (\d+)$")[1]) for name in ("ZooKeeper", *brokers())]
        bootstrap = played.until(r"^first message: .* -b (\S+) -t greetings$")[1]
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        wait_until(lambda: known(admin) == {1, 2, 3}, "all know each other")
        played.tell("kill 2")
        played.until("^broker 2 is down")
        wait_until(lambda: known(admin) == {1, 3}, "the others notice")
        played.tell("start 2")
        pids.append(int(played.until(r"^broker 2 is up, process (\d+)$")[1]))
        wait_until(lambda: known(admin) == {1, 2, 3}, "it is back")
        os.killpg(played.process.pid, signal.SIGINT)
        played.until("^stopped$")
        assert played.process.wait(STOP_SECONDS) == 0
        assert [pid for pid in pids if psutil.pid_exists(pid)] == []


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    port = three_free_ports()
    with socket.socket() as taken:
        taken.bind((HOST, port + 1))
        taken.listen()
        with playing(tmp_path / "cluster", port) as played:
            played.until(f"^port {port + 1} is taken")
            assert played.process.wait(STOP_SECONDS) == 1


def brokers() -> list[str]:
    return [f"broker {number}" for number in (1, 2, 3)]


def known(admin: AdminClient) -> set[int]:
    return set(admin.list_topics(timeout=30).brokers)
