"""Sets of ASCII characters under the names regular expressions have for them, one bit a character."""

from __future__ import annotations

import string
import unicodedata
from typing import Final

ASCII: Final = 128
ALL: Final = (1 << ASCII) - 1


def span(low: str, high: str) -> int:
    """All from one character to another; what is not ASCII falls away."""
    return (1 << min(ord(high) + 1, ASCII)) - (1 << min(ord(low), ASCII))


def _of(chars: str) -> int:
    return sum(1 << ord(char) for char in set(chars))


def fold(bits: int) -> int:
    """With the other case of every letter."""
    upper, lower = bits & POSIX["upper"], bits & POSIX["lower"]
    return bits | upper << 32 | lower >> 32


PERL: Final = {
    "d": _of(string.digits),
    "s": _of("\t\n\f\r "),
    "w": _of(string.ascii_letters + string.digits + "_"),
}

POSIX: Final = {
    "alnum": _of(string.ascii_letters + string.digits),
    "alpha": _of(string.ascii_letters),
    "ascii": ALL,
    "blank": _of("\t "),
    "cntrl": span("\0", "\x1f") | span("\x7f", "\x7f"),
    "digit": _of(string.digits),
    "graph": span("!", "~"),
    "lower": _of(string.ascii_lowercase),
    "print": span(" ", "~"),
    "punct": _of(string.punctuation),
    "space": _of(string.whitespace),
    "upper": _of(string.ascii_uppercase),
    "word": PERL["w"],
    "xdigit": _of(string.hexdigits),
}

_CATEGORIES: Final = (
    frozenset({"C", "Cf", "Co", "Cs", "L", "Lm", "Lo", "Lt", "M", "Mc", "Me", "Mn", "N", "Nl", "No"})
    | {
        name
        for code in range(ASCII)
        for name in (unicodedata.category(chr(code)), unicodedata.category(chr(code))[0])
    }
    | {"Pf", "Pi", "So", "Zl", "Zp"}
)
_SCRIPTS_WITHOUT_ASCII: Final = frozenset(
    {
        *(
            "Arabic",
            "Armenian",
            "Bengali",
            "Bopomofo",
            "Cherokee",
            "Cyrillic",
            "Devanagari",
            "Ethiopic",
            "Georgian",
        ),
        *(
            "Greek",
            "Gujarati",
            "Gurmukhi",
            "Han",
            "Hangul",
            "Hebrew",
            "Hiragana",
            "Inherited",
            "Kannada",
            "Katakana",
        ),
        *(
            "Khmer",
            "Lao",
            "Malayalam",
            "Mongolian",
            "Myanmar",
            "Sinhala",
            "Tamil",
            "Telugu",
            "Thaana",
            "Thai",
        ),
        "Tibetan",
    }
)


def unicode_class(name: str) -> int | None:
    """The ASCII part of a general category or script of Unicode; None if there is none of this name."""
    if name == "Any":
        return ALL
    if name == "Latin":
        return POSIX["alpha"]
    if name == "Common":
        return ALL & ~POSIX["alpha"]
    if name in _SCRIPTS_WITHOUT_ASCII:
        return 0
    if name not in _CATEGORIES:
        return None
    return sum(1 << code for code in range(ASCII) if unicodedata.category(chr(code)).startswith(name))
