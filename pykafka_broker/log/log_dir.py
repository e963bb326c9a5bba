"""One directory of `log.dirs`: whose it is, what lies in it, and how far each partition had come at the last stop."""

from __future__ import annotations

import base64
import fcntl
import json
import logging
import os
import re
import shutil
import uuid
from typing import TYPE_CHECKING, Final

from pykafka_broker.log.checkpoints import (
    CheckpointError,
    OffsetCheckpoint,
    TopicPartition,
    read_offsets,
    sync_directory,
    write_atomically,
    write_offsets,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

log = logging.getLogger(__name__)

LOCK_FILE: Final = ".lock"
META_FILE: Final = "meta.properties"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
RECOVERY_POINTS_FILE: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS_FILE: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS_FILE: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS_FILE: Final = "cleaner-offset-checkpoint"
PARTITION_METADATA_FILE: Final = "partition.metadata"
DELETE_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"
QUORUM_TOPIC: Final = "__cluster_metadata"

_MAX_NAME: Final = 255  # of a file, in every file system
_PARTITION_NAME: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<index>[0-9]+)")


class LogDirError(Exception):
    """A directory this broker must not use, and why."""


def partition_directory(log_dir: Path, topic: str, index: int) -> Path:
    return log_dir / f"{topic}-{index}"


def set_aside_name(name: str, suffix: str) -> str:
    """What Kafka renames a partition's directory to when it is out of use: unique, and never too long."""
    ending = f".{uuid.uuid4().hex}{suffix}"
    return name[: _MAX_NAME - len(ending)] + ending


