"""What the Python programs of compat_tests/features share: lines in, lines out."""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def packed(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def unpacked(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def headers_of(record: dict[str, Any]) -> list[tuple[str, bytes]]:
    return [(name, unpacked(value) or b"") for name, value in record["headers"]]


def told(
    partition: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes]],
) -> dict[str, Any]:
    """A record that was read, as it is told."""
    return {
        "partition": partition,
        "offset": offset,
        "timestamp": timestamp,
        "key": packed(key),
        "value": packed(value),
        "headers": [[name, packed(data)] for name, data in headers],
    }


def asked() -> Iterator[tuple[str, dict[str, Any]]]:
    """What is to be done, one after the other, until the input ends."""
    for line in sys.stdin:
        what = json.loads(line)
        yield what.pop("do"), what


def answer(done: dict[str, Any] | None) -> None:
    _say({"ok": done or {}})


def refuse(error: Exception) -> None:
    """What the library said: the error's name and its words."""
    _say({"error": f"{type(error).__name__}: {error}"})


def serve(worker: object) -> None:
    """Each word is a method of the worker."""
    for word, what in asked():
        try:
            done = getattr(worker, word)(**what)
        except Exception as error:  # noqa: BLE001 - whatever the library raises is its answer
            refuse(error)
        else:
            answer(done)


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()
