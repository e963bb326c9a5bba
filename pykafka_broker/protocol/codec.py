"""Bytes to messages and back.

The functions that do the work for one (message, version) are written as Python source from the declaration
and compiled on first use: see `encoder` and `decoder`.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pykafka_broker.protocol.decoder import Decode, decoder_source
from pykafka_broker.protocol.encoder import Encode, encoder_source
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.types import spec_of

if TYPE_CHECKING:
    from pykafka_broker.protocol.types import Buffer

M = TypeVar("M")


def encode(message: object, version: int) -> list[Buffer]:
    """The message in this version. Small fields are coalesced; `records` are passed on by reference."""
    buffers: list[Buffer] = []
    encode_into(message, version, bytearray(), buffers)
    return buffers


def encode_into(message: Any, version: int, head: bytearray, buffers: list[Buffer]) -> None:
    """Like `encode`, but appends to `buffers`, and the first of them is `head`, continued."""
    write = encoder(type(message), version)  # type: ignore[arg-type]  # mypy doubts that classes are hashable
    write(message, head, buffers)


def decode(cls: type[M], version: int, view: Buffer, pos: int = 0) -> M:
    """The message that starts at `pos`; what follows it is ignored. Raises MalformedError, and no other
    error for any bytes. A `records` field is a slice of `view`."""
    read = _decoder(cls, version)  # type: ignore[arg-type]  # mypy doubts that classes are hashable
    try:
        return read(view, pos, len(view))  # type: ignore[no-any-return]
    except (struct.error, IndexError):
        raise MalformedError(f"{cls.__name__} version {version} ends too early") from None
    except MalformedError as error:
        raise MalformedError(f"{cls.__name__} version {version}: {error}") from None


@cache
def _decoder(cls: type[Any], version: int) -> Decode:
    _require(cls, version)
    source, names = decoder_source(cls, version)
    return _compile(source, names, f"<decode {cls.__name__} v{version}>", "decode")  # type: ignore[no-any-return]


@cache
def encoder(cls: type[Any], version: int) -> Encode:
    """What `encode_into` calls, for those who write many messages of one kind."""
    _require(cls, version)
    source, names = encoder_source(cls, version)
    return _compile(source, names, f"<encode {cls.__name__} v{version}>", "encode")  # type: ignore[no-any-return]


def _require(cls: type[Any], version: int) -> None:
    if version not in spec_of(cls).versions:
        raise ValueError(f"{cls.__name__} has no version {version}")


def _compile(source: str, names: dict[str, Any], filename: str, function: str) -> Any:
    exec(compile(source, filename, "exec"), names)  # noqa: S102 (our own declarations, no outside input)
    return names[function]
