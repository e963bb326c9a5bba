"""Java's .properties text, read as java.util.Properties reads it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pykafka_broker.config.values import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLANK = " \t\f"
_LINE_END = re.compile(r"\r\n|\n|\r")
_SPLIT = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.|$)", re.DOTALL)
_SPECIAL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: Path) -> dict[str, str]:
    """What a file says. Java reads such files as ISO 8859-1, and people write them as UTF-8."""
    data = path.read_bytes()
    try:
        return parse_properties(data.decode("utf-8"))
    except UnicodeDecodeError:
        return parse_properties(data.decode("iso-8859-1"))


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values of a .properties text; of a key given twice the last value stands."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _SPLIT.match(line)
        assert match is not None, "the pattern matches any text"
        found[_unescape(match["key"])] = _unescape(match["value"])
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blanks, each joined with those it continues on."""
    pending: str | None = None
    for raw in _LINE_END.split(text):
        line = raw.lstrip(_BLANK)
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = (pending or "") + line
        pending = None
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
        else:
            yield line
    if pending:
        yield pending


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped == "u":
            raise ConfigError(rf"Malformed \uxxxx encoding: {text}")
        return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _SPECIAL.get(escaped, escaped)

    return _ESCAPE.sub(plain, text)
