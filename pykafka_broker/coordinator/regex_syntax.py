"""Reads a regular expression in the syntax of RE2, which Kafka's brokers speak, and refuses what RE2 refuses.

Topic names are ASCII, so a set of characters is a number with one bit for each ASCII character.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pykafka_broker.coordinator.regex_classes import ALL, PERL, POSIX, fold, span, unicode_class

MOST_REPEATS: Final = 1000
"""As in RE2."""
DEEPEST: Final = 100
"""How deep groups may nest. RE2 allows more; nobody needs it."""
UNBOUNDED: Final = -1


class InvalidRegex(Exception):
    """Not a regular expression; the message says why."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set."""

    bits: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A place between characters: "start", "end", "word" for the edge of a word, "inside" for anywhere else."""

    where: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; nothing at all if empty."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of several."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same thing, so many times."""

    body: Node
    least: int
    most: int


Node: TypeAlias = Chars | Edge | Sequence | Either | Repeat

_EDGES: Final = {"A": "start", "z": "end", "b": "word", "B": "inside"}
_CONTROL: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse_regex(text: str) -> Node:
    """The tree of a regular expression. InvalidRegex if RE2 would refuse it."""
    return _Parser(text).parse()


@dataclass(slots=True)
class _Group:
    """A parenthesis that is still open, or the whole expression."""

    ignore_case: bool
    branches: list[Node] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)

    def end_branch(self) -> None:
        self.branches.append(self.parts[0] if len(self.parts) == 1 else Sequence(tuple(self.parts)))
        self.parts = []

    def close(self) -> Node:
        self.end_branch()
        return self.branches[0] if len(self.branches) == 1 else Either(tuple(self.branches))


