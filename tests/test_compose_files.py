"""The compose files: what they tell each broker is a configuration it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pykafka_broker.config import BrokerConfig
from pykafka_broker.container import settings

DOCKER = Path(__file__).resolve().parent.parent / "docker"


def brokers(name: str) -> dict[str, BrokerConfig]:
    """The configurations of a compose file's brokers; none of their variables is left out."""
    services = yaml.safe_load((DOCKER / name).read_text())["services"]
    found = {}
    for service, described in services.items():
        if described["image"] == "pykafka-broker":
            asked = settings(described["environment"])
            assert asked.warnings == ()
            found[service] = BrokerConfig.load(asked.properties)
    return found


def test_one_broker_alone_is_reached_from_inside_and_outside() -> None:
    (config,) = brokers("compose.yaml").values()
    assert config.warnings == ()
    assert [str(endpoint) for endpoint in config.advertised_listeners] == [
        "PLAINTEXT://localhost:9092",
        "INSIDE://broker:19092",
    ]


def test_three_brokers_have_numbers_and_addresses_of_their_own() -> None:
    found = brokers("compose-cluster.yaml")
    assert {service: config.broker_id for service, config in found.items()} == {
        "broker-1": 1,
        "broker-2": 2,
        "broker-3": 3,
    }
    addresses = [str(endpoint) for config in found.values() for endpoint in config.advertised_listeners]
    assert len(set(addresses)) == 6
    for service, config in found.items():
        assert config.warnings == ()
        assert config.inter_broker_listener_name == "INSIDE"
        assert f"INSIDE://{service}:19092" in addresses


@pytest.mark.parametrize("name", ["compose.yaml", "compose-cluster.yaml"])
def test_ports_without_security_are_open_to_this_machine_only(name: str) -> None:
    services = yaml.safe_load((DOCKER / name).read_text())["services"]
    ports = [port for described in services.values() for port in described.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
