"""What an interrupted deletion or cleaning leaves in a partition's directory, brought to an end."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from pykafka_broker.log.log_file import LogFile
from pykafka_broker.log.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
)

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
_TEMPORARY_SUFFIX: Final = ".tmp"
_OFFSET_DIGITS: Final = 20


def base_offset_of(path: Path) -> int | None:
    """The offset a segment's file is named after; None for any other file."""
    digits = path.name[:_OFFSET_DIGITS]
    return int(digits) if len(digits) == _OFFSET_DIGITS and digits.isdigit() else None


def put_away_leftovers(directory: Path) -> list[int]:
    """Removes what is half done, finishes what was decided; gives the base offsets of the segments there are."""
    _remove_temporary(directory)
    _finish_swap(directory)
    logs = set()
    for path in directory.glob(f"*{LOG_SUFFIX}"):
        offset = base_offset_of(path)
        if offset is not None:
            logs.add(offset)
    for path in directory.iterdir():
        if path.suffix in INDEX_SUFFIXES and base_offset_of(path) not in logs:
            log.warning("%s has no log: removed", path)
            path.unlink()
    return sorted(logs)


def _remove_temporary(directory: Path) -> None:
    """Deleted files go. So do cleaned ones, whose cleaning did not end, and what was swapped in for a later offset:
    a segment that was being split must come back whole or not at all."""
    cleaned = [path for path in directory.glob(f"*{CLEANED_SUFFIX}") if base_offset_of(path) is not None]
    first_cleaned = min((base_offset_of(path) or 0 for path in cleaned), default=None)
    for path in directory.iterdir():
        replaced = path.name.endswith(SWAP_SUFFIX) and _not_below(first_cleaned, base_offset_of(path))
        if replaced or path.name.endswith((DELETED_SUFFIX, _TEMPORARY_SUFFIX)):
            path.unlink()
    for path in cleaned:
        path.unlink()


def _not_below(first: int | None, offset: int | None) -> bool:
    return first is not None and offset is not None and offset >= first


def _finish_swap(directory: Path) -> None:
    """A swap file is a cleaned segment that was complete: it takes the place of all it was made from."""
    swapped = [path for path in directory.glob(f"*{SWAP_SUFFIX}") if base_offset_of(path) is not None]
    for path in swapped:
        if path.name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            first = base_offset_of(path)
            ends = [header.next_offset for _, header in LogFile(path, path.stat().st_size).headers(0)]
            if first is not None and ends:
                _remove_replaced(directory, first, ends[-1])
    # The log first: while it waits, a second start after a second crash would take indexes in place for old ones.
    for path in sorted(swapped, key=lambda path: not path.name.endswith(LOG_SUFFIX + SWAP_SUFFIX)):
        path.rename(path.with_name(path.name.removesuffix(SWAP_SUFFIX)))


def _remove_replaced(directory: Path, first: int, end: int) -> None:
    for path in directory.iterdir():
        offset = base_offset_of(path)
        if offset is not None and first <= offset < end and path.suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
            log.info("%s was cleaned: removed", path)
            path.unlink()
