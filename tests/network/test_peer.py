"""Our client to other brokers: against a broker of ours, and against servers that misbehave."""

from __future__ import annotations

import asyncio
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.broker import Broker
from pykafka_broker.network.peer import Peer, PeerError, PeerSettings
from pykafka_broker.protocol.api import ApiKey, frame_response, read_request_header
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.log.samples import batch_of_size

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

HOST = "127.0.0.1"
MIB = 1 << 20
QUICK = PeerSettings(
    request_timeout_ms=2000, connect_timeout_ms=2000, reconnect_backoff_ms=5, reconnect_backoff_max_ms=20
)


@asynccontextmanager
async def peer_of(port: int, settings: PeerSettings = QUICK) -> AsyncIterator[Peer]:
    peer = Peer(HOST, port, "broker-1", settings)
    try:
        yield peer
    finally:
        peer.close()


class Stream:
    """The other end of a connection, as a test plays it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self) -> tuple[int, int, int]:
        """Key, version and correlation id of the next one."""
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        header, _ = read_request_header(memoryview(await self.reader.readexactly(size)))
        return header.api_key, header.api_version, header.correlation_id

    def answer(self, key: int, version: int, correlation_id: int, response: object) -> None:
        self.writer.writelines(frame_response(key, version, correlation_id, response))

    async def shake_hands(self, newest_metadata: int = 9) -> None:
        key, version, number = await self.request()
        assert (key, version) == (ApiKey.API_VERSIONS, 3)
        served = [ApiVersion(api_key=ApiKey.METADATA, min_version=4, max_version=newest_metadata)]
        self.answer(key, version, number, ApiVersionsResponse(api_keys=served))

    async def answer_metadata(self, controller: int = 0) -> None:
        key, version, number = await self.request()
        self.answer(key, version, number, MetadataResponse(controller_id=controller))


@asynccontextmanager
async def server(play: Callable[[Stream], Awaitable[None]], port: int = 0) -> AsyncIterator[int]:
    """Every connection is played so, then closed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await play(Stream(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, HOST, port)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()


async def until_closed(stream: Stream) -> None:
    await stream.reader.read()


async def free_port() -> int:
    async with server(until_closed) as port:
        return port


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    properties = {"broker.id": "1", "listeners": f"PLAINTEXT://{HOST}:0", "log.dirs": str(tmp_path)}
    async with Broker(properties) as running:
        yield running


async def test_speaks_the_newest_version_both_know_to_a_broker_of_ours(broker: Broker) -> None:
    async with peer_of(broker.bound[0][1]) as peer:
        answer = await peer.call(MetadataRequest(topics=None))
        assert [node.node_id for node in answer.brokers] == [1]
        assert await peer.version(ApiKey.FETCH) == 18
        assert await peer.version(ApiKey.FETCH, newest=17) == 17


async def test_large_and_small_answers_stay_whole_after_more_has_come(broker: Broker) -> None:
    async with peer_of(broker.bound[0][1]) as peer:
        await peer.call(MetadataRequest(topics=None))
        sizes = [900_000, 100, 70_000, 60_000]
        for index, size in enumerate(sizes):
            topic = TopicProduceData(
                name=f"t{index}",
                partition_data=[PartitionProduceData(index=0, records=batch_of_size(size))],
            )
            await peer.call(
                MetadataRequest(
                    topics=[MetadataRequestTopic(name=f"t{index}")], allow_auto_topic_creation=True
                )
            )
            request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
            answer = await peer.call(request, newest=12)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        answers = await asyncio.gather(*(peer.call(_fetch(f"t{n}"), newest=12) for n in range(len(sizes))))
        for size, answer in zip(sizes, answers, strict=True):
            assert len(answer.responses[0].partitions[0].records) == size
        latest = await peer.call(
            ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    ListOffsetsTopic(
                        name="t0", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
                    )
                ],
            )
        )
        assert latest.topics[0].partitions[0].offset == 1
        for size, answer in zip(sizes, answers, strict=True):
            assert answer.responses[0].partitions[0].records[8:12] == struct.pack(">i", size - 12)


def _fetch(topic: str) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10 * MIB)
    return FetchRequest(max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[wanted])])


async def test_an_api_the_other_side_does_not_serve_is_refused_here() -> None:
    async def play(stream: Stream) -> None:
        await stream.shake_hands()
        await until_closed(stream)

    async with server(play) as port, peer_of(port) as peer:
        with pytest.raises(KafkaError) as refused:
            await peer.call(FetchRequest())
        assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION
        assert await peer.version(ApiKey.METADATA) == 9
        with pytest.raises(KafkaError):
            await peer.version(ApiKey.METADATA, newest=3)


async def test_answers_find_their_requests_in_any_order() -> None:
    async def play(stream: Stream) -> None:
        await stream.shake_hands()
        asked = [await stream.request() for _ in range(3)]
        for n, (key, version, number) in reversed(list(enumerate(asked))):
            stream.answer(key, version, number, MetadataResponse(controller_id=n))
        await until_closed(stream)

    async with server(play) as port, peer_of(port) as peer:
        answers = await asyncio.gather(*(peer.call(MetadataRequest(topics=[])) for _ in range(3)))
        assert [answer.controller_id for answer in answers] == [0, 1, 2]


