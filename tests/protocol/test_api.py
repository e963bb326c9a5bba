"""Headers and frames, with the exceptions clients depend on."""

from __future__ import annotations

import struct

import pytest

from pykafka_broker.protocol.api import (
    APIS,
    ApiKey,
    RequestHeader,
    frame_request,
    frame_response,
    read_request_header,
    read_response_header,
)
from pykafka_broker.protocol.codec import decode, encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, MalformedError
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka_broker.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse


def flat(buffers: list[bytes | bytearray | memoryview]) -> memoryview:
    return memoryview(b"".join(buffers))


class TestRequestHeader:
    def test_before_flexible_versions_ends_with_the_client_id(self) -> None:
        frame = struct.pack(">hhih", 3, 8, 7, 2) + b"me" + b"body"
        header, body = read_request_header(memoryview(frame))
        assert header == RequestHeader(ApiKey.METADATA, 8, 7, "me")
        assert frame[body:] == b"body"

    def test_in_flexible_versions_has_tags_but_no_compact_client_id(self) -> None:
        frame = struct.pack(">hhih", 3, 9, 7, 2) + b"me" + b"\x01\x05\x01x" + b"body"
        header, body = read_request_header(memoryview(frame))
        assert header.client_id == "me"
        assert frame[body:] == b"body"

    def test_client_id_may_be_null(self) -> None:
        header, _ = read_request_header(memoryview(struct.pack(">hhih", 3, 8, 7, -1)))
        assert header.client_id is None

    def test_of_an_unknown_api_still_tells_whom_to_answer(self) -> None:
        header, body = read_request_header(memoryview(struct.pack(">hhi", 999, 3, 42) + b"\xff\xff\xff"))
        assert (header.api_key, header.api_version, header.correlation_id, body) == (999, 3, 42, 8)

    def test_of_an_api_versions_newer_than_ours_is_read(self) -> None:
        frame = struct.pack(">hhih", 18, 77, 5, 1) + b"c" + b"\x00"
        header, body = read_request_header(memoryview(frame))
        assert (header.api_version, header.client_id, body) == (77, "c", len(frame))

    def test_controlled_shutdown_zero_has_no_client_id(self) -> None:
        header, body = read_request_header(memoryview(struct.pack(">hhi", 7, 0, 42) + struct.pack(">i", 1)))
        assert (header.client_id, body) == (None, 8)

    def test_cut_short_anywhere_is_malformed(self) -> None:
        frame = struct.pack(">hhih", 3, 9, 7, 2) + b"me" + b"\x01\x05\x01x"
        for size in range(len(frame)):
            with pytest.raises(MalformedError):
                read_request_header(memoryview(frame)[:size])

    def test_client_id_that_is_not_utf8_is_read_as_java_reads_it(self) -> None:
        header, _ = read_request_header(memoryview(struct.pack(">hhih", 3, 8, 7, 1) + b"\xff"))
        assert header.client_id == "\ufffd"


class TestResponses:
    def test_have_an_empty_tagged_section_in_flexible_versions(self) -> None:
        response = MetadataResponse(cluster_id="c")
        assert flat(frame_response(3, 8, 7, response))[4:8] == struct.pack(">i", 7)
        assert flat(frame_response(3, 8, 7, response))[8:] == flat(encode(response, 8))
        assert flat(frame_response(3, 9, 7, response))[8:] == b"\0" + bytes(flat(encode(response, 9)))

    @pytest.mark.parametrize("version", APIS[ApiKey.API_VERSIONS].versions)
    def test_to_api_versions_never_have_one(self, version: int) -> None:
        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        frame = flat(frame_response(ApiKey.API_VERSIONS, version, 9, response))
        assert frame[8:] == flat(encode(response, version))

    def test_carry_their_size_with_records_by_reference(self) -> None:
        records = memoryview(bytes(1000))
        part = PartitionData(records=records)
        response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])
        buffers = frame_response(ApiKey.FETCH, 12, 1, response)
        assert any(buffer is records for buffer in buffers)
        (size,) = struct.unpack_from(">i", buffers[0])
        assert size == sum(map(len, buffers)) - 4

    @pytest.mark.parametrize("version", APIS[ApiKey.METADATA].versions)
    def test_are_read_back_by_the_one_who_asked(self, version: int) -> None:
        response = MetadataResponse(controller_id=5 if version else -1)
        frame = flat(frame_response(ApiKey.METADATA, version, 77, response))[4:]
        correlation_id, body = read_response_header(ApiKey.METADATA, version, frame)
        assert correlation_id == 77
        assert decode(MetadataResponse, version, frame, body) == response

    def test_cut_within_the_header_are_malformed(self) -> None:
        with pytest.raises(MalformedError):
            read_response_header(ApiKey.METADATA, 12, memoryview(b"\0\0\0\1"))


@pytest.mark.parametrize("version", APIS[ApiKey.METADATA].versions)
@pytest.mark.parametrize("client_id", [None, "", "me"])
def test_a_request_we_frame_is_one_we_read(version: int, client_id: str | None) -> None:
    header = RequestHeader(ApiKey.METADATA, version, 7, client_id)
    frame = flat(frame_request(header, MetadataRequest()))
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    read, body = read_request_header(frame[4:])
    assert read == header
    assert decode(MetadataRequest, version, frame[4:], body) == MetadataRequest()


def test_an_api_versions_request_is_compact_only_in_its_body() -> None:
    header = RequestHeader(ApiKey.API_VERSIONS, 3, 1, "me")
    frame = bytes(flat(frame_request(header, ApiVersionsRequest(client_software_name="lib"))))
    assert frame[4:] == struct.pack(">hhih", 18, 3, 1, 2) + b"me\x00" + b"\x04lib" + b"\x01" + b"\x00"


def test_an_error_says_its_own_text_or_that_of_its_code() -> None:
    assert KafkaError(ErrorCode.NOT_CONTROLLER).text == ErrorCode.NOT_CONTROLLER.text
    assert KafkaError(ErrorCode.NOT_CONTROLLER).message is None
    assert str(KafkaError(ErrorCode.INVALID_CONFIG, "no such key")) == "INVALID_CONFIG: no such key"
