"""Messages at random, from their declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from pykafka_broker.protocol.api import APIS
from pykafka_broker.protocol.types import (
    Array,
    Field,
    Scalar,
    WireType,
    boolean,
    float64,
    records,
    spec_of,
    string,
    uuid,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hypothesis.strategies import SearchStrategy

    Narrow = Callable[[type[Any], Field], SearchStrategy[Any] | None]

MESSAGES = [cls for api in APIS.values() for cls in (api.request, api.response)]


def every_version() -> Iterator[tuple[type[Any], int]]:
    for cls in MESSAGES:
        for version in spec_of(cls).versions:
            yield cls, version


def _anything(cls: type[Any], field: Field) -> None:
    """Leaves every field the whole range of its type."""


def messages(cls: type[Any], version: int, narrow: Narrow = _anything) -> SearchStrategy[Any]:
    """Messages that set the fields of this version and leave the others at their defaults. `narrow` may
    give the values of a field itself."""
    values = {}
    for field in spec_of(cls).fields:
        if version in field.versions:
            narrowed = narrow(cls, field)
            values[field.name] = _values(field, version, narrow) if narrowed is None else narrowed
    return st.builds(cls, **values)


def _values(field: Field, version: int, narrow: Narrow) -> SearchStrategy[Any]:
    values = _of_type(field.type, version, narrow)
    if isinstance(field.type, type) and version in field.tagged:
        # Absent and a struct of defaults are the same on the wire; decoding gives the former.
        default = field.type()
        return st.none() | values.filter(lambda value: value != default)
    return st.none() | values if version in field.nullable else values


def _of_type(wire_type: WireType, version: int, narrow: Narrow) -> SearchStrategy[Any]:
    if isinstance(wire_type, Array):
        # Long enough, now and then, for a count that takes two bytes as a varint.
        few = st.lists(_of_type(wire_type.element, version, narrow), max_size=3)
        if isinstance(wire_type.element, Scalar):
            return few | st.integers(126, 130).map(lambda size: [wire_type.element.zero] * size)
        return few
    if isinstance(wire_type, type):
        return messages(wire_type, version, narrow)
    if wire_type is boolean:
        return st.booleans()
    if wire_type is float64:
        return st.floats(allow_nan=False)
    if wire_type is uuid:
        return st.uuids()
    if isinstance(wire_type, Scalar):
        bits = 8 * wire_type.size
        return (
            st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
            if wire_type.code.islower()
            else st.integers(0, (1 << bits) - 1)
        )
    if wire_type is string:
        return st.text(max_size=5) | st.integers(125, 130).map(lambda size: "é" * size)
    if wire_type is records:
        return st.binary(max_size=200).map(memoryview)
    return st.binary(max_size=200)