class _Parser:
    """Walks the text once, with the open parentheses on a stack."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._ignore_case = False
        self._open = [_Group(ignore_case=False)]
        self._names: set[str] = set()

    def parse(self) -> Node:
        while self._at < len(self._text):
            self._item(self._next())
        if len(self._open) > 1:
            raise InvalidRegex("missing closing )")
        return self._open[0].close()

    def _next(self) -> str:
        if self._at == len(self._text):
            raise InvalidRegex("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _skip(self, expected: str) -> bool:
        found = self._text.startswith(expected, self._at)
        if found:
            self._at += len(expected)
        return found

    def _add(self, node: Node) -> None:
        self._open[-1].parts.append(node)

    def _item(self, char: str) -> None:
        match char:
            case "(":
                self._open_group()
            case ")":
                self._close_group()
            case "|":
                self._open[-1].end_branch()
            case "[":
                self._add(Chars(self._class()))
            case "\\":
                self._escaped()
            case "^":
                self._add(Edge("start"))
            case "$":
                self._add(Edge("end"))
            case ".":
                self._add(Chars(ALL))
            case "*" | "+" | "?" | "{" if (counts := self._counts(char)) is not None:
                self._repeat(*counts)
            case _:
                self._literal(char)

    def _literal(self, char: str) -> None:
        bits = 1 << ord(char) if char.isascii() else 0
        self._add(Chars(fold(bits) if self._ignore_case else bits))

    def _open_group(self) -> None:
        outside = self._ignore_case
        if self._skip("?") and not self._named() and not self._flags():
            return
        if len(self._open) > DEEPEST:
            raise InvalidRegex("it nests too deeply")
        self._open.append(_Group(outside))

    def _named(self) -> bool:
        """Reads the name of a group; False if it has none."""
        if not (
            self._skip("P<")
            or (self._text[self._at + 1 : self._at + 2] not in ("=", "!") and self._skip("<"))
        ):
            return False
        name, closed, _ = self._text[self._at :].partition(">")
        if not closed or not name or not all(c.isascii() and (c.isalnum() or c == "_") for c in name):
            raise InvalidRegex("invalid named capture")
        if name in self._names:
            raise InvalidRegex(f"duplicate capture group name {name}")
        self._names.add(name)
        self._at += len(name) + 1
        return True

    def _flags(self) -> bool:
        """Reads `i`, `-i`, `i:` and the like; whether they open a group."""
        ignore_case, on, seen = self._ignore_case, True, False
        while True:
            match self._next():
                case "i":
                    ignore_case, seen = on, True
                case "m" | "s" | "U":
                    seen = True  # without effect: names have no lines, and matches are of the whole
                case "-" if on:
                    on, seen = False, False
                case (":" | ")") as end if on or seen:
                    self._ignore_case = ignore_case
                    return end == ":"
                case _:
                    raise InvalidRegex("invalid group syntax: lookaround and the like are not supported")

    def _close_group(self) -> None:
        if len(self._open) == 1:
            raise InvalidRegex("unexpected )")
        group = self._open.pop()
        self._ignore_case = group.ignore_case
        self._add(group.close())

    def _counts(self, char: str) -> tuple[int, int] | None:
        """How often what stands before is repeated; None if a brace is just a brace."""
        if char != "{":
            return {"*": (0, UNBOUNDED), "+": (1, UNBOUNDED), "?": (0, 1)}[char]
        inside, closed, _ = self._text[self._at :].partition("}")
        least, comma, most = inside.partition(",")
        if not closed or not _is_number(least) or (most and not _is_number(most)):
            return None
        self._at += len(inside) + 1
        low = int(least)
        high = low if not comma else int(most) if most else UNBOUNDED
        if low > MOST_REPEATS or high > MOST_REPEATS or (high != UNBOUNDED and low > high):
            raise InvalidRegex(f"bad repetition operator {{{inside}}}")
        return low, high

    def _repeat(self, least: int, most: int) -> None:
        parts = self._open[-1].parts
        if not parts:
            raise InvalidRegex("missing argument to repetition operator")
        self._skip("?")  # being lazy changes what is captured, not what matches
        before = self._at
        if self._at < len(self._text) and self._text[self._at] in "*+?{":
            if self._counts(self._next()) is not None:
                raise InvalidRegex("invalid nested repetition operator")
            self._at = before
        parts.append(Repeat(parts.pop(), least, most))

    def _escaped(self) -> None:
        if self._at < len(self._text) and self._text[self._at] in _EDGES:
            self._add(Edge(_EDGES[self._next()]))
        elif self._skip("Q"):
            quoted, _, _ = self._text[self._at :].partition("\\E")
            self._at = min(self._at + len(quoted) + 2, len(self._text))
            for char in quoted:
                self._literal(char)
        elif (bits := self._escaped_class()) is not None:
            self._add(Chars(bits))
        else:
            self._literal(self._escaped_char())

    def _escaped_class(self) -> int | None:
        """The set behind `\\d`, `\\pN` and their like, the backslash being read."""
        if self._at == len(self._text):
            raise InvalidRegex("trailing backslash")
        char = self._text[self._at]
        if char.lower() in PERL and char.isascii():
            self._at += 1
            return PERL[char] if char.islower() else ALL & ~PERL[char.lower()]
        if char not in "pP":
            return None
        self._at += 1
        name = self._next()
        if name == "{":
            name, closed, _ = self._text[self._at :].partition("}")
            if not closed:
                raise InvalidRegex("invalid character class range")
            self._at += len(name) + 1
        negated = name.startswith("^")
        bits = unicode_class(name.removeprefix("^"))
        if bits is None:
            raise InvalidRegex(f"invalid character class range {name}")
        if self._ignore_case:
            bits = fold(bits)
        return bits if (char == "p") != negated else ALL & ~bits

    def _escaped_char(self) -> str:
        char = self._next()
        if char in _CONTROL:
            return _CONTROL[char]
        if char in "01234567":
            digits = char
            while len(digits) < 3 and self._at < len(self._text) and self._text[self._at] in "01234567":
                digits += self._next()
            if char != "0" and len(digits) == 1:
                raise InvalidRegex("invalid escape sequence: backreferences are not supported")
            return chr(int(digits, 8))
        if char == "x":
            return self._hexadecimal()
        if not (char.isascii() and char.isalnum()):
            return char
        raise InvalidRegex(f"invalid escape sequence \\{char}")

    def _hexadecimal(self) -> str:
        if self._skip("{"):
            digits, closed, _ = self._text[self._at :].partition("}")
            self._at += len(digits) + 1
        else:
            digits, closed = self._text[self._at : self._at + 2], "}"
            self._at += 2
            if len(digits) < 2:
                raise InvalidRegex("invalid escape sequence \\x")
        if not closed or not digits or any(c not in "0123456789abcdefABCDEF" for c in digits):
            raise InvalidRegex("invalid escape sequence \\x")
        if (code := int(digits, 16)) > 0x10FFFF:
            raise InvalidRegex("invalid escape sequence \\x")
        return chr(code)

    def _class(self) -> int:
        """A set in brackets, the first of which is read."""
        negated = self._skip("^")
        bits, first = 0, True
        while first or not self._skip("]"):
            first = False
            if self._at == len(self._text):
                raise InvalidRegex("missing closing ]")
            if self._text.startswith("[:", self._at) and (named := self._posix()) is not None:
                bits |= named
            elif self._skip("\\"):
                escaped = self._escaped_class()
                bits |= self._range(self._escaped_char()) if escaped is None else escaped
            else:
                bits |= self._range(self._next())
        if self._ignore_case:
            bits = fold(bits)
        return ALL & ~bits if negated else bits

    def _posix(self) -> int | None:
        name, closed, _ = self._text[self._at + 2 :].partition(":]")
        if not closed:
            return None
        if name.removeprefix("^") not in POSIX:
            raise InvalidRegex(f"invalid character class range [:{name}:]")
        self._at += len(name) + 4
        return ALL & ~POSIX[name[1:]] if name.startswith("^") else POSIX[name]

    def _range(self, low: str) -> int:
        """The character alone, or all from it to another."""
        ahead = self._text[self._at : self._at + 2]
        if len(ahead) < 2 or ahead[0] != "-" or ahead[1] == "]":
            return span(low, low)
        self._at += 1
        high = self._escaped_char() if self._skip("\\") else self._next()
        if high < low:
            raise InvalidRegex(f"invalid character class range {low}-{high}")
        return span(low, high)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or not text.startswith("0")) and len(text) < 9
