"""The `.log` file of one segment: whole batches, one after another, and ways to walk over them by their headers."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final

from pykafka_broker.log.mapping import AVAILABLE, Mapping
from pykafka_broker.log.offline import StorageError
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

log = logging.getLogger(__name__)

LENGTH_PREFIX: Final = 12  # base offset and batch length: what `batch_length` does not count
MIN_BATCH_LENGTH: Final = HEADER_SIZE - LENGTH_PREFIX
_RWF_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)
_SCAN_BLOCK: Final = 8 * 1024
_WORTH_MAPPING: Final = 64 * 1024  # below it, copying is cheaper than asking which pages are in memory


class Descriptor:
    """An open file that closes when nobody holds it any more, so that a reader in a thread can never
    find its descriptor number given to another file."""

    __slots__ = ("_mapping", "fd")

    def __init__(self, path: Path) -> None:
        self.fd = -1
        self._mapping: Mapping | None = None
        self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def mapped(self, upto: int) -> Mapping | None:
        """A mapping that reaches `upto`: the one there is, or a new one of all that the file holds by now."""
        if self._mapping is None or self._mapping.size < upto:
            size = os.fstat(self.fd).st_size
            if size < upto:
                return None
            self._mapping = Mapping(self.fd, size)
        return self._mapping


class Slice:
    """A run of bytes of one segment, not read yet. It stays readable when the segment is rolled or deleted."""

    __slots__ = ("_file", "position", "size")

    def __init__(self, file: Descriptor | None, position: int, size: int) -> None:
        self._file = file
        self.position = position
        self.size = size

    def read_nowait(self) -> memoryview | None:
        """The bytes if the page cache holds them all, else None: then `read` belongs in a thread."""
        if self._file is None:
            return _NOTHING
        buffer = bytearray(self.size)
        try:
            got = os.preadv(self._file.fd, (buffer,), self.position, _RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError:  # a file system without RWF_NOWAIT, or one that says more if asked again
            return self.read()
        return memoryview(buffer) if got == self.size else None

    def view_nowait(self) -> memoryview | None:
        """The bytes as `read_nowait` gives them, but for system calls only (see `mapping`): a large slice is not
        copied."""
        if self._file is None or self.size < _WORTH_MAPPING or not AVAILABLE:
            return self.read_nowait()
        mapping = self._file.mapped(self.position + self.size)
        return None if mapping is None else mapping.view(self.position, self.size)

    def read(self) -> memoryview:
        """The bytes, blocking until they are there; shorter if the log was truncated meanwhile.

        StorageError if the disk does not give them."""
        if self._file is None:
            return _NOTHING
        buffer = memoryview(bytearray(self.size))
        got = 0
        try:
            while got < self.size:
                count = os.preadv(self._file.fd, (buffer[got:],), self.position + got)
                if count == 0:
                    break
                got += count
        except OSError as error:
            log.exception("reading a segment failed")
            raise StorageError(f"cannot read: {error}") from error
        return buffer[:got]


_NOTHING: Final = memoryview(b"")
EMPTY_SLICE: Final = Slice(None, 0, 0)


class LogFile:
    """Owner of one `.log` file's descriptor and of the number of good bytes in it; its owner is the segment."""

    __slots__ = ("_file", "path", "size")

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size
        self._file: Descriptor | None = None

    @property
    def file(self) -> Descriptor:
        file = self._file
        if file is None:
            file = self._file = Descriptor(self.path)
        return file

    def release(self) -> None:
        """Gives the descriptor back until it is needed again."""
        self._file = None

    def append(self, data: bytes | bytearray | memoryview) -> int:
        """Writes all of `data` at the end and gives its position. On failure the file keeps its old size."""
        position = self.size
        fd = (self._file or self.file).fd
        length = len(data)
        try:
            written = os.pwrite(fd, data, position)
            while written < length:
                # A regular file takes less only when it cannot grow: asking again brings the reason.
                count = os.pwrite(fd, memoryview(data)[written:], position + written)
                if count <= 0:
                    raise OSError(f"{self.path}: wrote {written} of {length} bytes")
                written += count
        except BaseException:
            self.cut_back()
            raise
        self.size = position + length
        return position

    def cut_back(self) -> None:
        """Drops bytes after the last good one, as far as the disk lets us; recovery does the same later."""
        try:
            os.ftruncate(self.file.fd, self.size)
        except OSError:
            self.release()

    def truncate(self, size: int) -> None:
        os.ftruncate(self.file.fd, size)
        self.size = size

    def sync(self) -> None:
        """Everything written so far to the disk; may run in a thread. FileNotFoundError if the file is gone."""
        file = self._file or Descriptor(self.path)  # held until the end: the owner may release it meanwhile
        os.fdatasync(file.fd)

    def slice(self, position: int, size: int) -> Slice:
        return Slice(self._file or self.file, position, size)

    def read(self, position: int, size: int) -> bytes:
        """Exactly `size` bytes, fewer only where the file ends."""
        fd = (self._file or self.file).fd
        data = os.pread(fd, size, position)
        while len(data) < size:
            more = os.pread(fd, size - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def headers(self, position: int, block: int = _SCAN_BLOCK) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each whole batch from `position` on; stops at the end or at what is no batch."""
        end = self.size
        data = b""
        start = position  # where `data` lies in the file
        while position + HEADER_SIZE <= end:
            at = position - start
            if at + HEADER_SIZE > len(data):
                data, start, at = self.read(position, min(block, end - position)), position, 0
            try:
                header = read_header(data, at)
            except MalformedError:
                return
            if header.batch_length < MIN_BATCH_LENGTH or header.magic != 2 or position + header.size > end:
                return
            yield position, header
            position += header.size

    def batches(self, position: int, block: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Position, header and bytes of each whole batch from `position` on, read a block at a time."""
        data = memoryview(b"")
        start = position
        for at, header in self.headers(position, block):
            if at + header.size > start + len(data):
                data, start = memoryview(self.read(at, min(max(block, header.size), self.size - at))), at
            yield at, header, data[at - start : at - start + header.size]
