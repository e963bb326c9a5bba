"""Kafka's checkpoint files: small texts of a version, a count and that many lines, replaced as a whole."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

VERSION = 0

TopicPartition = tuple[str, int]


class CheckpointError(Exception):
    """A checkpoint file that does not read as one."""


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` so that after any crash it holds either the old content or the new, wholly."""
    temporary = path.with_name(path.name + ".tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)
    temporary.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make creations and renames in `directory` survive a crash of the machine."""
    _sync(directory, os.O_DIRECTORY)


def sync_file(path: Path) -> None:
    """Force what was written to the file to the disk, whoever wrote it; may run in a thread."""
    _sync(path, 0)


def _sync(path: Path, flags: int) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a checkpoint of these lines."""
    content = list(lines)
    write_atomically(path, "\n".join([str(VERSION), str(len(content)), *content, ""]).encode())


def read_lines(path: Path) -> list[list[str]]:
    """The lines of a checkpoint as fields; none if there is no file. CheckpointError if it is damaged."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path}: not a text") from error
    if len(lines) < 2 or lines[0] != str(VERSION) or not lines[1].isdigit():
        raise CheckpointError(f"{path}: expected version {VERSION} and a count, found {lines[:2]}")
    entries = [line.split() for line in lines[2:] if line.strip()]
    if len(entries) != int(lines[1]):
        raise CheckpointError(f"{path}: announces {lines[1]} entries and holds {len(entries)}")
    return entries


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Write an offset checkpoint: recovery points, log start offsets, high watermarks, cleaner positions."""
    write_lines(path, (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()))


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint; empty if there is no file. CheckpointError if it is damaged."""
    try:
        return {(topic, int(partition)): int(offset) for topic, partition, offset in read_lines(path)}
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error


class OffsetCheckpoint:
    """Owner of one offset checkpoint; `offsets` is what it says. One thread writes at a time."""

    __slots__ = ("_path", "offsets")

    def __init__(self, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
        self._path = path
        self.offsets = offsets

    def replace(self, offsets: Mapping[TopicPartition, int]) -> None:
        """From now on it says this, on the disk too. If the disk fails, it says what it said."""
        write_offsets(self._path, offsets)
        self.offsets = offsets

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Says nothing of these any more; written only if it did."""
        gone = self.offsets.keys() & partitions
        if gone:
            self.replace({key: offset for key, offset in self.offsets.items() if key not in gone})
