"""`pykafka-broker dump-log` on the files of a log as the broker writes them, whole and damaged."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.cli import main
from pykafka_broker.dump_log import dump
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.record import Record
from tests.log.samples import NOW, append, append_marker, batch, marker, open_log

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A log with a producer, an aborted transaction, a compressed batch and two leaders, stopped cleanly."""
    log = open_log(tmp_path, index_interval_bytes=0)
    records = [
        Record(b"key", b"value", NOW, (("trace", b"\x01\xff"), ("none", None))),
        Record(None, None, NOW + 1),
        Record(b"k" * 1500, "zwölf".encode(), NOW + 2),
    ]
    append(log, build_batch(records, codec=Codec.GZIP), batch(2, producer=(9, 1, 0), transactional=True))
    append_marker(log, marker(9, commit=False, epoch=1, coordinator_epoch=4))
    append(log, batch(timestamp=NOW + 9), leader_epoch=3)
    log.close()
    return log.directory


def shown(path: Path, *, deep: bool = False) -> tuple[int, list[str]]:
    out = io.StringIO()
    code = dump([path], deep, out)
    first, *lines = out.getvalue().splitlines()
    assert first == str(path)
    return code, [line[2:] for line in lines]


def file(directory: Path, suffix: str, base: int = 0) -> Path:
    return directory / f"{base:020d}{suffix}"


def test_a_log_is_shown_batch_by_batch(directory: Path) -> None:
    code, lines = shown(file(directory, ".log"))
    assert code == 0
    assert len(lines) == 5
    first, second, control, last, summary = lines
    assert first.startswith("offsets 0-2 | records 3 | position 0 | size ")
    assert "| leader epoch 0 | CREATE_TIME 1700000000002 | codec gzip | crc 0x" in first
    assert "producer 9 epoch 1 sequences 0-1 | transactional | crc" in second
    assert "transactional | control" in control
    assert last.startswith("offsets 6-6 ")
    assert "leader epoch 3" in last
    assert summary == f"4 batches, 7 records, {file(directory, '.log').stat().st_size} bytes"


def test_records_are_shown_where_that_is_asked(directory: Path) -> None:
    code, lines = shown(file(directory, ".log"), deep=True)
    assert code == 0
    records = [line.strip() for line in lines if line.startswith("  ")]
    assert len(records) == 7
    assert records[0] == (
        f"offset 0 | timestamp {NOW} | key key | value value | headers [trace=\\x01\\xff, none=null]"
    )
    assert records[1] == f"offset 1 | timestamp {NOW + 1} | key null | value null | headers []"
    assert records[2].endswith(f"key {'k' * 1000}... (1500 bytes) | value zwölf | headers []")
    assert records[5] == f"offset 5 | timestamp {NOW} | ABORT by coordinator epoch 4"


def test_indexes_are_shown_with_absolute_offsets(directory: Path) -> None:
    code, lines = shown(file(directory, ".index"))
    assert (code, len(lines), lines[-1]) == (0, 4, "3 entries")
    assert lines[0].startswith("position ")
    assert lines[0].endswith(" | offset 4")
    assert shown(file(directory, ".timeindex")) == (
        0,
        [f"timestamp {NOW + 2} | offset 2", f"timestamp {NOW + 9} | offset 6", "2 entries"],
    )
    assert shown(file(directory, ".txnindex")) == (
        0,
        [
            "version 0 | producer id 9 | first offset 3 | last offset 5 | last stable offset 6",
            "1 entries",
        ],
    )


def test_the_base_offset_of_an_index_counts(directory: Path) -> None:
    moved = file(directory, ".timeindex", base=100)
    file(directory, ".timeindex").rename(moved)
    assert shown(moved)[1][0] == f"timestamp {NOW + 2} | offset 102"


def test_snapshots_and_epochs_are_shown(directory: Path) -> None:
    assert shown(file(directory, ".snapshot", base=7)) == (
        0,
        [
            (
                f"producer id 9 | epoch 1 | last sequence 1 | last offset 4 | offset delta 1 | timestamp {NOW}"
                " | coordinator epoch 4 | txn first offset -1"
            ),
            "1 producers",
        ],
    )
    assert shown(directory / "leader-epoch-checkpoint") == (
        0,
        ["epoch 0 | start offset 0", "epoch 3 | start offset 6", "2 epochs"],
    )


def test_an_index_that_kafka_has_reserved_room_for_is_sound(directory: Path) -> None:
    path = file(directory, ".index")
    path.write_bytes(path.read_bytes() + bytes(8000))
    code, lines = shown(path)
    assert (code, lines[-2:]) == (0, ["3 entries", "8000 bytes reserved"])