async def test_no_answer_in_time_fails_everybody_who_waits_and_the_next_call_connects_anew() -> None:
    connections = 0

    async def play(stream: Stream) -> None:
        nonlocal connections
        connections += 1
        await stream.shake_hands()
        if connections > 1:
            await stream.answer_metadata()
        await until_closed(stream)

    async with server(play) as port, peer_of(port) as peer:
        await peer.version(ApiKey.METADATA)
        outcomes = await asyncio.gather(
            peer.call(MetadataRequest(topics=[]), timeout_ms=50),
            peer.call(MetadataRequest(topics=[])),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [PeerError, PeerError]
        assert isinstance(await peer.call(MetadataRequest(topics=[])), MetadataResponse)
        assert connections == 2


async def test_a_peer_that_hangs_up_fails_the_request_and_is_connected_to_again() -> None:
    connections = 0

    async def play(stream: Stream) -> None:
        nonlocal connections
        connections += 1
        await stream.shake_hands()
        if connections == 1:
            await stream.request()
            return
        await stream.answer_metadata(controller=connections)
        await until_closed(stream)

    async with server(play) as port, peer_of(port) as peer:
        with pytest.raises(PeerError):
            await peer.call(MetadataRequest(topics=[]))
        assert (await peer.call(MetadataRequest(topics=[]))).controller_id == 2


@pytest.mark.parametrize(
    "garbage",
    [struct.pack(">i", -5), struct.pack(">ii", 4, 12345), struct.pack(">iii", 8, 2, -1), b"\x00\x00"],
    ids=["negative length", "answer to nothing", "broken body", "cut short"],
)
async def test_nonsense_ends_the_connection(garbage: bytes) -> None:
    async def play(stream: Stream) -> None:
        await stream.shake_hands()
        await stream.request()
        stream.writer.write(garbage)
        if len(garbage) > 2:
            await until_closed(stream)

    async with server(play) as port, peer_of(port) as peer:
        with pytest.raises(PeerError):
            await peer.call(MetadataRequest(topics=[]))


async def test_a_peer_that_is_not_there_is_tried_again_after_a_pause_that_grows() -> None:
    port = await free_port()
    settings = PeerSettings(reconnect_backoff_ms=20, reconnect_backoff_max_ms=80)

    async def play(stream: Stream) -> None:
        await stream.shake_hands()
        await stream.answer_metadata(controller=7)
        await until_closed(stream)

    async with peer_of(port, settings) as peer:
        loop = asyncio.get_running_loop()
        started = loop.time()
        for _ in range(4):
            with pytest.raises(PeerError):
                await peer.call(MetadataRequest(topics=[]))
        assert loop.time() - started >= (20 + 40 + 80) * 0.8 / 1000 - 0.01
        with pytest.raises(PeerError):
            await peer.call(MetadataRequest(topics=[]), timeout_ms=1)
        async with server(play, port):
            assert (await peer.call(MetadataRequest(topics=[]))).controller_id == 7


async def test_a_silent_peer_does_not_hold_up_the_handshake_for_ever() -> None:
    settings = PeerSettings(connect_timeout_ms=50)
    async with server(until_closed) as port, peer_of(port, settings) as peer:
        with pytest.raises(PeerError):
            await peer.call(MetadataRequest(topics=[]))


async def test_closing_fails_whoever_waits() -> None:
    asked = asyncio.Event()

    async def play(stream: Stream) -> None:
        await stream.shake_hands()
        await stream.request()
        asked.set()
        await until_closed(stream)

    async with server(play) as port, peer_of(port) as peer:
        waiting = asyncio.create_task(peer.call(MetadataRequest(topics=[])))
        await asked.wait()
        peer.close()
        with pytest.raises(PeerError):
            await waiting
        with pytest.raises(PeerError):
            await peer.call(MetadataRequest(topics=[]))


async def test_what_is_interrupted_fails_and_the_next_call_connects_at_once() -> None:
    connections = 0
    asked = asyncio.Event()

    async def play(stream: Stream) -> None:
        nonlocal connections
        connections += 1
        await stream.shake_hands()
        if connections > 1:
            await stream.answer_metadata(controller=connections)
        else:
            await stream.request()
            asked.set()
        await until_closed(stream)

    async with server(play) as port, peer_of(port, PeerSettings(reconnect_backoff_ms=60_000)) as peer:
        waiting = asyncio.create_task(peer.call(MetadataRequest(topics=[])))
        await asked.wait()
        peer.interrupt()
        with pytest.raises(PeerError):
            await waiting
        assert (await peer.call(MetadataRequest(topics=[]))).controller_id == 2


async def test_who_gives_up_waiting_disturbs_nobody() -> None:
    gave_up = asyncio.Event()

    async def play(stream: Stream) -> None:
        await stream.shake_hands()
        first = await stream.request()
        await gave_up.wait()
        stream.answer(*first, MetadataResponse())
        await stream.answer_metadata(controller=9)
        await until_closed(stream)

    async with server(play) as port, peer_of(port) as peer:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peer.call(MetadataRequest(topics=[])), 0.05)
        gave_up.set()
        assert (await peer.call(MetadataRequest(topics=[]))).controller_id == 9
