"""Writes the Python source of the decoder of one message in one version.

All structs are inlined into one function. Fields of fixed width that lie side by side, and the first byte of
a length that follows them, are read by one `struct.Struct`. Every length is checked against the bytes left
before anything is made of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias
from uuid import UUID

from pykafka_broker.protocol.columns import ColumnReader, Columns
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.source import Source, least_size, present
from pykafka_broker.protocol.types import (
    Array,
    Buffer,
    Field,
    Scalar,
    WireType,
    records,
    spec_of,
    string,
    uuid,
)

MAX_STRING = 0x7FFF
MAX_ARRAY = 1_000_000
"""Elements, as in Apache Kafka since 4.4."""

Decode: TypeAlias = Callable[[Buffer, int, int], Any]


def decoder_source(cls: type[Any], version: int) -> tuple[str, dict[str, Any]]:
    """Source of `decode(view, pos, end)`, and the globals it needs."""
    writer = _Decoder(version, version in spec_of(cls).flexible)
    writer.struct(cls, "message")
    writer.source.line("return message")
    return writer.source.text("def decode(view, pos, end):"), writer.source.names


class _Decoder:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source(
            uvarint=_uvarint,
            skip_tags=skip_tags,
            to_uuid=_to_uuid,
            too_long=_too_long,
            not_nullable=_not_nullable,
            unpack_from=struct.unpack_from,
            Columns=Columns,
        )
        self._run: list[tuple[str, str]] = []

    def struct(self, cls: type[Any], target: str) -> None:
        plain, tagged = present(cls, self.version)
        variables = {field.name: self.source.variable(field.name) for field in (*plain, *tagged)}
        uuids = []
        for field in plain:
            self._value(field.type, variables[field.name], field.name, self.version in field.nullable)
            if field.type is uuid:
                uuids.append(variables[field.name])
        if self.flexible:
            self._tagged_section(tagged, variables)
        self._flush()
        values = []
        for field in spec_of(cls).fields:
            variable = variables.get(field.name)
            if variable is None:
                values.append(self._default(field))
            else:
                values.append(f"to_uuid({variable})" if variable in uuids else variable)
        name = self.source.constant("C", cls, cls)
        self.source.line(f"{target} = {name}({', '.join(values)})")

    def _value(self, wire_type: WireType, target: str, name: str, nullable: bool) -> None:
        if isinstance(wire_type, Scalar):
            self._run.append((wire_type.code, target))
        elif isinstance(wire_type, type):
            self._struct_value(wire_type, target, nullable)
        elif isinstance(wire_type, Array):
            self._array(wire_type, target, name, nullable)
        else:
            length = self._length("h" if wire_type is string else "i")
            with self._unless_null(length, target, name, nullable):
                # A compact length could say more than the other kind can write: no string is longer than that.
                limit = f" or {length} > {MAX_STRING}" if self.flexible and wire_type is string else ""
                with self.source.block(f"if {length} > end - pos{limit}:"):
                    self.source.line(f"too_long({name!r}, {length})")
                piece = f"view[pos : pos + {length}]"
                if wire_type is string:
                    # Java decodes so too: a name that is no UTF-8 is answered as illegal, not with a closed door.
                    piece = f"str({piece}, 'utf-8', 'replace')"
                elif wire_type is not records:
                    piece = f"bytes({piece})"
                self.source.line(f"{target} = {piece}")
                self.source.line(f"pos += {length}")

    def _struct_value(self, cls: type[Any], target: str, nullable: bool) -> None:
        if not nullable:
            self.struct(cls, target)
            return
        marker = self.source.variable("marker")
        self._run.append(("b", marker))
        self._flush()
        # Null is -1 in sequence and 0 in the tagged section; what is there is 1 in both.
        with self.source.block(f"if {marker} <= 0:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            self.struct(cls, target)

    def _array(self, array: Array, target: str, name: str, nullable: bool) -> None:
        element = array.element
        length = self._length("i")
        with self._unless_null(length, target, name, nullable):
            size = max(1, least_size(element, self.version, self.flexible))
            with self.source.block(f"if {length} * {size} > end - pos or {length} > {MAX_ARRAY}:"):
                self.source.line(f"too_long({name!r}, {length})")
            if isinstance(element, Scalar) and element is not uuid:
                values = f"unpack_from(f'>{{{length}}}{element.code}', view, pos)"
                self.source.line(f"{target} = list({values}) if {length} else []")
                self.source.line(f"pos += {length} * {size}")
                return
            if array.by_column:
                self._columns(element, length, target, name)
            else:
                self._items(element, length, target, name)

    def _items(self, element: WireType, length: str, target: str, name: str) -> None:
        item = self.source.variable("item")
        self.source.line(f"{target} = []")
        with self.source.block(f"for _ in range({length}):"):
            self._value(element, item, name, nullable=False)
            self._flush()
            self.source.line(f"{target}.append({f'to_uuid({item})' if element is uuid else item})")

    def _columns(self, element: WireType, length: str, target: str, name: str) -> None:
        """All rows at once if they are alike, else one after another."""
        assert isinstance(element, type)
        plain, tagged = present(element, self.version)
        assert not tagged, "columns have no tagged fields"
        reader = ColumnReader(element, plain, self.version, flexible=self.flexible)
        read = self.source.constant("R", id(reader), reader.read)
        fields, row = self.source.variable("fields"), self.source.constant("C", element, element)
        self.source.line(f"{fields} = {read}(view, pos, {length}) if {length} else None")
        with self.source.block(f"if {fields} is not None:"):
            self.source.line(f"{target} = Columns({row}, {fields})")
            self.source.line(f"pos += {length} * {reader.size}")
        with self.source.block("else:"):
            self._items(element, length, target, name)
            self.source.line(f"{target} = Columns.of({row}, {target})")

    def _length(self, code: str) -> str:
        """Reads a length or count; below zero stands for null."""
        length = self.source.variable("n")
        self._run.append(("B" if self.flexible else code, length))
        self._flush()
        if self.flexible:
            with self.source.block(f"if {length} > 127:"):
                self.source.line(f"{length}, pos = uvarint(view, pos - 1)")
            self.source.line(f"{length} -= 1")
        return length

    def _unless_null(self, length: str, target: str, name: str, nullable: bool) -> Any:
        with self.source.block(f"if {length} < 0:"):
            self.source.line(f"{target} = None" if nullable else f"not_nullable({name!r})")
        return self.source.block("else:")

    def _tagged_section(self, fields: list[Field], variables: dict[str, str]) -> None:
        count = self.source.variable("tags")
        self._run.append(("B", count))
        self._flush()
        if not fields:
            with self.source.block(f"if {count}:"):
                self.source.line("pos = skip_tags(view, pos - 1, end)")
            return
        for field in fields:
            self.source.line(f"{variables[field.name]} = {self._default(field)}")
        with self.source.block(f"if {count}:"):
            self._known_tags(fields, variables, count)

    def _known_tags(self, fields: list[Field], variables: dict[str, str], count: str) -> None:
        line, stop, tag = self.source.line, self.source.variable("stop"), self.source.variable("tag")
        line(f"{count}, pos = uvarint(view, pos - 1)")
        with self.source.block(f"for _ in range({count}):"):
            line(f"{tag}, pos = uvarint(view, pos)")
            line(f"{stop}, pos = uvarint(view, pos)")
            with self.source.block(f"if {stop} > end - pos:"):
                line(f"too_long('tagged field', {stop})")
            line(f"{stop} += pos")
            for field in fields:
                with self.source.block(f"if {tag} == {field.tag}:"):
                    target = variables[field.name]
                    self._value(field.type, target, field.name, self.version in field.nullable)
                    self._flush()
                    if field.type is uuid:
                        line(f"{target} = to_uuid({target})")
                    with self.source.block(f"if pos != {stop}:"):
                        line(f"too_long({field.name!r}, pos - {stop})")
            # An unknown tag, and nothing else, is still to be stepped over.
            line(f"pos = {stop}")

    def _flush(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        if [code for code, _ in run] == ["B"]:
            self.source.line(f"{run[0][1]} = view[pos]")
            self.source.line("pos += 1")
            return
        layout = struct.Struct(">" + "".join(code for code, _ in run))
        name = self.source.constant("S", layout.format, layout.unpack_from)
        self.source.line(f"{', '.join(target for _, target in run)}, = {name}(view, pos)")
        self.source.line(f"pos += {layout.size}")

    def _default(self, field: Field) -> str:
        default = field.default
        if default is None or isinstance(default, int | str | float | bytes):
            return repr(default)
        if isinstance(default, list):
            return "[]"
        if isinstance(field.type, type):
            return self.source.constant("C", field.type, field.type) + "()"
        return self.source.constant("D", default, default)


def _uvarint(view: memoryview, pos: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = view[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
    raise MalformedError("a varint is longer than five bytes")


def skip_tags(view: memoryview, pos: int, end: int) -> int:
    """The position after a tagged section none of whose fields is of interest."""
    count, pos = _uvarint(view, pos)
    for _ in range(count):
        _, pos = _uvarint(view, pos)
        size, pos = _uvarint(view, pos)
        pos += size
        if pos > end:
            _too_long("tagged field", size)
    return pos


# Every fetch and metadata request repeats the same few topic ids, and making a UUID costs a microsecond.
@lru_cache(maxsize=8192)
def _to_uuid(raw: bytes) -> UUID:
    return UUID(bytes=raw)


def _too_long(name: str, length: int) -> NoReturn:
    raise MalformedError(f"{name} claims a length of {length}, past the bytes at hand or what is allowed")


def _not_nullable(name: str) -> NoReturn:
    raise MalformedError(f"{name} may not be null")
