"""What a leader asks of a batch before it takes it: judged by header and checksum, with Kafka's errors in its order."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from pykafka_broker.log.log_config import TimestampType
from pykafka_broker.log.log_file import LENGTH_PREFIX, MIN_BATCH_LENGTH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, MalformedError
from pykafka_broker.protocol.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    clear_log_append_time,
    iter_headers,
    read_header,
    recompress,
    stamp_log_append_time,
    verify_crc,
)
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.records.record import iter_records

if TYPE_CHECKING:
    from pykafka_broker.log.log_config import LogConfig
    from pykafka_broker.protocol.records.batch import BatchHeader

Buffer = bytes | bytearray | memoryview

_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_CODEC_AT: Final = 22
_MIN_LEGACY_LENGTH: Final = 14  # of any batch or message of any format version


def check_client_batch(data: Buffer, config: LogConfig, now_ms: int) -> BatchHeader:
    """The header of the one batch that `data` is. KafkaError when a client must not write it so.

    Nothing here costs time per record, except on a compacted topic, where every record needs a key."""
    header = check_one_batch(data, config)
    attributes = header.attributes
    if attributes & CODEC_MASK > Codec.ZSTD:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression codec {attributes & CODEC_MASK}."
        )
    if header.base_offset != 0:
        raise _invalid(f"The base offset of the record batch should be 0, but it is {header.base_offset}.")
    count = header.record_count
    if count <= 0 or header.last_offset_delta != count - 1:
        raise _invalid(
            f"Last offset delta {header.last_offset_delta} does not fit a count of {count} records."
        )
    if attributes & CONTROL_BIT:
        raise _invalid("Clients are not allowed to write control records.")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid(f"Invalid sequence number {header.base_sequence} of producer {header.producer_id}.")
    if config.compact:
        _check_keys(data)
    if config.timestamp_type is TimestampType.CREATE_TIME:
        _check_timestamps(header, config, now_ms)
    return header


def check_one_batch(data: Buffer, config: LogConfig) -> BatchHeader:
    """The header of the one whole, undamaged batch of version 2 that `data` is, of an allowed size."""
    length = len(data)
    if length < HEADER_SIZE:
        raise _invalid("The records hold no whole batch.")
    header = read_header(data)
    size = header.batch_length + LENGTH_PREFIX
    if header.magic != MAGIC or header.batch_length < MIN_BATCH_LENGTH:
        raise _unreadable(data, header)
    if size != length:
        raise _invalid(f"Expected exactly one record batch, got one of {size} bytes in {length}.")
    if size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch has {size} bytes, the limit is {config.max_message_bytes}.",
        )
    if not verify_crc(data, 0, header):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt (stored crc = {header.crc}).")
    return header


def is_cut(data: Buffer) -> bool:
    """Whether the batch that `data` begins with goes on beyond it."""
    length: int = _LENGTH.unpack_from(data, _LENGTH_AT)[0]
    return len(data) < length + LENGTH_PREFIX


def begins_damaged(data: Buffer) -> bool:
    """Whether the first batch says of itself what no batch can be."""
    size = len(data)
    if size < LENGTH_PREFIX:
        return False
    length: int = _LENGTH.unpack_from(data, _LENGTH_AT)[0]
    return length < _MIN_LEGACY_LENGTH or (size > MAGIC_AT and not 0 <= data[MAGIC_AT] <= MAGIC)


def problem_of_shape(data: Buffer | None, *, with_codec: bool) -> KafkaError | None:
    """What keeps Kafka from taking produced records apart, which it does before it looks at anything in them.

    With the codec, where it has to know whether the version of the request allows it."""
    size = 0 if data is None else len(data)
    if data is None or size < LENGTH_PREFIX:
        return _invalid("The records hold no whole batch.")
    (length,) = _LENGTH.unpack_from(data, _LENGTH_AT)
    if begins_damaged(data):
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A batch of length {length} cannot be.")
    if is_cut(data) or data[MAGIC_AT] != MAGIC:
        return _invalid("The records do not begin with a whole batch of the format of today.")
    if with_codec and data[_CODEC_AT] & CODEC_MASK > Codec.ZSTD:
        return KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "The batch is packed with a codec that does not exist."
        )
    if size > length + LENGTH_PREFIX:
        rest = problem_of_shape(data[length + LENGTH_PREFIX :], with_codec=False)
        if rest is not None and rest.code is ErrorCode.CORRUPT_MESSAGE:
            return rest
        return _invalid("A produce request holds exactly one batch a partition.")
    return None


def check_fetched_batches(view: memoryview, expected: int) -> list[tuple[int, BatchHeader]]:
    """Position and header of each whole batch a leader sent; offsets must go on at `expected` or above."""
    try:
        batches = list(iter_headers(view))
    except MalformedError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    for position, header in batches:
        if header.base_offset < expected or header.last_offset_delta < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Batch of offsets {header.base_offset} to {header.last_offset} where {expected} is next.",
            )
        if not verify_crc(view, position, header):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Batch at offset {header.base_offset} is corrupt.")
        expected = header.next_offset
    return batches


def conform(
    data: Buffer, header: BatchHeader, config: LogConfig, now_ms: int
) -> tuple[bytearray | memoryview, BatchHeader]:
    """The batch as the topic wants it, packed and stamped: in place where it can be written to, else a copy."""
    codec = config.compression
    if codec is not None and not header.attributes & CONTROL_BIT and header.attributes & CODEC_MASK != codec:
        data = _repack(data, header, codec, config)
        header = read_header(data)
    elif isinstance(data, bytes) or (isinstance(data, memoryview) and data.readonly):
        data = bytearray(data)
    if config.timestamp_type is TimestampType.LOG_APPEND_TIME:
        stamp_log_append_time(data, 0, header, now_ms)
        header = read_header(data)
    elif header.attributes & LOG_APPEND_TIME_BIT:  # of the topic, not of its producers
        clear_log_append_time(data, 0, header)
        header = read_header(data)
    return data, header


def _repack(data: Buffer, header: BatchHeader, codec: Codec, config: LogConfig) -> bytearray:
    """The new size is held against the limit once more."""
    try:
        packed = recompress(data, header, codec, config.compression_level)
    except MalformedError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The records do not decompress: {error}.") from error
    if len(packed) > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The repacked batch has {len(packed)} bytes, the limit is {config.max_message_bytes}.",
        )
    return packed


def _unreadable(data: Buffer, header: BatchHeader) -> KafkaError:
    if header.batch_length < _MIN_LEGACY_LENGTH or not 0 <= data[MAGIC_AT] <= MAGIC:
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A batch of length {header.batch_length} cannot be.")
    if header.magic == MAGIC:
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"A batch of length {header.batch_length} has no header."
        )
    return _invalid(f"Only record batches of magic version {MAGIC} are allowed, got {header.magic}.")


def _check_timestamps(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    earliest = now_ms - config.timestamp_before_max_ms
    latest = now_ms + config.timestamp_after_max_ms
    for timestamp in (header.base_timestamp, header.max_timestamp):
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            raise KafkaError(
                ErrorCode.INVALID_TIMESTAMP,
                f"Timestamp {timestamp} is out of range: it should be within [{earliest}, {latest}].",
            )


def _check_keys(data: Buffer) -> None:
    try:
        keyless = any(record.key is None for record in iter_records(data))
    except MalformedError as error:
        raise _invalid(f"The records do not parse: {error}.") from error
    if keyless:
        raise _invalid("Compacted topic cannot accept message without key.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)
