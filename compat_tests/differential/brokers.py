"""The brokers of a comparison as processes: ours in disguise, Apache Kafka, and what all of them offer."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from compat_tests import servers
from compat_tests.differential.expected import NOT_SERVED
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from compat_tests.differential.sides import Side

WARM_SECONDS = 60
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "log.message.timestamp.after.max.ms": "3600000",
    "max.incremental.fetch.session.cache.slots": "100000",
}
PROPERTIES_OF_4 = {
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}

Offer = dict[ApiKey, tuple[int, int]]
"""The oldest and newest version of each API."""


class InDisguise(servers.OurBroker):
    """Our broker as the release it is compared with."""

    def __init__(self, directory: Path, properties: Mapping[str, str], release: str) -> None:
        super().__init__(directory, properties)
        self._release = release

    def _command(self) -> list[str]:
        return [*super()._command(), "--as-release", self._release]


def ours(directory: Path, release: str) -> servers.Server:
    return InDisguise(directory, _properties(release), release)


def apache_kafka(directory: Path, release: str) -> servers.Server:
    return servers.make(f"kafka-{release}", directory, _properties(release))


def _properties(release: str) -> dict[str, str]:
    return PROPERTIES | (PROPERTIES_OF_4 if release.startswith("4") else {})


async def offer(side: Side, release: str) -> Offer:
    """What a broker offers and, by its release, also serves."""
    request = ApiVersionsRequest(client_software_name="differ", client_software_version="1")
    answer = await side.exchange(ApiKey.API_VERSIONS, 3, request)
    told = {ApiKey(api.api_key): (api.min_version, api.max_version) for api in answer.api_keys}
    if release.startswith("4"):
        told[ApiKey.PRODUCE] = (3, told[ApiKey.PRODUCE][1])  # shown from 0, but not taken
    return {key: span for key, span in told.items() if (release, key) not in NOT_SERVED}


def shared(one: Offer, other: Offer) -> Offer:
    """Versions of every API that both offer."""
    both = {
        key: (max(low, other[key][0]), min(high, other[key][1]))
        for key, (low, high) in one.items()
        if key in other
    }
    return {key: span for key, span in both.items() if span[0] <= span[1]}


async def warm(side: Side) -> None:
    """Wait until the broker's coordinators have loaded and it hands out producer ids."""
    deadline = time.monotonic() + WARM_SECONDS
    groups = [f"warm{n}" for n in range(20)]
    while time.monotonic() < deadline:
        found = await side.exchange(
            ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=groups)
        )
        probes = [
            (
                await side.exchange(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id=each, member_id="m"))
            ).error_code
            for each in groups
        ]
        producer = await side.exchange(
            ApiKey.INIT_PRODUCER_ID, 2, InitProducerIdRequest(transactional_id=None)
        )
        if (
            not any(each.error_code for each in found.coordinators)
            and set(probes) == {ErrorCode.UNKNOWN_MEMBER_ID}
            and producer.error_code == 0
        ):
            return
        await asyncio.sleep(0.1)
    raise servers.NotServing("the coordinators did not load")
