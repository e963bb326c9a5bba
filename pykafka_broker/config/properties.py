"""Java's .properties text, read as java.util.Properties reads it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLANK = " \t\f"
_LINE_END = re.compile(r"\r\n|\n|\r")
_SPLIT = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.|$)", re.DOTALL)
_SPECIAL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


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
        return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _SPECIAL.get(escaped, escaped)

    return _ESCAPE.sub(plain, text)
