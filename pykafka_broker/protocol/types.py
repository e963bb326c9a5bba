"""The vocabulary messages are declared in: wire types, version ranges, fields.

A message is declared once for all its versions::

    @message(api_key=36, versions="0-2", flexible="2+")
    class SaslAuthenticateRequest:
        '''One step of the exchange.'''

        auth_bytes: bytes = field(binary, "0+")

The decorator makes it a slotted dataclass; what the codec needs to know is kept beside it, see `spec_of`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, dataclass_transform
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable

Buffer: TypeAlias = bytes | bytearray | memoryview
Records: TypeAlias = Buffer | list[Buffer]
"""What a `records` field may be set to. Decoding always gives a `memoryview` into the frame."""

ZERO_UUID = UUID(int=0)
ANY_VERSION = range(1 << 15)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value of fixed width; `code` is its letter in the `struct` module."""

    name: str
    code: str
    size: int
    zero: object = 0


@dataclass(frozen=True, slots=True)
class Sized:
    """A run of bytes that follows its own length."""

    name: str
    zero: object


@dataclass(frozen=True, slots=True)
class Array:
    """A sequence of elements that follows its own count."""

    element: WireType
    by_column: bool = False


WireType: TypeAlias = Scalar | Sized | Array | type[Any]
"""A class stands for the struct it declares."""

boolean = Scalar("bool", "?", 1, False)
int8 = Scalar("int8", "b", 1)
int16 = Scalar("int16", "h", 2)
uint16 = Scalar("uint16", "H", 2)
int32 = Scalar("int32", "i", 4)
uint32 = Scalar("uint32", "I", 4)
int64 = Scalar("int64", "q", 8)
float64 = Scalar("float64", "d", 8, 0.0)
uuid = Scalar("uuid", "16s", 16, ZERO_UUID)
string = Sized("string", "")
binary = Sized("bytes", b"")
records = Sized("records", None)


def array(element: WireType) -> Array:
    return Array(element)


def columns(element: type[Any]) -> Array:
    """An array of small structs of which there may be many: see `columns.Columns`, which it is decoded to."""
    return Array(element, by_column=True)


def parse_versions(text: str) -> range:
    """The versions meant by Kafka's notation: "3", "0-2", "1+" or "none"."""
    if text == "none":
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), ANY_VERSION.stop)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct: how it lies on the wire and in which versions."""

    name: str
    type: WireType
    versions: range
    nullable: range
    tagged: range
    tag: int | None
    default: object
    """A list or a struct as default stands for a fresh one each time."""


@dataclass(frozen=True, slots=True)
class StructSpec:
    """What the codec knows of a struct. Nested structs follow the message they are part of, so they have
    neither key nor versions of their own."""

    fields: tuple[Field, ...]
    api_key: int | None = None
    versions: range = ANY_VERSION
    flexible: range = ANY_VERSION


_UNSET: Any = object()


def field(
    wire_type: WireType,
    versions: str,
    *,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str | None = None,
    default: object = _UNSET,
) -> Any:
    """Declares a field. It is tagged from its first version on unless `tagged` says otherwise.

    The default is the zero of its type, or None where the field is optional by its nature: records, and
    structs that are tagged (None then means absent, which the wire cannot tell from a struct of defaults).
    """
    if default is _UNSET:
        default = _natural_default(wire_type, tag)
    tagged_in = parse_versions("none" if tag is None else tagged or versions)
    declared = Field(
        "", wire_type, parse_versions(versions), parse_versions(nullable), tagged_in, tag, default
    )
    metadata = {"wire": declared}
    if isinstance(default, list):
        return dataclasses.field(default_factory=list, metadata=metadata)
    if isinstance(wire_type, type) and default is not None:
        return dataclasses.field(default_factory=wire_type, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def _natural_default(wire_type: WireType, tag: int | None) -> object:
    if isinstance(wire_type, Scalar | Sized):
        return wire_type.zero
    if isinstance(wire_type, Array):
        return []
    return wire_type() if tag is None else None


# To a type checker the constructor takes keywords only: the order of fields is an accident of the wire.
# At run time it takes positions too, which is how decoders call it.
@dataclass_transform(kw_only_default=True)
def struct(cls: type[T]) -> type[T]:
    """Declares a struct nested in messages."""
    return _declare(cls, api_key=None, versions=ANY_VERSION, flexible=ANY_VERSION)


@dataclass_transform(kw_only_default=True)
def message(*, api_key: int, versions: str, flexible: str) -> Callable[[type[T]], type[T]]:
    """Declares a request or a response."""

    def declare(cls: type[T]) -> type[T]:
        return _declare(
            cls, api_key=api_key, versions=parse_versions(versions), flexible=parse_versions(flexible)
        )

    return declare


def _declare(cls: type[T], *, api_key: int | None, versions: range, flexible: range) -> type[T]:
    # What all of them do alike is not written and compiled for each of hundreds: it is a tenth of the time of a start.
    cls.__eq__, cls.__repr__, cls.__hash__ = _equal, _represented, None  # type: ignore[assignment, method-assign]
    declared: Any = dataclass(slots=True, eq=False, repr=False)(cls)
    fields = tuple(
        dataclasses.replace(item.metadata["wire"], name=item.name) for item in dataclasses.fields(declared)
    )
    declared.__wire__ = StructSpec(fields, api_key, versions, flexible)
    return declared  # type: ignore[no-any-return]


def _equal(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _values(self) == _values(other)


def _represented(self: Any) -> str:
    named = zip(spec_of(type(self)).fields, _values(self), strict=True)
    return f"{type(self).__qualname__}({', '.join(f'{field.name}={value!r}' for field, value in named)})"


def _values(message: Any) -> list[object]:
    return [getattr(message, field.name) for field in spec_of(type(message)).fields]


def spec_of(cls: type[Any]) -> StructSpec:
    """The declaration of a struct or message."""
    spec = getattr(cls, "__wire__", None)
    if not isinstance(spec, StructSpec):
        raise TypeError(f"{cls.__name__} is not declared with @struct or @message")
    return spec
