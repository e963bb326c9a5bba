"""Rows of a struct kept by field: what is done with all of them at once costs no Python for each of them.

An array declared with `types.columns` is decoded to this. It reads as the sequence of its rows, and is written as any
sequence of rows is.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from pykafka_broker.protocol.types import Scalar, Sized, spec_of, string, uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pykafka_broker.protocol.types import Buffer, Field

T = TypeVar("T")
Column = Sequence[Any]

_REMEMBERED_ROWS = 1024


class Columns(Sequence[T]):
    """Equal to any sequence of equal rows. A row is made when it is asked for: changing it changes nothing here."""

    __slots__ = ("_row", "fields")
    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __init__(self, row: type[T], fields: tuple[Column, ...]) -> None:
        """`fields` are the values of every field `row` declares, in that order and of one length."""
        self._row = row
        self.fields = fields

    @classmethod
    def of(cls, row: type[T], rows: Sequence[T]) -> Columns[T]:
        """The same rows by field; at no cost if they are already."""
        if type(rows) is Columns:
            return rows
        names = [field.name for field in spec_of(row).fields]
        return cls(row, tuple([tuple([getattr(one, name) for one in rows]) for name in names]))

    def __len__(self) -> int:
        return len(self.fields[0])

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            return list(self)[at]
        return self._row(*[field[at] for field in self.fields])

    def __iter__(self) -> Iterator[T]:
        return map(self._row, *self.fields)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    def __repr__(self) -> str:
        return repr(list(self))


class ColumnReader:
    """Reads rows of one struct in one version whose strings are all empty, or all null: then they are of one width."""

    def __init__(self, row: type[Any], plain: Sequence[Field], version: int, *, flexible: bool) -> None:
        codes = ""
        self._sized: list[tuple[int, dict[int, Any]]] = []
        for at, field in enumerate(plain):
            if isinstance(field.type, Scalar) and field.type is not uuid:
                codes += field.type.code
            elif isinstance(field.type, Sized):
                codes += "B" if flexible else "h" if field.type is string else "i"
                meanings = {int(flexible): field.type.zero}
                if version in field.nullable:
                    meanings[int(flexible) - 1] = None
                self._sized.append((at, meanings))
            else:
                raise TypeError(f"{row.__name__}.{field.name} has no place in columns")
        self._tags_at = len(plain) if flexible else None
        self._layout = struct.Struct(">" + codes + "B" * flexible)
        self.size = self._layout.size
        names = [field.name for field in plain] + [""] * flexible
        absent = [field for field in spec_of(row).fields if field.name not in names]
        self._defaults = [field.default for field in absent]
        names += [field.name for field in absent]
        self._in_order = itemgetter(*[names.index(field.name) for field in spec_of(row).fields])

    def read(self, view: Buffer, pos: int, count: int) -> tuple[Column, ...] | None:
        """The fields of the next `count` rows (at least one, and as many bytes are there); None if they are not such
        rows. That their lengths all are as assumed proves each to lie where it was assumed."""
        found: list[Column]
        if count == 1:
            found = [*zip(self._layout.unpack_from(view, pos))]
        else:
            found = [*zip(*self._layout.iter_unpack(view[pos : pos + count * self.size]), strict=True)]
        for at, meanings in self._sized:
            lengths = found[at]
            if lengths[0] not in meanings or lengths.count(lengths[0]) != count:
                return None
            found[at] = (meanings[lengths[0]],) * count
        if self._tags_at is not None and found[self._tags_at].count(0) != count:
            return None
        for default in self._defaults:
            found.append((default,) * count)
        return self._in_order(found)  # type: ignore[no-any-return]


class ColumnWriter(dict[int, "Callable[..., bytes]"]):
    """Writes rows of one struct in one version, all fields of which are of fixed width. By the number of rows: a
    function of all their values, row by row."""

    def __init__(self, row: type[Any], plain: Sequence[Field], *, flexible: bool) -> None:
        super().__init__()
        self._row = row
        self._codes = "".join(cast("Scalar", field.type).code for field in plain) + "x" * flexible
        names = [field.name for field in spec_of(row).fields]
        self._places = [names.index(field.name) for field in plain]

    @staticmethod
    def serves(plain: Sequence[Field]) -> bool:
        return all(isinstance(field.type, Scalar) and field.type is not uuid for field in plain)

    def __missing__(self, count: int) -> Callable[..., bytes]:
        pack = struct.Struct(">" + self._codes * count).pack
        if count <= _REMEMBERED_ROWS:
            self[count] = pack
        return pack

    def write(self, rows: Sequence[Any]) -> bytes:
        fields = Columns.of(self._row, rows).fields
        count = len(fields[0])
        if count == 1:
            return self[1](*[fields[at][0] for at in self._places])
        columns = [fields[at] for at in self._places]
        return self[count](*chain.from_iterable(zip(*columns, strict=True)))
