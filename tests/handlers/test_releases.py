"""A broker that passes itself off as a release of Apache Kafka: what it offers, accepts and refuses."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.broker import Broker, StartError
from pykafka_broker.handlers import ROUTES
from pykafka_broker.handlers.release_table import RELEASES
from pykafka_broker.handlers.releases import UnknownRelease, release
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka_broker.protocol.messages.metadata import MetadataRequest
from tests.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ASKING = ApiVersionsRequest(client_software_name="test", client_software_version="1")


@asynccontextmanager
async def connected(directory: Path, as_release: str) -> AsyncIterator[Client]:
    config = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory)}
    async with Broker(config, as_release=as_release) as broker:
        client = await Client.connect(broker.bootstrap_servers)
        yield client
        await client.close()


async def asked(client: Client, version: int) -> ApiVersionsResponse:
    response: ApiVersionsResponse = await client.call(ApiKey.API_VERSIONS, version, ASKING)
    return response


def offered(response: ApiVersionsResponse) -> dict[int, tuple[int, int]]:
    return {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_never_offers_more_than_is_served_or_than_it_had(name: str) -> None:
    shown = release(name)
    served = {route.api.key: route for route in ROUTES}
    for route in shown.routes(ROUTES):
        oldest, newest = shown.ranges[route.api.key]
        assert oldest <= route.oldest <= route.newest <= newest
        assert served[route.api.key].oldest <= route.oldest
        assert route.newest <= served[route.api.key].newest


def test_a_patch_means_its_release() -> None:
    assert release("3.9.1") == release("3.9")
    assert release("0.10.2.1") == release("0.10.2")


@pytest.mark.parametrize("name", ["", "3", "3.90", "5.0", "0.10", "three"])
def test_an_unknown_release_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownRelease, match=r"^release .* known are 0\.9, .*3\.9, 4\.0.*$"):
        release(name)
    with pytest.raises(StartError, match=r"known are"):
        Broker({}, as_release=name)


async def test_it_offers_the_versions_of_the_release(tmp_path: Path) -> None:
    async with connected(tmp_path, "2.8") as client:
        response = await asked(client, 3)
    found = offered(response)
    assert found[ApiKey.METADATA] == (0, 11)
    assert found[ApiKey.JOIN_GROUP] == (0, 7)
    assert found[ApiKey.API_VERSIONS] == (0, 3)
    assert ApiKey.CONSUMER_GROUP_HEARTBEAT not in found
    assert response.supported_features == []
    assert response.finalized_features == []


async def test_versions_it_does_not_offer_end_the_connection(tmp_path: Path) -> None:
    async with connected(tmp_path, "2.8") as client:
        assert (await client.call(ApiKey.METADATA, 11, MetadataRequest(topics=[]))).brokers
        with pytest.raises(asyncio.IncompleteReadError):
            await client.call(ApiKey.METADATA, 12, MetadataRequest(topics=[]))


@pytest.mark.parametrize(("name", "told"), [("2.3", {}), ("2.4", {ApiKey.API_VERSIONS: (0, 3)})])
async def test_too_new_a_question_is_answered_in_the_oldest_form(
    tmp_path: Path, name: str, told: dict[int, tuple[int, int]]
) -> None:
    async with connected(tmp_path, name) as client:
        await client.send(ApiKey.API_VERSIONS, 4, ASKING)
        response = await client.receive(ApiKey.API_VERSIONS, 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert offered(response) == told


async def test_before_0_10_nobody_could_ask(tmp_path: Path) -> None:
    async with connected(tmp_path, "0.9") as client:
        with pytest.raises(asyncio.IncompleteReadError):
            await asked(client, 0)


async def test_the_features_of_a_release_are_shown_where_their_apis_are_served(tmp_path: Path) -> None:
    async with connected(tmp_path, "4.0") as client:
        response = await asked(client, 4)
    served = {route.api.key for route in ROUTES}
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
    assert levels["metadata.version"] == 25
    assert levels["group.version"] == 1
    assert ("transaction.version" in levels) == (ApiKey.END_TXN in served)
    assert "eligible.leader.replicas.version" not in levels


async def test_produce_is_shown_from_zero_and_taken_from_three_as_in_4_0(tmp_path: Path) -> None:
    async with connected(tmp_path, "4.0") as client:
        assert offered(await asked(client, 0))[ApiKey.PRODUCE] == (0, 12)
    (produce,) = (r for r in release("4.0").routes(ROUTES) if r.api.key == ApiKey.PRODUCE)
    assert produce.oldest == 3
