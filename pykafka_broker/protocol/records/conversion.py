"""Between the old message formats and the record batch: up on produce, down on fetch, with Kafka's errors.

What an old client writes becomes one batch of format 2, so that the log holds nothing else; what an old client reads is
made of batches when it asks. Both take time per record, and only old clients pay it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode, KafkaError, MalformedError
from pykafka_broker.protocol.records.batch import (
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    TimestampType,
    build_batch,
    iter_headers,
)
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.legacy import (
    build_messages,
    is_intact,
    read_message,
    split_messages,
    unwrap,
)
from pykafka_broker.protocol.records.record import Record, iter_records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafka_broker.protocol.records.batch import BatchHeader
    from pykafka_broker.protocol.records.compression import Bytes
    from pykafka_broker.protocol.records.legacy import Message


def upgrade(
    data: Bytes, max_message_bytes: int, *, codec: Codec | None = None, level: int | None = None
) -> bytes:
    """One batch of the messages of formats 0 or 1 that a producer sent; nothing if there is no whole one.

    Packed with `codec`, or as the producer did if that is None. KafkaError if Kafka would not take them."""
    try:
        parts = list(split_messages(data))
    except MalformedError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if not parts:
        return b""
    _check_each(parts, max_message_bytes)
    try:
        packed, messages = _opened([read_message(part) for part in parts])
    except MalformedError as error:  # Kafka does not foresee it either, and answers so
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The messages do not parse: {error}.") from error
    records = (Record(message.key, message.value, message.timestamp) for message in messages)
    return build_batch(records, codec=packed if codec is None else codec, level=level)


def _check_each(parts: list[memoryview], max_message_bytes: int) -> None:
    for part in parts:
        if len(part) > max_message_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The message has {len(part)} bytes, the limit is {max_message_bytes}.",
            )
        if part[MAGIC_AT] < MAGIC and not is_intact(part):
            raise _corrupt()
    magic = parts[0][MAGIC_AT]
    for part in parts:
        if part[MAGIC_AT] != magic:
            raise _invalid(f"Messages of magic {magic} and {part[MAGIC_AT]} in one set.")


def _opened(messages: list[Message]) -> tuple[Codec, list[Message]]:
    """The messages a producer meant, and how they were packed: as they are, or inside of one wrapper."""
    codec = Codec.NONE
    if any(message.codec_number for message in messages):
        if len(messages) > 1:
            raise _invalid("A wrapper stands alone in its set.")
        codec, messages = messages[0].codec, _unwrapped(messages[0])
    for message in messages:
        if message.timestamp < NO_TIMESTAMP:
            raise MalformedError(f"negative timestamp {message.timestamp}")
    return codec, messages


def _unwrapped(wrapper: Message) -> list[Message]:
    if wrapper.codec is Codec.ZSTD or wrapper.value is None:
        raise _invalid("A wrapper holds messages packed with gzip, Snappy or LZ4.")
    stamped = wrapper.timestamp_type is TimestampType.LOG_APPEND_TIME
    found = []
    for part in unwrap(wrapper):
        message = read_message(part)
        if message.magic != wrapper.magic or message.codec_number:
            raise _invalid(f"Magic {message.magic}, codec {message.codec_number} inside of a wrapper.")
        if not is_intact(part):
            raise _corrupt()
        found.append(message._replace(timestamp=wrapper.timestamp) if stamped else message)
    if not found:
        raise _invalid("A wrapper holds at least one message.")
    last = found[-1].offset
    if wrapper.magic > 0 and wrapper.offset != 0 and wrapper.offset < last:
        raise _invalid(f"A wrapper of offset {wrapper.offset} around a message of offset {last}.")
    return found


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, text)


def _corrupt() -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, "Message is corrupt: its checksum is wrong.")


def downgrade(data: Bytes, magic: int, first_offset: int, limit: int) -> bytes:
    """The batches in `data` as messages of format `magic`, for a reader at `first_offset`; headers are lost.

    About `limit` bytes, but the first batch whole; the last message may be cut, as old clients know it. Control batches
    have no old form and are left out. Zstandard has none either: the messages end in front of it, and if it comes first
    that is UNSUPPORTED_COMPRESSION_TYPE."""
    view = memoryview(data)
    done = bytearray()
    first = 0
    try:
        for position, header in iter_headers(view):
            if header.is_control:
                continue
            if header.codec is Codec.ZSTD:
                if not done:
                    raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
                break
            done += _downgraded(view[position : position + header.size], header, magic, first_offset)
            first = first or len(done)
            if len(done) >= limit:
                break
    except MalformedError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The records do not parse: {error}.") from error
    return bytes(memoryview(done)[: max(limit, first)])


def _downgraded(batch: memoryview, header: BatchHeader, magic: int, first_offset: int) -> bytes:
    records: Iterable[Record] = iter_records(batch)
    if header.codec is Codec.NONE:  # a wrapper comes whole, as a batch does
        records = (record for record in records if record.offset >= first_offset)
    kept = list(records)
    if not kept:
        return b""
    return build_messages(kept, magic, codec=header.codec, timestamp_type=header.timestamp_type)
