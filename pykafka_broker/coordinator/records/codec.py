"""Records to bytes and back. A key begins with the type of the record, a value with its own version."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pykafka_broker.coordinator.effects import Record
from pykafka_broker.coordinator.records import classic, consumer, offset
from pykafka_broker.protocol.codec import decode, encoder
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.types import spec_of

if TYPE_CHECKING:
    from pykafka_broker.protocol.encoder import Encode
    from pykafka_broker.protocol.types import Buffer

LEGACY_OFFSET_COMMIT = 0
"""Offsets committed by brokers before 0.9: the key means the same as it does today."""

EXPIRING_OFFSET_VERSION = 1
"""The only version of a committed offset that can carry a time to expire of its own."""

# For each kind of key: its value, and the version of it that Kafka 4.3 writes.
_VALUES: dict[type[Any], tuple[type[Any], int]] = {
    offset.OffsetCommitKey: (offset.OffsetCommitValue, 4),
    classic.GroupMetadataKey: (classic.GroupMetadataValue, 3),
    consumer.ConsumerGroupMetadataKey: (consumer.ConsumerGroupMetadataValue, 0),
    consumer.ConsumerGroupPartitionMetadataKey: (consumer.ConsumerGroupPartitionMetadataValue, 0),
    consumer.ConsumerGroupMemberMetadataKey: (consumer.ConsumerGroupMemberMetadataValue, 0),
    consumer.ConsumerGroupTargetAssignmentMetadataKey: (
        consumer.ConsumerGroupTargetAssignmentMetadataValue,
        0,
    ),
    consumer.ConsumerGroupTargetAssignmentMemberKey: (consumer.ConsumerGroupTargetAssignmentMemberValue, 0),
    consumer.ConsumerGroupCurrentMemberAssignmentKey: (consumer.ConsumerGroupCurrentMemberAssignmentValue, 0),
    consumer.ConsumerGroupRegularExpressionKey: (consumer.ConsumerGroupRegularExpressionValue, 0),
}
_TYPES: dict[int, tuple[type[Any], type[Any]]] = {
    LEGACY_OFFSET_COMMIT: (offset.OffsetCommitKey, offset.OffsetCommitValue),
    **{spec_of(key).api_key or 0: (key, value) for key, (value, _) in _VALUES.items()},
}
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")


class _Form(NamedTuple):
    """How records of one kind are written."""

    key_prefix: bytes
    write_key: Encode
    value_prefix: bytes
    write_value: Encode


class _Forms(dict[type[Any], _Form]):
    """By the kind of key; made when first asked for, because thousands of a kind are written in a second."""

    def __missing__(self, key_class: type[Any]) -> _Form:
        value_class, version = _VALUES[key_class]
        form = self[key_class] = _form(key_class, value_class, version)
        return form


def _form(key_class: type[Any], value_class: type[Any], version: int) -> _Form:
    key_prefix = _SHORT.pack(spec_of(key_class).api_key or 0)
    # mypy doubts that classes are hashable
    write_key, write_value = encoder(key_class, 0), encoder(value_class, version)  # type: ignore[arg-type]
    return _Form(key_prefix, write_key, _SHORT.pack(version), write_value)


_FORMS = _Forms()
_EXPIRING_OFFSET = _form(offset.OffsetCommitKey, offset.OffsetCommitValue, EXPIRING_OFFSET_VERSION)


def encode_record(record: Record) -> tuple[bytes, bytes | None]:
    """Key and value as Kafka 4.3 writes them; the value of a tombstone is None."""
    key, value = record
    kind = type(key)
    form = _FORMS[kind]
    if kind is offset.OffsetCommitKey:
        key_bytes = _up_to_partition(key.group, key.topic) + _INT.pack(key.partition)
        if value is not None and value.expire_timestamp >= 0:
            form = _EXPIRING_OFFSET
    else:
        key_bytes = _encoded(key, form)
    if value is None:
        return key_bytes, None
    out = bytearray(form.value_prefix)
    form.write_value(value, out, [])
    return key_bytes, bytes(out)


def _encoded(key: object, form: _Form) -> bytes:
    out = bytearray(form.key_prefix)
    form.write_key(key, out, [])
    return bytes(out)


# A group commits for the same few topics all the time, and for many partitions of each.
@lru_cache(maxsize=1024)
def _up_to_partition(group: str, topic: str) -> bytes:
    """What the keys of all partitions of a topic have in common."""
    key = offset.OffsetCommitKey(group=group, topic=topic)
    return _encoded(key, _FORMS[offset.OffsetCommitKey])[: -_INT.size]


def decode_record(key: Buffer, value: Buffer | None) -> Record | None:
    """The record in these bytes, or None if its type is one this broker has no use for. Raises MalformedError."""
    kind = _short(key)
    classes = _TYPES.get(kind)
    if classes is None:
        return None
    key_class, value_class = classes
    decoded_key = decode(key_class, 0, key, 2)
    if value is None:
        return Record(decoded_key, None)
    version = _short(value)
    if version not in spec_of(value_class).versions:
        raise MalformedError(f"{value_class.__name__} has no version {version}")
    return Record(decoded_key, decode(value_class, version, value, 2))


def _short(data: Buffer) -> int:
    try:
        return _SHORT.unpack_from(data)[0]  # type: ignore[no-any-return]
    except struct.error:
        text = "a record of a coordinator begins with two bytes that name its type or version"
        raise MalformedError(text) from None