# Damage


def test_a_wrong_checksum_is_named_and_what_lies_before_is_shown(directory: Path) -> None:
    path = file(directory, ".log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    code, lines = shown(path)
    assert (code, len(lines)) == (1, 5)
    assert lines[-1].startswith("!! the batch at byte ")
    assert lines[-1].endswith(" has a wrong checksum")


@pytest.mark.parametrize(
    ("keep", "message"),
    [(-1, "!! torn: the batch at byte"), (30, "!! torn: 30 bytes at byte 0 are too few for a batch header")],
)
def test_a_torn_log_says_where(directory: Path, keep: int, message: str) -> None:
    path = file(directory, ".log")
    path.write_bytes(path.read_bytes()[:keep])
    code, lines = shown(path)
    assert code == 1
    assert lines[-1].startswith(message)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (16, 1, "!! magic 1 at byte 0 is not a batch of version 2"),
        (8, 0xFF, "!! batch at byte 0 claims a length of"),
        (22, 7, "!! the batch at byte 0: unknown compression codec 7"),
    ],
)
def test_a_header_that_cannot_be_is_explained(directory: Path, at: int, value: int, message: str) -> None:
    path = file(directory, ".log")
    data = bytearray(path.read_bytes())
    data[at] = value
    path.write_bytes(data)
    code, lines = shown(path)
    assert code == 1
    assert lines[-1].startswith(message)


def test_offsets_that_go_back_are_damage(directory: Path) -> None:
    path = file(directory, ".log")
    path.write_bytes(path.read_bytes() + batch())
    code, lines = shown(path)
    assert code == 1
    assert lines[-1].startswith("!! offset 0 at byte ")


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_a_torn_index_shows_its_whole_entries(directory: Path, suffix: str) -> None:
    path = file(directory, suffix)
    path.write_bytes(path.read_bytes() + b"\x01\x02\x03")
    code, lines = shown(path)
    assert (code, lines[-1]) == (1, "!! torn: 3 bytes behind the last whole entry")


def test_index_entries_out_of_order_are_damage(directory: Path) -> None:
    path = file(directory, ".index")
    path.write_bytes(path.read_bytes() * 2)
    code, lines = shown(path)
    assert (code, lines[-1]) == (1, "!! the entry at byte 24 is for offset 4, the one before for 6")


def test_other_damage_is_explained(directory: Path) -> None:
    snapshot = file(directory, ".snapshot", base=7)
    snapshot.write_bytes(snapshot.read_bytes()[:-1] + b"\x07")
    assert shown(snapshot)[0] == 1
    assert "checksum" in shown(snapshot)[1][-1]
    txn_index = file(directory, ".txnindex")
    txn_index.write_bytes(b"\x05" + txn_index.read_bytes()[1:])
    assert shown(txn_index) == (1, ["!! the entry at byte 0 is of an unknown form"])
    epochs = directory / "leader-epoch-checkpoint"
    epochs.write_text("0\n1\nthree 6\n")
    assert shown(epochs) == (1, ["!! entry 1 is not an epoch and an offset: three 6"])
    epochs.write_text("7\n")
    assert shown(epochs)[0] == 1


def test_what_is_no_file_of_a_log_is_refused_and_the_others_are_shown(directory: Path) -> None:
    out = io.StringIO()
    missing, other = file(directory, ".log", base=55), directory / "notes.txt"
    other.touch()
    assert dump([missing, other, directory, file(directory, ".index")], False, out) == 1
    text = out.getvalue()
    assert "!! cannot be read: No such file or directory" in text
    assert text.count("!! not a file this command knows") == 2
    assert text.endswith("3 entries\n")
    assert shown(directory / "leader-epoch-checkpoint.gone")[0] == 1


# The command


def test_the_command_prints_and_tells_by_its_exit_code(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump-log", str(file(directory, ".log")), "--print-data-log"]) == 0
    assert "key key | value value" in capsys.readouterr().out
    assert main(["dump-log", str(directory / "nothing.log")]) == 1
    with pytest.raises(SystemExit) as error:
        main(["dump-log"])
    assert error.value.code == 2


def test_who_reads_only_the_beginning_gets_no_traceback(directory: Path) -> None:
    path = file(directory, ".log")
    path.write_bytes(b"".join(batch(base_offset=offset) for offset in range(3000)))
    command = [sys.executable, "-m", "pykafka_broker", "dump-log", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait() == 0
