"""Names for what brokers hand out: the third member id is `member#2` on both sides, whatever each calls it.

Generated requests carry placeholders for such values, which each side fills in with its own; answers of both sides
are written with the names, so that they can be compared.
"""

from __future__ import annotations

import base64
import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

OF_ZOOKEEPER = "z0"
"""The group whose offsets are committed in version 0: see expected.NOT_TRIED."""
ZERO_UUID = UUID(int=0)
_TOPIC_PLACES = 0xFEED << 100
_PRODUCER_PLACES = -(1 << 50)
_SESSION_PLACES = -(1 << 28)
_MEMBER_PLACE = re.compile(r"@member#(\d+)")
_UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

KIND_OF_FIELD = {
    "topic_id": "topic",
    "member_id": "member",
    "leader": "member",
    "producer_id": "producer",
    "session_id": "session",
}
"""Fields whose values are handed out by the broker."""


def placeholder(kind: str, number: int) -> Any:
    """A value that stands for the numbered one of its kind until a side fills in its own."""
    match kind:
        case "topic":
            return UUID(int=_TOPIC_PLACES + number)
        case "member":
            return f"@member#{number}"
        case "producer":
            return _PRODUCER_PLACES - number
        case _:
            return _SESSION_PLACES - number


@dataclass(slots=True)
class Symbols:
    """What one side handed out so far, by kind, in the order it was first seen. Owner of its lists."""

    seen: dict[str, list[Any]] = field(default_factory=dict)

    def name(self, kind: str, value: Any) -> str:
        values = self.seen.setdefault(kind, [])
        if value not in values:
            values.append(value)
        return f"{kind}#{values.index(value)}"

    def place(self, kind: str, value: Any) -> int:
        """Where it stands among those of its kind; -1 if it was not handed out."""
        values = self.seen.get(kind, [])
        return values.index(value) if value in values else -1

    def known(self, kind: str) -> int:
        return len(self.seen.get(kind, ()))

    def fill(self, value: Any) -> Any:
        """The value with every placeholder replaced by what this side calls it."""
        if isinstance(value, list):
            return [self.fill(each) for each in value]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            filled = {f.name: self.fill(getattr(value, f.name)) for f in dataclasses.fields(value)}
            made = dataclasses.replace(value, **filled)
            return bytes(made) if hasattr(made, "__bytes__") else made
        if isinstance(value, UUID) and value.int >= _TOPIC_PLACES:
            return self._at("topic", value.int - _TOPIC_PLACES, ZERO_UUID)
        if isinstance(value, str) and (found := _MEMBER_PLACE.fullmatch(value)):
            return self._at("member", int(found[1]), "nobody")
        if isinstance(value, int) and not isinstance(value, bool):
            if _PRODUCER_PLACES - 1000 < value <= _PRODUCER_PLACES:
                return self._at("producer", _PRODUCER_PLACES - value, 777_777)
            if _SESSION_PLACES - 1000 < value <= _SESSION_PLACES:
                return self._at("session", _SESSION_PLACES - value, 777_777)
        return value

    def _at(self, kind: str, number: int, otherwise: Any) -> Any:
        values = self.seen.get(kind, ())
        return values[number] if number < len(values) else otherwise

    def rename(self, text: str) -> str:
        """A message with the values handed out replaced by their names."""
        for kind, values in self.seen.items():
            for number, value in enumerate(values):
                for form in _forms(value):
                    text = text.replace(form, f"{kind}#{number}")
        return _UUID_TEXT.sub("UUID", text)


def _forms(value: Any) -> list[str]:
    """How a value may stand in a message; numbers are too short to be told from others."""
    if isinstance(value, UUID):
        return [base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")]
    return [value] if isinstance(value, str) and len(value) > 20 else []