class LogDir:
    """Owner of one log directory, held by a lock until `close`; its owner is the broker.

    `clean` says whether the last broker here stopped cleanly; the three mappings are what the checkpoints say, first as
    it left them. What writes checkpoints may run in a thread, one at a time."""

    def __init__(self, path: Path) -> None:
        """Takes the directory, making it if need be. LogDirError if another broker holds it."""
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lock = self._acquire()
        try:
            meta = self._read_meta()
            self.broker_id = int(meta.get("node.id", meta.get("broker.id", ""))) if meta else None
            self.cluster_id = meta.get("cluster.id")
            self.clean = (path / CLEAN_SHUTDOWN_FILE).exists()
            self._recovery_points = self._checkpoint(RECOVERY_POINTS_FILE)
            self._log_start_offsets = self._checkpoint(LOG_START_OFFSETS_FILE)
            self._high_watermarks = self._checkpoint(HIGH_WATERMARKS_FILE)
        except BaseException:
            self.unlock()
            raise

    @classmethod
    def open(cls, path: Path) -> LogDir:
        """The directory at `path`, ours from now on; reads several files, so it may belong in a thread."""
        return cls(path)

    def _acquire(self) -> int:
        fd = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Java locks with POSIX record locks, which a process may take twice: the second lock guards against
            # another broker in this process.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise LogDirError(
                f"{self.path}: another broker uses this directory ({LOCK_FILE} is held)"
            ) from None
        return fd

    def unlock(self) -> None:
        """Gives the directory back without another word."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _checkpoint(self, name: str) -> OffsetCheckpoint:
        return OffsetCheckpoint(self.path / name, self._load(name))

    def _load(self, name: str) -> dict[TopicPartition, int]:
        """A checkpoint that is damaged counts as none: then everything is validated."""
        try:
            return read_offsets(self.path / name)
        except CheckpointError as error:
            log.warning("checkpoint ignored: %s", error)
            self.clean = False
            return {}

    # Whose it is

    def write_identity(self, broker_id: int, cluster_id: str) -> None:
        """Notes whose directory this is, unless that is noted. LogDirError if it is somebody else's."""
        for name, ours, noted in (
            ("broker.id", broker_id, self.broker_id),
            ("cluster.id", cluster_id, self.cluster_id),
        ):
            if noted is not None and noted != ours:
                raise LogDirError(f"{self.path / META_FILE}: {name} is {noted}, this broker's is {ours}")
        if self.broker_id is None or self.cluster_id is None:
            # A directory that Kafka numbered in its own way keeps that way.
            meta = self._read_meta() or {"version": "0", "broker.id": str(broker_id)}
            meta["cluster.id"] = cluster_id
            lines = ["#", *(f"{name}={value}" for name, value in meta.items()), ""]
            write_atomically(self.path / META_FILE, "\n".join(lines).encode("latin-1"))
            self.broker_id, self.cluster_id = broker_id, cluster_id

    def _read_meta(self) -> dict[str, str]:
        """meta.properties of version 0 (broker.id) or 1 (node.id); empty if there is none."""
        path = self.path / META_FILE
        try:
            lines = path.read_text(encoding="latin-1").splitlines()
        except FileNotFoundError:
            return {}
        found = {}
        for line in lines:
            if line.strip() and not line.lstrip().startswith(("#", "!")):
                name, _, value = line.partition("=")
                found[name.strip()] = value.strip().replace("\\", "")
        if found.get("version") not in ("0", "1"):
            raise LogDirError(f"{path}: version {found.get('version')} is not known")
        number = found.get("node.id", found.get("broker.id", ""))
        if not number.isdigit():
            raise LogDirError(f"{path}: {number!r} is no broker id")
        return found

    # What lies in it

    def partitions(self) -> list[TopicPartition]:
        """Topic and index of every partition here, those marked for deletion left out, and the log of a KRaft quorum,
        which is no topic's."""
        found = []
        for entry in os.scandir(self.path):
            if entry.is_dir() and not entry.name.endswith(DELETE_SUFFIX):
                match = _PARTITION_NAME.fullmatch(entry.name)
                if match and match["topic"] != QUORUM_TOPIC:
                    found.append((match["topic"], int(match["index"])))
        return sorted(found)

    def holds(self, topic: str, index: int) -> bool:
        return partition_directory(self.path, topic, index).is_dir()

    def remove_deleted(self) -> int:
        """Removes what was marked for deletion before the last stop; may take long, so call it in a thread."""
        doomed = [path for path in self.path.glob(f"*{DELETE_SUFFIX}") if path.is_dir()]
        for path in doomed:
            shutil.rmtree(path, ignore_errors=True)
        return len(doomed)

    def set_strays_aside(self, known: Mapping[TopicPartition, uuid.UUID]) -> None:
        """Renames, as Kafka does, what belongs to no topic of the cluster: it is not served, and not lost."""
        strays = []
        for topic, index in self.partitions():
            directory = partition_directory(self.path, topic, index)
            found = self.read_topic_id(directory)
            expected = known.get((topic, index))
            if expected is None or found not in (None, expected):
                aside = directory.with_name(set_aside_name(directory.name, STRAY_SUFFIX))
                log.warning("%s belongs to no known topic: kept as %s", directory, aside.name)
                directory.rename(aside)
                strays.append((topic, index))
        self.forget(strays)

    def write_topic_id(self, directory: Path, topic_id: uuid.UUID) -> None:
        """Notes in a partition's directory which topic it belongs to. LogDirError if it is another one's already."""
        known = self.read_topic_id(directory)
        if known is None:
            text = f"version: 0\ntopic_id: {_uuid_text(topic_id)}"
            write_atomically(directory / PARTITION_METADATA_FILE, text.encode())
        elif known != topic_id:
            raise LogDirError(
                f"{directory} belongs to topic id {_uuid_text(known)}, not {_uuid_text(topic_id)}"
            )

    def read_topic_id(self, directory: Path) -> uuid.UUID | None:
        """The id of the topic a partition's directory belongs to, if that is noted."""
        path = directory / PARTITION_METADATA_FILE
        try:
            fields = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        except FileNotFoundError:
            return None
        try:
            if int(fields["version"]) != 0:
                raise ValueError(f"version {fields['version'].strip()}")
            found = uuid.UUID(bytes=base64.urlsafe_b64decode(fields["topic_id"].strip() + "=="))
        except (KeyError, ValueError) as error:
            raise LogDirError(f"{path} does not read: {error}") from error
        return found if found.int else None

    # How far it had come

    @property
    def recovery_points(self) -> Mapping[TopicPartition, int]:
        return self._recovery_points.offsets

    @property
    def log_start_offsets(self) -> Mapping[TopicPartition, int]:
        return self._log_start_offsets.offsets

    @property
    def high_watermarks(self) -> Mapping[TopicPartition, int]:
        return self._high_watermarks.offsets

    def mark_running(self) -> None:
        """From here on, a stop without `close(clean=True)` makes the next start validate the logs."""
        (self.path / CLEAN_SHUTDOWN_FILE).unlink(missing_ok=True)
        sync_directory(self.path)

    def write_checkpoints(
        self,
        *,
        recovery_points: Mapping[TopicPartition, int],
        log_start_offsets: Mapping[TopicPartition, int],
        high_watermarks: Mapping[TopicPartition, int],
    ) -> None:
        """Writes what is new. A partition that is not mentioned, because its log cannot be opened, say, keeps what it
        has until it is forgotten. As in Kafka, a log that starts at 0 needs no entry."""
        self._recovery_points.replace({**self.recovery_points, **recovery_points})
        starts = {**self.log_start_offsets, **log_start_offsets}
        self._log_start_offsets.replace({key: offset for key, offset in starts.items() if offset > 0})
        self.write_high_watermarks(high_watermarks)

    def write_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Writes that checkpoint alone."""
        self._high_watermarks.replace({**self.high_watermarks, **offsets})

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """When this returns, the checkpoints say nothing of these: they are gone, and others of the same name may come.

        To be called when their directories are out of sight: what is left if that is all that was done before a crash
        is for `forget_missing`. The other way round a log would be opened that has lost its start."""
        for checkpoint in self._checkpoints:
            checkpoint.forget(partitions)

    def forget_missing(self) -> None:
        """Forgets every partition that has no directory here."""
        mentioned = {key for checkpoint in self._checkpoints for key in checkpoint.offsets}
        self.forget([key for key in mentioned if not self.holds(*key)])

    @property
    def _checkpoints(self) -> tuple[OffsetCheckpoint, ...]:
        return self._recovery_points, self._log_start_offsets, self._high_watermarks

    def read_cleaner_offsets(self) -> dict[TopicPartition, int]:
        return self._load(CLEANER_OFFSETS_FILE)

    def write_cleaner_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        write_offsets(self.path / CLEANER_OFFSETS_FILE, offsets)

    def close(self, *, clean: bool, broker_epoch: int = -1) -> None:
        """Gives the directory back; with `clean`, leaves word that no log needs validation."""
        if self._lock < 0:
            return
        try:
            if clean:
                content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
                write_atomically(self.path / CLEAN_SHUTDOWN_FILE, content.encode())
        finally:
            self.unlock()


def _uuid_text(value: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
