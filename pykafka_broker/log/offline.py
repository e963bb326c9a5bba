"""A disk that fails a log takes the log offline, not the broker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

log = logging.getLogger(__name__)


class StorageError(KafkaError):
    """The disk failed this log; it answers nothing more until the broker starts again."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class Availability:
    """Whether a log can be used; its owner is the PartitionLog. Everything that touches the disk runs inside
    `with availability:`, which refuses what comes after the end and makes the first OSError that end."""

    __slots__ = ("_directory", "_ended")

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ended: tuple[ErrorCode, str] | None = None

    @property
    def ended(self) -> bool:
        return self._ended is not None

    def end(self, code: ErrorCode, reason: str) -> None:
        """Refuses everything from now on; the first reason stays."""
        if self._ended is None:
            self._ended = code, reason

    def __enter__(self) -> None:
        if self._ended is not None:
            raise self._error()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):
            if self._ended is None:
                log.error("log %s goes offline: %s", self._directory, error)
                self._ended = ErrorCode.KAFKA_STORAGE_ERROR, f"{self._directory.name}: {error}"
            raise self._error() from error

    def _error(self) -> KafkaError:
        assert self._ended is not None
        code, reason = self._ended
        return StorageError(reason) if code is ErrorCode.KAFKA_STORAGE_ERROR else KafkaError(code, reason)
