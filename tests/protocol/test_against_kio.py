"""Bytes held against kio, an implementation of the protocol that shares nothing with ours."""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from pykafka_broker.protocol.api import APIS
from pykafka_broker.protocol.codec import decode, encode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.types import Array, Field, int64, spec_of

from .strategies import messages

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SHARED = [
    (cls, version)
    for api in APIS.values()
    for cls in (api.request, api.response)
    for version in api.versions
    # What brokers on ZooKeeper say to each other left Kafka with 4.0, and with it kio.
    if api.key in api_key_map and version in schema_name_map[api_key_map[api.key]]
]


def schema_of(cls: type[Any], version: int) -> type[Any]:
    load = load_request_schema if cls.__name__.endswith("Request") else load_response_schema
    return load(spec_of(cls).api_key, version)


def within_kio(cls: type[Any], field: Field) -> SearchStrategy[Any] | None:
    """kio turns some integers into error codes, dates and durations, which have narrower ranges."""
    if field.name.endswith("error_code"):
        return st.sampled_from([code.value for code in KioErrorCode])
    if field.name in ("timestamp", "log_append_time_ms", "commit_timestamp"):
        return st.integers(-1, 4_000_000_000_000)
    if field.name.endswith("_ms") and field.type is int64:
        return st.integers(-(10**15), 10**15)
    return None


@pytest.mark.parametrize(("cls", "version"), SHARED, ids=lambda value: getattr(value, "__name__", str(value)))
def test_bytes_mean_the_same_to_both(cls: type[Any], version: int) -> None:
    schema = schema_of(cls, version)
    read, write = entity_reader(schema), entity_writer(schema)

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(message=messages(cls, version, within_kio))
    def holds(message: Any) -> None:
        ours = b"".join(encode(message, version))
        theirs, size = read(ours, 0)
        assert size == len(ours)
        assert_same(message, theirs, version)
        with io.BytesIO() as buffer:
            write(buffer, theirs)
            assert buffer.getvalue() == ours
        assert decode(cls, version, memoryview(ours)) == message

    holds()


def assert_same(ours: Any, theirs: Any, version: int) -> None:
    """Field by field, so that two fields of one width cannot be swapped unseen."""
    present = [field for field in spec_of(type(ours)).fields if version in field.versions]
    attributes = {attribute.name for attribute in dataclasses.fields(theirs)}
    for field in present:
        name = field.name if field.name in attributes else field.name.removesuffix("_ms")
        assert_equal(getattr(ours, field.name), getattr(theirs, name), field, version)
    assert len(attributes) == len(present)


def assert_equal(ours: Any, theirs: Any, field: Field, version: int) -> None:
    if isinstance(field.type, type) and ours is not None:
        assert_same(ours, theirs, version)
    elif isinstance(field.type, type) and version in field.tagged:
        assert_same(field.type(), theirs, version)
    elif isinstance(field.type, Array) and isinstance(field.type.element, type) and ours is not None:
        for our_item, their_item in zip(ours, theirs, strict=True):
            assert_same(our_item, their_item, version)
    else:
        assert ours == plain(theirs, ours), field.name


def plain(value: Any, like: Any) -> Any:
    """kio's value as the wire has it."""
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(milliseconds=1)
    if isinstance(value, dt.datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, KioErrorCode):
        return value.value
    if isinstance(value, tuple):
        return [plain(item, None) for item in value]
    if value is None and isinstance(like, int):
        return -1
    if value is None and hasattr(like, "hex") and getattr(like, "int", None) == 0:
        return like
    return value


def test_error_codes_have_the_numbers_kio_gives_them() -> None:
    ours = {code.value: code.name.lower() for code in ErrorCode}
    theirs = {code.value: code.name for code in KioErrorCode}
    assert {number: ours[number] for number in theirs} == theirs
