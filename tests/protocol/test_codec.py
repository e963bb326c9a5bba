"""What the codec promises whatever the message: round trips, and an orderly refusal of broken bytes."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykafka_broker.protocol.codec import decode, encode
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
)
from pykafka_broker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.types import (
    array,
    field,
    float64,
    message,
    spec_of,
    uint16,
    uint32,
)
from pykafka_broker.protocol.types import (
    struct as declare_struct,
)

from .strategies import every_version, messages

each_version = pytest.mark.parametrize(
    ("cls", "version"), list(every_version()), ids=lambda value: getattr(value, "__name__", str(value))
)
quick = settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def flat(message: object, version: int) -> bytes:
    return b"".join(encode(message, version))


@each_version
def test_what_is_encoded_decodes_to_itself(cls: type[Any], version: int) -> None:
    @quick
    @given(message=messages(cls, version))
    def holds(message: Any) -> None:
        data = flat(message, version)
        assert decode(cls, version, memoryview(data)) == message
        assert decode(cls, version, memoryview(b"head" + data + b"rest"), 4) == message

    holds()


@each_version
def test_every_truncation_is_malformed(cls: type[Any], version: int) -> None:
    @settings(quick, max_examples=2)
    @given(message=messages(cls, version))
    def holds(message: Any) -> None:
        data = memoryview(flat(message, version))
        for size in range(len(data)):
            with pytest.raises(MalformedError):
                decode(cls, version, data[:size])

    holds()


@each_version
def test_random_bytes_decode_or_are_malformed(cls: type[Any], version: int) -> None:
    @settings(quick, max_examples=20)
    @given(data=st.binary(max_size=64))
    def holds(data: bytes) -> None:
        try:
            decode(cls, version, memoryview(data))
        except MalformedError:
            return

    holds()


def test_a_version_that_is_not_declared_is_refused() -> None:
    with pytest.raises(ValueError, match="HeartbeatRequest has no version 99"):
        encode(HeartbeatRequest(), 99)
    with pytest.raises(ValueError, match="HeartbeatRequest has no version 99"):
        decode(HeartbeatRequest, 99, memoryview(b""))


class TestLengths:
    def test_a_count_larger_than_the_bytes_left_allocates_nothing(self) -> None:
        with pytest.raises(MalformedError, match="topics claims a length of 2147483647"):
            decode(MetadataRequest, 1, memoryview(struct.pack(">i", 0x7FFF_FFFF)))

    def test_a_compact_count_larger_than_the_bytes_left_allocates_nothing(self) -> None:
        with pytest.raises(MalformedError, match="topics claims a length of"):
            decode(MetadataRequest, 9, memoryview(b"\xff\xff\xff\xff\x0f\0\0\0"))

    def test_a_varint_of_six_bytes_is_malformed(self) -> None:
        with pytest.raises(MalformedError, match="varint"):
            decode(MetadataRequest, 9, memoryview(b"\xff\xff\xff\xff\xff\x01\0\0\0"))

    def test_null_is_refused_where_the_version_has_no_null(self) -> None:
        null = memoryview(struct.pack(">i", -1))
        assert decode(MetadataRequest, 1, null).topics is None
        with pytest.raises(MalformedError, match="topics may not be null"):
            decode(MetadataRequest, 0, null)

    def test_text_that_is_not_utf8_is_read_as_java_reads_it(self) -> None:
        data = struct.pack(">ih", 1, 2) + b"\xc3\x28"
        topics = decode(MetadataRequest, 0, memoryview(data)).topics
        assert topics is not None
        assert [topic.name for topic in topics] == ["\ufffd("]


class TestTags:
    def test_unknown_tags_are_skipped(self) -> None:
        plain = flat(HeartbeatResponse(throttle_time_ms=1, error_code=2), 4)
        tagged = plain[:-1] + b"\x02" + b"\x00\x03abc" + b"\x80\x01\x00"
        assert decode(HeartbeatResponse, 4, memoryview(tagged)) == decode(
            HeartbeatResponse, 4, memoryview(plain)
        )

    def test_unknown_tags_beside_known_ones_are_skipped(self) -> None:
        request = FetchRequest(cluster_id="here", replica_state=ReplicaState(replica_id=3))
        data = flat(request, 15)
        section = data.index(b"\x02\x00\x05\x05here")
        more = data[:section] + b"\x03" + data[section + 1 :] + b"\x63\x02zz"
        assert decode(FetchRequest, 15, memoryview(more)) == request

    def test_a_tag_larger_than_the_bytes_left_is_malformed(self) -> None:
        plain = flat(HeartbeatResponse(), 4)
        with pytest.raises(MalformedError):
            decode(HeartbeatResponse, 4, memoryview(plain[:-1] + b"\x01\x00\x7fabc"))

    def test_a_known_tag_whose_size_is_wrong_is_malformed(self) -> None:
        data = flat(FetchRequest(cluster_id="here"), 12).replace(
            b"\x01\x00\x05\x05here", b"\x01\x00\x06\x05here!"
        )
        with pytest.raises(MalformedError, match="cluster_id"):
            decode(FetchRequest, 12, memoryview(data))

    def test_defaults_are_left_out(self) -> None:
        absent = PartitionData(records=b"")
        explicit = PartitionData(records=b"", current_leader=LeaderIdAndEpoch())
        as_response = [
            flat(FetchResponse(responses=[FetchableTopicResponse(partitions=[data])]), 12)
            for data in (absent, explicit)
        ]
        assert as_response[0] == as_response[1]


class TestRecords:
    def test_are_decoded_as_a_slice_of_the_frame(self) -> None:
        frame = bytearray(flat(_produce(memoryview(b"batch")), 9))
        records = decode(ProduceRequest, 9, memoryview(frame)).topic_data[0].partition_data[0].records
        assert records is not None
        records[:] = b"BATCH"
        assert b"BATCH" in frame

    def test_are_encoded_by_reference(self) -> None:
        batch = memoryview(b"batch")
        assert any(buffer is batch for buffer in encode(_produce(batch), 9))

    def test_may_come_in_pieces(self) -> None:
        pieces: list[Any] = [b"one", memoryview(b"two"), bytearray(b"three")]
        response = FetchResponse(
            responses=[FetchableTopicResponse(partitions=[PartitionData(records=pieces)])]
        )
        for version in spec_of(FetchResponse).versions:
            back = decode(FetchResponse, version, memoryview(flat(response, version)))
            assert back.responses[0].partitions[0].records == b"onetwothree"

    def test_are_cut_from_the_small_fields_only(self) -> None:
        parts = [PartitionData(records=b"x"), PartitionData(records=None), PartitionData(records=b"")]
        buffers = encode(FetchResponse(responses=[FetchableTopicResponse(partitions=parts)]), 12)
        assert len(buffers) == 3


def test_fields_of_other_versions_are_not_written() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t", topic_id=UUID(int=7))])
    assert flat(request, 0) == struct.pack(">ih", 1, 1) + b"t"


def test_a_nullable_struct_carries_a_mark() -> None:
    absent = flat(DescribeTopicPartitionsRequest(), 0)
    present = flat(DescribeTopicPartitionsRequest(cursor=Cursor(topic_name="t", partition_index=1)), 0)
    assert absent == b"\x01" + struct.pack(">i", 2000) + b"\xff\x00"
    assert present == b"\x01" + struct.pack(">i", 2000) + b"\x01\x02t" + struct.pack(">i", 1) + b"\x00\x00"


def test_types_no_current_message_uses_are_carried_too() -> None:
    @declare_struct
    class Point:
        port: int = field(uint16, "0+")
        weight: float = field(float64, "0+")

    @message(api_key=0, versions="0-1", flexible="1+")
    class Example:
        points: list[Point] = field(array(Point), "0+")
        epochs: list[int] = field(array(uint32), "0+")

    example = Example(points=[Point(port=65535, weight=0.5)], epochs=[0, 0xFFFF_FFFF])
    for version in (0, 1):
        assert decode(Example, version, memoryview(flat(example, version))) == example
    assert flat(example, 0) == struct.pack(">iHdiII", 1, 65535, 0.5, 2, 0, 0xFFFF_FFFF)


def test_defaults_are_not_shared_between_messages() -> None:
    first, second = ProduceRequest(), ProduceRequest()
    first.topic_data.append(TopicProduceData())
    assert second.topic_data == []


def _produce(records: memoryview) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=records)
    return ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])


def test_structs_are_equal_by_value_and_show_what_they_hold() -> None:
    first, same, other = (ReplicaState(replica_id=number) for number in (1, 1, 2))
    assert first == same
    assert first != other
    assert first != (1, -1)
    assert repr(first) == "ReplicaState(replica_id=1, replica_epoch=-1)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(first)


@pytest.mark.parametrize("version", [3, 4], ids=["plain", "compact"])
def test_a_string_is_no_longer_than_every_version_can_write(version: int) -> None:
    longest = HeartbeatRequest(group_id="g" * 0x7FFF)
    assert decode(HeartbeatRequest, version, flat(longest, version)) == longest
    if version == 4:
        with pytest.raises(MalformedError):
            decode(HeartbeatRequest, version, flat(HeartbeatRequest(group_id="g" * 0x8000), version))


def test_an_array_has_no_more_elements_than_kafka_takes() -> None:
    names = b"\0\0" * 1_000_001
    with pytest.raises(MalformedError):
        decode(MetadataRequest, 1, struct.pack(">i", 1_000_001) + names)
    assert len(decode(MetadataRequest, 1, struct.pack(">i", 1_000_000) + names).topics or ()) == 1_000_000
