"""The command line as a person meets it: the console script in its own process."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from pykafka_broker import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = str(Path(sys.executable).parent / "pykafka-broker")
SECONDS = 30


def overrides(**properties: object) -> list[str]:
    return [
        part
        for name, value in properties.items()
        for part in ("--override", f"{name.replace('_', '.')}={value}")
    ]


def fails(*arguments: str) -> tuple[int, str]:
    """Exit status and the one line on stderr of a start that is refused."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=SECONDS)
    return done.returncode, one_line(done.stdout, done.stderr)


def one_line(told: str, complaint: str) -> str:
    assert told == ""
    assert len(complaint.splitlines()) == 1, complaint
    assert complaint.startswith("pykafka-broker: ")
    return complaint


@contextmanager
def serving(
    *arguments: str, stop: signal.Signals = signal.SIGINT
) -> Iterator[tuple[list[str], subprocess.Popen[str]]]:
    """The program up and running, and the lines it greeted with; stopped at the end, cleanly."""
    process = subprocess.Popen(
        [PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        greeting = []
        for line in process.stdout:
            greeting.append(line)
            if line.startswith("first message"):
                break
        yield greeting, process
        process.send_signal(stop)
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.communicate()


def port_of(greeting: list[str]) -> int:
    found = re.search(r"^listening on 127\.0\.0\.1:(\d+)$", "".join(greeting), re.MULTILINE)
    assert found
    return int(found.group(1))


def anywhere(directory: Path, **more: object) -> list[str]:
    return overrides(listeners="PLAINTEXT://127.0.0.1:0", log_dirs=directory, **more)


def test_a_start_says_where_it_listens_where_the_data_lie_and_what_to_try(tmp_path: Path) -> None:
    with serving(*anywhere(tmp_path / "data")) as (greeting, _):
        port = port_of(greeting)
        assert port > 0
        assert f"data in {tmp_path / 'data'}\n" in greeting
        assert f"127.0.0.1:{port}" in greeting[-1]
        assert len(greeting) <= 5
        socket.create_connection(("127.0.0.1", port), 5).close()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly(tmp_path: Path, stop: signal.Signals) -> None:
    with serving(*anywhere(tmp_path), stop=stop):
        assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_takes_long_is_given_up_at_a_signal(tmp_path: Path, stop: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it listens, and is no ZooKeeper
        zookeeper = f"127.0.0.1:{silent.getsockname()[1]}"
        arguments = anywhere(tmp_path, zookeeper_connect=zookeeper, zookeeper_connection_timeout_ms=120_000)
        process = subprocess.Popen([PROGRAM, *arguments], stderr=subprocess.PIPE, text=True)
        try:
            silent.accept()[0].close()
            process.send_signal(stop)
            assert process.wait(SECONDS) == 130
            assert process.stderr is not None
            complaint = process.stderr.read()
            assert complaint.endswith("pykafka-broker: stopped before it had started\n")
            assert "Traceback" not in complaint
        finally:
            process.kill()
            process.communicate()


def test_a_client_that_waits_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    with serving(*anywhere(tmp_path)) as (greeting, _):
        idle = socket.create_connection(("127.0.0.1", port_of(greeting)), 5)
    assert idle.recv(1) == b""
    idle.close()


def test_a_properties_file_is_read_and_overridden(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "# a comment\nbroker.id = 7\nlisteners=PLAINTEXT://127.0.0.1:1\nlog.dirs=/nowhere/at/all\n"
    )
    with serving(str(properties), *anywhere(tmp_path / "data")) as (greeting, _):
        assert ", broker 7 of cluster " in greeting[0]
        assert (tmp_path / "data" / "meta.properties").exists()


class Refused(Protocol):
    def __call__(self, *arguments: str) -> tuple[int, str]: ...


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """As `fails`, within this process: for what is refused before anything is started."""

    def run(*arguments: str) -> tuple[int, str]:
        status = cli.main(arguments)
        return status, one_line(*capsys.readouterr())

    return run


def test_an_unknown_property_is_named(refused: Refused, tmp_path: Path) -> None:
    status, line = refused(*anywhere(tmp_path), "--override", "log.segment.byte=1000")
    assert status != 0
    assert "log.segment.byte" in line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.partitions", "many"),
        ("num.partitions", "0"),
        ("log.segment.bytes", "-5"),
        ("auto.create.topics.enable", "perhaps"),
        ("listeners", "PLAINTEXT//localhost"),
        ("listeners", "PLAINTEXT://localhost:99999"),
        ("log.retention.ms", ""),
    ],
)
def test_a_malformed_property_is_named(refused: Refused, tmp_path: Path, name: str, value: str) -> None:
    status, line = refused(*anywhere(tmp_path), "--override", f"{name}={value}")
    assert status != 0
    assert name in line


def test_an_override_without_a_value_is_named(refused: Refused, tmp_path: Path) -> None:
    assert "num.partitions" in refused(*anywhere(tmp_path), "--override", "num.partitions")[1]


def test_a_missing_file_is_named(refused: Refused, tmp_path: Path) -> None:
    status, line = refused(str(tmp_path / "server.properties"))
    assert status != 0
    assert "server.properties" in line


def test_a_property_without_effect_is_accepted_with_a_warning(tmp_path: Path) -> None:
    with serving(*anywhere(tmp_path, num_network_threads=3)) as (_, process):
        assert process.stderr is not None
        warning = process.stderr.readline()
    assert warning.startswith("pykafka-broker: warning: ")
    assert "num.network.threads" in warning


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with serving(*anywhere(tmp_path / "one")) as (greeting, _):
        taken = f"127.0.0.1:{port_of(greeting)}"
        status, line = fails(*overrides(listeners=f"PLAINTEXT://{taken}", log_dirs=tmp_path / "two"))
    assert status != 0
    assert str(port_of(greeting)) in line
    assert "in use" in line


def test_a_directory_in_use_is_named(tmp_path: Path) -> None:
    with serving(*anywhere(tmp_path)):
        status, line = fails(*anywhere(tmp_path))
    assert status != 0
    assert str(tmp_path) in line


def test_the_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    with serving(*anywhere(tmp_path, broker_id=1)):
        pass
    status, line = fails(*anywhere(tmp_path, broker_id=2))
    assert status != 0
    assert "broker.id" in line
    assert "meta.properties" in line
    with serving(*anywhere(tmp_path)) as (greeting, _):
        assert ", broker 1 of cluster " in greeting[0]


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    status, line = fails(*anywhere(tmp_path / "file" / "data"))
    assert status != 0
    assert str(tmp_path / "file") in line


def test_a_broker_alone_does_not_load_what_only_a_cluster_needs() -> None:
    look = "import sys, pykafka_broker.broker; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=SECONDS
    ).stdout.split()
    assert "pykafka_broker.coordinator.shard" in loaded
    needless = ("kazoo", "pykafka_broker.membership", "pykafka_broker.cluster.controller.loop")
    assert [name for name in loaded if name.startswith(needless)] == []
