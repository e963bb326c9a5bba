"""A directory on any file system Spark can write to. Names are relative to it."""

from __future__ import annotations

import contextlib
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JJavaError

from pykafka_broker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Found(NamedTuple):
    name: str
    size: int
    modified: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Hadoop's file system for a root directory, with the few operations a manifest needs."""

    spark: SparkSession
    root: str

    def path(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"

    def files(self, under: str = "") -> list[Found]:
        """Every file below, sorted by name; nothing if the directory is not there."""
        fs, root = self._fs(), self._java_path("")
        top = self._java_path(under)
        if not fs.exists(top):
            return []
        prefix = fs.makeQualified(root).toUri().getPath().rstrip("/") + "/"
        found = []
        listing = fs.listFiles(top, True)
        while listing.hasNext():
            status = listing.next()
            name = status.getPath().toUri().getPath().removeprefix(prefix)
            found.append(Found(name, status.getLen(), status.getModificationTime() / 1000))
        return sorted(found)

    def exists(self, name: str) -> bool:
        return bool(self._fs().exists(self._java_path(name)))

    def read(self, name: str) -> str:
        if local := self._local(name):
            return local.read_text()
        stream = self._fs().open(self._java_path(name))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def create(self, name: str, text: str) -> bool:
        """Put a whole new file in its place; False, and nothing changed, if the name is taken."""
        temporary = f"_temporary-{uuid.uuid4().hex}"
        if local := self._local(name):
            return _create_locally(local, self._local(temporary) or local, text)
        fs = self._fs()
        stream = fs.create(self._java_path(temporary), False)
        stream.write(bytearray(text.encode()))
        stream.close()
        if fs.exists(self._java_path(name)):
            fs.delete(self._java_path(temporary), False)
            return False
        return bool(fs.rename(self._java_path(temporary), self._java_path(name)))

    def move(self, name: str, to: str) -> None:
        fs, target = self._fs(), self._java_path(to)
        fs.mkdirs(target.getParent())
        if not fs.rename(self._java_path(name), target):
            raise PipelineError(f"cannot move {self.path(name)} to {self.path(to)}")

    def delete(self, name: str) -> None:
        self._fs().delete(self._java_path(name), True)

    def make(self, name: str) -> None:
        self._fs().mkdirs(self._java_path(name))

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm  # noqa: SLF001 - PySpark has no public way to Hadoop's file systems

    def _fs(self) -> Any:
        configuration = self.spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
        try:
            return self._java_path("").getFileSystem(configuration)
        except Py4JJavaError as error:
            raise PipelineError(f"{self.root}: {error.java_exception.getMessage()}") from error

    def _java_path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.path(name) if name else self.root)

    def _local(self, name: str) -> Path | None:
        """The file in this machine's own file system, if it is there that the directory lies."""
        uri = self._fs().makeQualified(self._java_path(name)).toUri()
        return Path(uri.getPath()) if uri.getScheme() == "file" else None


def _create_locally(target: Path, temporary: Path, text: str) -> bool:
    target.parent.mkdir(parents=True, exist_ok=True)
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        with contextlib.suppress(FileExistsError):
            os.link(temporary, target)  # unlike a rename this never replaces what somebody else put there
            return True
        return False
    finally:
        temporary.unlink()
