"""kcat: the command line most people try first."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from compat_tests import provision, versions
from compat_tests.conftest import create_topic
from compat_tests.samples import BEGIN_MS, BIG, CODECS, DELIVERY
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import MakeBroker, MakeTopic
    from compat_tests.servers import Server

SHAPE = "%p|%o|%k|%K|%s|%S|%h\n"

pytestmark = versions.KCAT


@pytest.fixture(scope="module")
def program() -> Path:
    with provision.or_skip():
        return provision.kcat()


class Kcat:
    """The program aimed at one broker."""

    def __init__(self, program: Path, broker: Server) -> None:
        self._command = [str(program), "-b", broker.bootstrap]

    def run(self, *arguments: str, stdin: bytes = b"") -> str:
        done = self.attempt(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def attempt(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*self._command, *arguments], input=stdin, capture_output=True, check=False, timeout=60
        )

    def read(self, topic: str, *arguments: str, shape: str = SHAPE) -> list[str]:
        """Every record of partition 0 up to its end, in the given shape."""
        where = ["-C", "-t", topic, "-p", "0", "-e", "-q", "-X", "check.crcs=true", "-f", shape]
        return self.run(*where, *(arguments or ("-o", "beginning"))).splitlines()


@pytest.fixture
def kcat(program: Path, broker: Server) -> Kcat:
    return Kcat(program, broker)


@pytest.mark.feature("produce: codecs", "consume assigned", "connect and negotiate")
@pytest.mark.parametrize("codec", CODECS)
def test_lines_come_back_as_they_were_sent(kcat: Kcat, topic: MakeTopic, codec: str) -> None:
    name = topic()
    lines = [f"key-{n}:value {n} " + "x" * 200 for n in range(500)]
    kcat.run("-P", "-t", name, "-p", "0", "-K", ":", "-z", codec, stdin="\n".join(lines).encode())
    assert kcat.read(name, shape="%k:%s\n") == lines


@pytest.mark.feature("produce: acks", "produce: idempotence")
@pytest.mark.parametrize(("acks", "idempotent"), DELIVERY)
def test_every_level_of_acknowledgement_stores_all(
    kcat: Kcat, topic: MakeTopic, acks: str | int, idempotent: bool
) -> None:
    name = topic()
    settings = ["-X", f"acks={acks}", "-X", f"enable.idempotence={str(idempotent).lower()}"]
    kcat.run("-P", "-t", name, *settings, stdin=b"one\ntwo\nthree")
    wait_until(lambda: kcat.read(name, shape="%s\n") == ["one", "two", "three"], "all are stored")


@pytest.mark.feature("produce: headers", "empty and null values")
def test_keys_null_values_and_headers_are_kept(kcat: Kcat, topic: MakeTopic) -> None:
    name = topic()
    kcat.run("-P", "-t", name, "-K", ":", "-Z", stdin=b"tombstone:")
    kcat.run("-P", "-t", name, "-H", "trace=1", "-H", "trace=2", stdin=b"plain")
    assert kcat.read(name) == ["0|0|tombstone|9||-1|", "0|1||-1|plain|5|trace=1,trace=2"]


@pytest.mark.feature("big messages")
def test_a_record_of_900_kb_passes(kcat: Kcat, topic: MakeTopic, tmp_path: Path) -> None:
    name = topic()
    (tmp_path / "big").write_bytes(BIG)
    kcat.run("-P", "-t", name, str(tmp_path / "big"))
    assert kcat.read(name, shape="%S\n") == [str(len(BIG))]


@pytest.mark.feature("seek by offset", "seek by timestamp")
def test_a_reader_finds_its_place(kcat: Kcat, topic: MakeTopic) -> None:
    name = topic()
    kcat.run("-P", "-t", name, stdin="\n".join(map(str, range(10))).encode())
    assert kcat.read(name, "-o", "7", shape="%s\n") == ["7", "8", "9"]
    assert kcat.read(name, "-o", "-2", shape="%s\n") == ["8", "9"]
    assert kcat.read(name, "-o", "beginning", "-c", "2", shape="%s\n") == ["0", "1"]
    assert kcat.read(name, "-o", "end", shape="%s\n") == []
    assert kcat.run("-Q", "-t", f"{name}:0:{BEGIN_MS}").strip() == f"{name} [0] offset 0"
    assert kcat.run("-Q", "-t", f"{name}:0:{BEGIN_MS * 2}").strip() == f"{name} [0] offset -1"


@pytest.mark.feature("produce: timestamps")
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_records_carry_a_time(kcat: Kcat, topic: MakeTopic, kind: str) -> None:
    name = topic(message_timestamp_type=kind)
    kcat.run("-P", "-t", name, stdin=b"x")
    assert int(kcat.read(name, shape="%T\n")[0]) > BEGIN_MS


@pytest.mark.feature("restart and reconnect")
def test_a_reader_goes_on_after_a_restart(program: Path, own_broker: MakeBroker, tmp_path: Path) -> None:
    broker = own_broker()
    name = create_topic(broker.bootstrap, "before-and-after")
    kcat, seen = Kcat(program, broker), tmp_path / "seen"
    staying = ["-E", "-u", "-X", "reconnect.backoff.max.ms=500"]
    reading = [
        program,
        "-C",
        "-b",
        broker.bootstrap,
        "-t",
        name,
        "-p",
        "0",
        "-o",
        "beginning",
        "-q",
        *staying,
    ]
    with seen.open("w") as out, subprocess.Popen(reading, stdout=out) as reader:
        try:
            for line, end in (("first\n", broker.stop), ("second\n", broker.kill), ("third\n", None)):
                kcat.run("-P", "-t", name, "-p", "0", stdin=line.encode())
                wait_until(lambda line=line: seen.read_text().endswith(line), f"the {line.strip()} is read")
                if end is not None:
                    end()
                    broker.start()
        finally:
            reader.terminate()
    assert seen.read_text() == "first\nsecond\nthird\n"


@pytest.mark.long
@pytest.mark.feature("1,000 partitions")
def test_a_thousand_partitions_are_written_and_read(kcat: Kcat, topic: MakeTopic) -> None:
    name = topic(partitions=1000)
    lines = [f"key-{n}:value {n}" for n in range(20_000)]
    kcat.run("-P", "-t", name, "-K", ":", stdin="\n".join(lines).encode())
    told = kcat.run("-C", "-t", name, "-o", "beginning", "-e", "-q", "-f", "%p %k:%s\n").splitlines()
    found = [line.partition(" ") for line in told]
    assert sorted(line for _, _, line in found) == sorted(lines)
    assert len({partition for partition, _, _ in found}) == 1000, "by their keys they come to every partition"


@pytest.mark.feature("connect and negotiate", "admin: cluster")
def test_metadata_lists_brokers_topics_and_partitions(kcat: Kcat, broker: Server, topic: MakeTopic) -> None:
    name = topic(partitions=3)
    found = json.loads(kcat.run("-L", "-J"))
    assert [b["name"] for b in found["brokers"]] == [broker.bootstrap]
    [described] = [t for t in found["topics"] if t["topic"] == name]
    leader = found["brokers"][0]["id"]
    assert sorted(p["partition"] for p in described["partitions"]) == [0, 1, 2]
    assert {p["leader"] for p in described["partitions"]} == {leader}


@pytest.mark.feature("errors: unknown topic")
def test_an_unknown_topic_is_an_error(kcat: Kcat) -> None:
    done = kcat.attempt(
        "-C", "-t", "nobody-made-this", "-p", "0", "-e", "-X", "allow.auto.create.topics=false"
    )
    assert done.returncode != 0
    assert b"Unknown topic or partition" in done.stderr


@pytest.mark.feature("errors: too large")
def test_a_message_over_the_topics_limit_is_refused(kcat: Kcat, topic: MakeTopic) -> None:
    done = kcat.attempt("-P", "-t", topic(max_message_bytes=1000), stdin=b"x" * 2000)
    assert b"Message size too large" in done.stderr
