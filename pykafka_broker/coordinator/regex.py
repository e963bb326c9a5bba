"""Regular expressions over topic names that take time linear in the name, whatever a client thinks up.

An expression becomes a small machine that is in several states at once; sets of states met before are remembered, so
that common expressions cost one look-up a character. There is no backtracking to be tricked into.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pykafka_broker.coordinator.regex_classes import PERL
from pykafka_broker.coordinator.regex_syntax import (
    UNBOUNDED,
    Chars,
    Edge,
    Either,
    InvalidRegex,
    Node,
    Repeat,
    Sequence,
    parse_regex,
)

_MOST_STATES: Final = 2_000
"""Bounds the work for one character of a name."""
_MOST_REMEMBERED: Final = 1_000
_WORD: Final = PERL["w"]


@dataclass(slots=True)
class _State:
    """Either takes a character out of `bits` and goes on, or goes on at once, if it stands at the `edge`."""

    bits: int = 0
    edge: str | None = None
    after: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Set:
    """The states a match may be in before a character, and what came before it."""

    states: frozenset[int]
    at_start: bool
    after_word: bool


class TopicRegex:
    """One regular expression. Remembers what it met; the owner is whoever made it."""

    def __init__(self, text: str) -> None:
        """InvalidRegex if Kafka would refuse it, or if it is out of all proportion."""
        self.text = text
        self.work = 0
        """How many states were visited so far, for those who must share time fairly."""
        self._states: list[_State] = []
        self._end = self._add(_State())
        self._start = _Set(
            frozenset({self._build(parse_regex(text), self._end)}), at_start=True, after_word=False
        )
        self._known: dict[_Set, dict[str, _Set]] = {}

    def matches(self, name: str) -> bool:
        """Whether the whole name matches."""
        known = self._known
        if len(known) > _MOST_REMEMBERED:
            known.clear()
        current = self._start
        for char in name:
            steps = known.get(current)
            if steps is None:
                steps = known[current] = {}
            following = steps.get(char)
            if following is None:
                following = steps[char] = self._step(current, char)
            current = following
            if not current.states:
                return False
        return self._end in self._reached(current, next_char=None)

    def _step(self, current: _Set, char: str) -> _Set:
        bit = 1 << ord(char) if char.isascii() else 0
        onward: set[int] = set()
        for number in self._reached(current, char):
            state = self._states[number]
            if state.bits & bit:
                onward.update(state.after)
        return _Set(frozenset(onward), at_start=False, after_word=bool(bit & _WORD))

    def _reached(self, current: _Set, next_char: str | None) -> set[int]:
        """The states of a set and all that follow without a character."""
        before_word = next_char is not None and next_char.isascii() and bool(1 << ord(next_char) & _WORD)
        edges = {None, "word" if current.after_word != before_word else "inside"}
        if current.at_start:
            edges.add("start")
        if next_char is None:
            edges.add("end")
        reached = set(current.states)
        waiting = list(reached)
        while waiting:
            state = self._states[waiting.pop()]
            if not state.bits and state.edge in edges:
                for number in state.after:
                    if number not in reached:
                        reached.add(number)
                        waiting.append(number)
        self.work += len(reached)
        return reached

    def _add(self, state: _State) -> int:
        if len(self._states) >= _MOST_STATES:
            raise InvalidRegex("expression too large")
        self._states.append(state)
        return len(self._states) - 1

    def _build(self, node: Node, after: int) -> int:
        """The state that matches the node and then goes on to `after`. Built from the end to the start."""
        match node:
            case Chars(bits):
                return self._add(_State(bits=bits, after=[after]) if bits else _State(edge="never"))
            case Edge(where):
                return self._add(_State(edge=where, after=[after]))
            case Sequence(parts):
                for part in reversed(parts):
                    after = self._build(part, after)
                return after
            case Either(branches):
                return self._add(_State(after=[self._build(branch, after) for branch in branches]))
            case Repeat(body, least, most):
                return self._build_repeat(body, least, most, after)

    def _build_repeat(self, body: Node, least: int, most: int, after: int) -> int:
        if most == UNBOUNDED:
            loop = self._add(_State(after=[after]))
            self._states[loop].after.append(self._build(body, loop))
            after = loop
        else:
            leave = after
            for _ in range(most - least):
                after = self._add(_State(after=[leave, self._build(body, after)]))
        for _ in range(least):
            after = self._build(body, after)
        return after
