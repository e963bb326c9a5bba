"""`--as-release`: real clients take the broker for the release it shows, and live brokers say the table is right."""

from __future__ import annotations

import contextlib
import logging
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from compat_tests import releases, servers
from compat_tests.provision import or_skip
from pykafka_broker.handlers import ROUTES
from pykafka_broker.handlers.releases import NEEDS, release
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.client import Client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASKING = ApiVersionsRequest(client_software_name="test", client_software_version="1")
SERVED = {route.api.key for route in ROUTES}


class InDisguise(servers.OurBroker):
    """Our broker, started with --as-release."""

    def __init__(self, directory: Path, name: str) -> None:
        super().__init__(directory)
        self._name = name

    def _command(self) -> list[str]:
        return [*super()._command(), "--as-release", self._name]


@contextlib.contextmanager
def disguised(directory: Path, name: str) -> Iterator[servers.Server]:
    server = InDisguise(directory / name, name)
    try:
        yield server.start()
    finally:
        server.close()


async def asked(bootstrap: str, version: int) -> ApiVersionsResponse:
    client = await Client.connect(bootstrap)
    response: ApiVersionsResponse = await client.call(ApiKey.API_VERSIONS, version, ASKING)
    await client.close()
    return response


def ranges(response: ApiVersionsResponse) -> dict[int, tuple[int, int]]:
    return {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}


def features(response: ApiVersionsResponse) -> dict[str, tuple[int, ...]]:
    """Supported ranges and switched-on levels by name."""
    found = {f.name: (f.min_version, f.max_version) for f in response.supported_features}
    return found | {
        f"{f.name} on": (f.min_version_level, f.max_version_level) for f in response.finalized_features
    }


@pytest.mark.parametrize("version", ["3.9.1", "4.3.1"])
async def test_the_broker_offers_what_a_live_kafka_of_that_release_does(tmp_path: Path, version: str) -> None:
    kafka = servers.make(f"kafka-{version}", tmp_path / "kafka")
    try:
        with or_skip():
            kafka.start()
        with disguised(tmp_path, version) as ours:
            for asked_with in (0, 3, 4):
                theirs = await asked(kafka.bootstrap, asked_with)
                mine = await asked(ours.bootstrap, asked_with)
                assert ranges(mine) == {key: span for key, span in ranges(theirs).items() if key in SERVED}
                assert features(mine) == {
                    name: levels
                    for name, levels in features(theirs).items()
                    if NEEDS.get(name.removesuffix(" on")) in {None, *SERVED}
                }
        assert ranges(theirs) == release(version).ranges | {ApiKey.PRODUCE: ranges(theirs)[ApiKey.PRODUCE]}
    finally:
        kafka.close()


@pytest.mark.parametrize("name", ["3.9", "4.3"])
def test_the_table_is_what_the_jars_say(name: str) -> None:
    with or_skip():
        found = releases.advertised(releases.RELEASES[name])
    shown = release(name)
    assert found.apis == shown.ranges
    assert found.features == {feature.name: feature[1:] for feature in shown.features}


@pytest.mark.parametrize(
    ("name", "taken_for"),
    [("2.1", (2, 1)), ("2.8", (2, 8)), ("3.5", (3, 5)), ("3.9", (3, 9)), ("4.2", (4, 2))],
)
def test_kafka_python_takes_the_broker_for_the_release(
    tmp_path: Path, name: str, taken_for: tuple[int, int]
) -> None:
    with disguised(tmp_path, name) as broker:
        with contextlib.closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
            producer.send("hats", b"bowler").get(30)
            assert producer.config["api_version"] == taken_for
        options = {"group_id": "wearers", "auto_offset_reset": "earliest", "consumer_timeout_ms": 30_000}
        consumer = KafkaConsumer("hats", bootstrap_servers=broker.bootstrap, **options)
        with contextlib.closing(consumer):
            assert next(consumer).value == b"bowler"


@pytest.mark.parametrize(("name", "new_protocol"), [("2.8", False), ("4.0", True)])
def test_librdkafka_uses_the_new_group_protocol_where_the_release_had_it(
    tmp_path: Path, name: str, new_protocol: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with disguised(tmp_path, name) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("hats", b"bowler")
        assert producer.flush(30) == 0
        options = {"group.id": "wearers", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
        told = {"debug": "cgrp", "logger": logging.getLogger("librdkafka")}
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, **options, **told})
        consumer.subscribe(["hats"])
        values: list[bytes | None] = []

        def heard() -> bool:
            message = consumer.poll(0.2)
            values.extend([] if message is None or message.error() else [message.value()])
            return bool(values) or "ConsumerGroupHeartbeatRequest not supported by broker" in caplog.text

        servers.wait_until(heard, "a record or a complaint")
        consumer.close()
    assert values == ([b"bowler"] if new_protocol else [])


def test_kafkas_own_tool_prints_the_versions_of_the_release(tmp_path: Path) -> None:
    with disguised(tmp_path, "3.3") as broker:
        with or_skip():
            program = "org.apache.kafka.tools.BrokerApiVersionsCommand"
            command = servers.java_command("4.3.1", "128m", program, "--bootstrap-server", broker.bootstrap)
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    found = {
        int(key): (int(oldest), int(newest or oldest))
        for key, oldest, newest in re.findall(r"\w+\((\d+)\): (\d+)(?: to (\d+))? \[usable", told)
    }
    shown = {route.api.key: (route.advertised_from, route.newest) for route in release("3.3").routes(ROUTES)}
    assert {key: span for key, span in found.items() if key in shown} == {
        key: span for key, span in shown.items() if key in found
    }
    assert found[ApiKey.FETCH][1] == 13
    assert ApiKey.CONSUMER_GROUP_HEARTBEAT not in found
