"""What the writers of decoders and encoders share: lines of source, and names for the objects they use."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pykafka_broker.protocol.types import Array, Scalar, Sized, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafka_broker.protocol.types import Field, WireType


class Source:
    """A function under construction."""

    def __init__(self, **names: Any) -> None:
        self.names = names
        self._lines: list[str] = []
        self._depth = 1
        self._made: dict[tuple[str, Any], str] = {}
        self._variables = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.line(opening)
        self._depth += 1
        yield
        self._depth -= 1

    def variable(self, hint: str) -> str:
        """A local name nothing else in the function uses."""
        self._variables += 1
        return f"{hint}_{self._variables}"

    def constant(self, kind: str, key: Any, value: Any) -> str:
        """The global name of `value`; the same kind and key give the same name."""
        name = self._made.get((kind, key))
        if name is None:
            name = self._made[kind, key] = f"{kind}{len(self._made)}"
            self.names[name] = value
        return name

    def text(self, signature: str) -> str:
        return "\n".join([signature, *self._lines, ""])


def present(cls: type[Any], version: int) -> tuple[list[Field], list[Field]]:
    """The fields of this version: those in sequence, and those in the tagged section by their tags."""
    fields = [field for field in spec_of(cls).fields if version in field.versions]
    plain = [field for field in fields if version not in field.tagged]
    tagged = [field for field in fields if version in field.tagged]
    return plain, sorted(tagged, key=lambda field: field.tag or 0)


def least_size(wire_type: WireType, version: int, flexible: bool) -> int:
    """The fewest bytes a value can take: it bounds how many elements the bytes at hand can hold."""
    if isinstance(wire_type, Scalar):
        return wire_type.size
    if isinstance(wire_type, Sized):
        return 1 if flexible else 2 if wire_type.name == "string" else 4
    if isinstance(wire_type, Array):
        return 1 if flexible else 4
    plain, _ = present(wire_type, version)
    return flexible + sum(
        1
        if version in field.nullable and isinstance(field.type, type)
        else least_size(field.type, version, flexible)
        for field in plain
    )
