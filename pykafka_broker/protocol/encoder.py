"""Writes the Python source of the encoder of one message in one version.

All structs are inlined into one function that appends to a bytearray; fields of fixed width that lie side by
side are written by one `struct.Struct`. `records` end the bytearray: they go into the list of buffers as they
are, and what follows them goes into a fresh one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from pykafka_broker.protocol.columns import ColumnWriter
from pykafka_broker.protocol.source import Source, present
from pykafka_broker.protocol.types import (
    ZERO_UUID,
    Array,
    Field,
    Scalar,
    WireType,
    records,
    spec_of,
    string,
    uuid,
)

if TYPE_CHECKING:
    from pykafka_broker.protocol.types import Buffer, Records

Encode: TypeAlias = "Callable[[Any, bytearray, list[Buffer]], None]"


def encoder_source(cls: type[Any], version: int) -> tuple[str, dict[str, Any]]:
    """Source of `encode(message, out, buffers)`, and the globals it needs."""
    writer = _Encoder(version, version in spec_of(cls).flexible)
    writer.struct(cls, "message")
    writer.flush()
    writer.source.line("buffers.append(out)")
    return writer.source.text("def encode(message, out, buffers):"), writer.source.names


class _Encoder:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source(uvarint=uvarint, append_tags=_append_tags, pieces_of=_pieces_of)
        self._out = "out"
        self._run: list[tuple[str, str]] = []

    def struct(self, cls: type[Any], subject: str) -> None:
        plain, tagged = present(cls, self.version)
        for field in plain:
            self._value(field.type, f"{subject}.{field.name}", self.version in field.nullable)
        if tagged:
            self._tagged_section(tagged, subject)
        elif self.flexible:
            self._run.append(("x", ""))

    def _value(self, wire_type: WireType, subject: str, nullable: bool) -> None:
        if wire_type is uuid:
            self._run.append(("16s", f"{subject}.bytes"))
        elif isinstance(wire_type, Scalar):
            self._run.append((wire_type.code, subject))
        elif isinstance(wire_type, type):
            self._struct_value(wire_type, subject, nullable)
        elif isinstance(wire_type, Array):
            self._array(wire_type, subject, nullable)
        elif wire_type is records:
            self._records(subject, nullable)
        else:
            self._sized(subject, nullable, is_text=wire_type is string)

    def _struct_value(self, cls: type[Any], subject: str, nullable: bool, null: bytes = b"\xff") -> None:
        value = self.source.variable("value")
        self.source.line(f"{value} = {subject}")
        if not nullable:
            self.struct(cls, value)
            return
        self.flush()
        with self.source.block(f"if {value} is None:"):
            self.source.line(f"{self._out} += {null!r}")
        with self.source.block("else:"):
            self._run.append(("b", "1"))
            self.struct(cls, value)
            self.flush()

    def _sized(self, subject: str, nullable: bool, is_text: bool) -> None:
        line, data, length = self.source.line, self.source.variable("data"), self.source.variable("n")
        line(f"{data} = {subject}")
        as_bytes = f"{data} = {data}.encode()" if is_text else None
        count = f"{length} = len({data})" + (" + 1" if self.flexible else "")
        if nullable:
            with self.source.block(f"if {data} is None:"):
                line(f"{data} = b''")
                line(f"{length} = {self._null}")
            with self.source.block("else:"):
                if as_bytes:
                    line(as_bytes)
                line(count)
        else:
            if as_bytes:
                line(as_bytes)
            line(count)
        self._length(length, "h" if is_text else "i")
        line(f"{self._out} += {data}")

    def _records(self, subject: str, nullable: bool) -> None:
        if self._out != "out":
            raise TypeError("records inside a tagged field would have to be copied")
        line, pieces, length = self.source.line, self.source.variable("pieces"), self.source.variable("n")
        line(f"{pieces}, {length} = pieces_of({subject})")
        with self.source.block(f"if {length} < 0:"):
            line("pass" if nullable else f"raise ValueError('{subject} may not be None')")
        if self.flexible:
            line(f"{length} += 1")
        self._length(length, "i")
        with self.source.block(f"if {pieces}:"):
            line("buffers.append(out)")
            line(f"buffers += {pieces}")
            line("out = bytearray()")

    def _array(self, array: Array, subject: str, nullable: bool) -> None:
        element = array.element
        line, items, length = self.source.line, self.source.variable("items"), self.source.variable("n")
        line(f"{items} = {subject}")
        count = f"len({items})" + (" + 1" if self.flexible else "")
        if nullable:
            line(f"{length} = {self._null} if {items} is None else {count}")
            line(f"{items} = {items} or ()")
        else:
            line(f"{length} = {count}")
        if isinstance(element, Scalar) and element is not uuid:
            self.flush()
            # The count and the elements in one go: replica lists are the bulk of a metadata response.
            packers = self.source.constant("A", element.code, _ArrayPackers(element.code, self.flexible))
            line(f"{self._out} += {packers}[len({items})]({length}, *{items})")
            return
        self._length(length, "i")
        if array.by_column and self._columns(element, items):
            return
        item = self.source.variable("item")
        with self.source.block(f"for {item} in {items}:"):
            self._value(element, item, nullable=False)
            self.flush()

    def _columns(self, element: WireType, items: str) -> bool:
        """Writes all rows at once, if they can be."""
        assert isinstance(element, type)
        plain, tagged = present(element, self.version)
        if tagged or not ColumnWriter.serves(plain):
            return False
        writer = ColumnWriter(element, plain, flexible=self.flexible)
        self.source.line(f"{self._out} += {self.source.constant('W', id(writer), writer.write)}({items})")
        return True

    def _length(self, length: str, code: str) -> None:
        """Writes a length together with the fixed fields before it."""
        if not self.flexible:
            self._run.append((code, length))
            self.flush()
            return
        run = list(self._run)
        with self.source.block(f"if {length} < 128:"):
            self._run.append(("B", length))
            self.flush()
        with self.source.block("else:"):
            self._run = run
            self.flush()
            self.source.line(f"{self._out} += uvarint({length})")

    def _tagged_section(self, fields: list[Field], subject: str) -> None:
        line, values = self.source.line, {}
        self.flush()
        for field in fields:
            values[field.name] = self.source.variable(field.name)
            line(f"{values[field.name]} = {subject}.{field.name}")
        unset = " and ".join(self._is_default(field, values[field.name]) for field in fields)
        with self.source.block(f"if {unset}:"):
            line(f"{self._out}.append(0)")
        with self.source.block("else:"):
            if len(fields) == 1 and isinstance(fields[0].type, Scalar):
                # Count, tag, size and value in one go: every committed offset is written so.
                only = fields[0]
                self._run += [("B", "1"), ("B", str(only.tag)), ("B", str(fields[0].type.size))]
                self._value(only.type, values[only.name], nullable=False)
                self.flush()
                return
            tags = self.source.variable("tags")
            line(f"{tags} = []")
            for field in fields:
                self._tagged_field(field, values[field.name], tags)
            line(f"append_tags({self._out}, {tags})")

    def _tagged_field(self, field: Field, value: str, tags: str) -> None:
        outer, self._out = self._out, self.source.variable("out")
        absent = self._is_default(field, value)
        nullable = self.version in field.nullable
        if isinstance(field.type, type) and not nullable:
            absent += f" or {value} == {self.source.constant('E', field.type, field.type())}"
        with self.source.block(f"if not ({absent}):"):
            self.source.line(f"{self._out} = bytearray()")
            if isinstance(field.type, type):
                self._struct_value(field.type, value, nullable, null=b"\0")
            else:
                self._value(field.type, value, nullable)
            self.flush()
            self.source.line(f"{tags}.append(({field.tag}, {self._out}))")
        self._out = outer

    def _is_default(self, field: Field, value: str) -> str:
        default = field.default
        if isinstance(field.type, type) and self.version in field.nullable:
            return "False"  # Kafka's own default of these is a struct, so null has to be said
        if default is None:
            return f"{value} is None"
        if isinstance(default, list):
            return f"{value} == []" if self.version in field.nullable else f"not {value}"
        if default is ZERO_UUID:
            return f"not {value}.int"
        return f"{value} == {default!r}"

    @property
    def _null(self) -> str:
        return "0" if self.flexible else "-1"

    def flush(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        codes = "".join(code for code, _ in run)
        values = [value for code, value in run if code != "x"]
        if codes == "B":
            self.source.line(f"{self._out}.append({values[0]})")
        elif values:
            layout = struct.Struct(">" + codes)
            name = self.source.constant("S", layout.format, layout.pack)
            self.source.line(f"{self._out} += {name}({', '.join(values)})")
        else:
            self.source.line(f"{self._out} += {bytes(len(codes))!r}")


class _ArrayPackers(dict[int, Callable[..., bytes]]):
    """By the number of elements: a function of (length as written, *elements)."""

    def __init__(self, code: str, flexible: bool) -> None:
        super().__init__()
        self._code = code
        self._flexible = flexible

    def __missing__(self, count: int) -> Callable[..., bytes]:
        if count < 127:
            head = "B" if self._flexible else "i"
            packer = self[count] = struct.Struct(f">{head}{count}{self._code}").pack
            return packer
        body = struct.Struct(f">{count}{self._code}")
        head_of = uvarint if self._flexible else struct.Struct(">i").pack
        return lambda length, *items: head_of(length) + body.pack(*items)


def uvarint(value: int) -> bytes:
    """`value` as an unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _append_tags(out: bytearray, tags: list[tuple[int, bytearray]]) -> None:
    out += uvarint(len(tags))
    for tag, data in tags:
        out += uvarint(tag) + uvarint(len(data)) + data


def _pieces_of(value: Records | None) -> tuple[list[Buffer], int]:
    """The buffers of a `records` field and their size, -1 for null."""
    if value is None:
        return [], -1
    if isinstance(value, list):
        return value, sum(map(len, value))
    return ([value], len(value)) if len(value) else ([], 0)
