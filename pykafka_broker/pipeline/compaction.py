"""Many small files of an archive into few large ones, in one step for whoever reads.

Replaced files stay on disk for a while, for readers that planned with them; a later run deletes them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pykafka_broker.pipeline.archive import read_files, write_files
from pykafka_broker.pipeline.manifest import COMMITS, Commit, Manifest
from pykafka_broker.pipeline.progress import counted, silent
from pykafka_broker.pipeline.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pykafka_broker.pipeline.manifest import State
    from pykafka_broker.pipeline.progress import Report

COMPACTED = "compacted-"
TARGET_BYTES = 128 << 20
KEEP_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a run changed."""

    replaced: int = 0
    written: int = 0
    deleted: int = 0


def compact(
    spark: SparkSession,
    path: str,
    *,
    target_bytes: int = TARGET_BYTES,
    keep_seconds: float = KEEP_SECONDS,
    report: Report = silent,
) -> Compacted:
    """Bring the files of each topic and day near `target_bytes`; delete what was replaced `keep_seconds` ago."""
    manifest = Manifest(Storage(spark, path))
    state = manifest.load(must_exist=True)
    manifest.check_files(state, state.files)
    replaced = written = 0
    for directory, small in _small(manifest, state, target_bytes).items():
        names = [name for name, _ in small]
        count = max(1, round(sum(size for _, size in small) / target_bytes))
        frame = read_files(spark, manifest.storage, names, state.json_schema)
        ordered = frame.repartitionByRange(count, "partition", "offset").sortWithinPartitions(
            "partition", "offset"
        )
        files = write_files(ordered, manifest.storage, COMPACTED)
        state = manifest.commit(Commit(added=tuple(files), removed=tuple(names)), state)
        replaced, written = replaced + len(names), written + len(files)
        report(f"{directory}: {counted(len(names), 'file')} became {len(files)}")
    return Compacted(replaced, written, _delete_replaced(manifest, state, keep_seconds))


def _small(manifest: Manifest, state: State, target_bytes: int) -> dict[str, list[tuple[str, int]]]:
    """Files below half the target by directory, where there are at least two."""
    found: dict[str, list[tuple[str, int]]] = {}
    for file in manifest.storage.files():
        if file.name in state.files and file.size < target_bytes / 2:
            found.setdefault(file.name.rsplit("/", 1)[0], []).append((file.name, file.size))
    return {directory: files for directory, files in found.items() if len(files) > 1}


def _delete_replaced(manifest: Manifest, state: State, keep_seconds: float) -> int:
    """Only what the archive no longer names: files it replaced, and those of runs that never ended."""
    deadline = time.time() - keep_seconds
    deleted = 0
    for file in manifest.storage.files():
        if not file.name.endswith(".parquet") or file.name.startswith(COMMITS) or file.name in state.files:
            continue
        if state.removed_at.get(file.name, file.modified) <= deadline:
            manifest.storage.delete(file.name)
            deleted += 1
    return deleted
