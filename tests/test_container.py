"""The image's entry point: what the environment variables of Kafka's images come to here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pykafka_broker.config import BrokerConfig
from pykafka_broker.container import healthy, property_name, settings

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 30

KRAFT_ALONE = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker:29093",
    "KAFKA_LISTENERS": "CONTROLLER://:29093,PLAINTEXT_HOST://:9092,PLAINTEXT://:19092",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_LOG_DIRS": "/tmp/kraft-combined-logs",
}
KRAFT_OF_A_VENDOR = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "controller,broker",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka:9093",
    "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
    "KAFKA_JMX_PORT": "9101",
    "KAFKA_HEAP_OPTS": "-Xmx1G",
}
OLD_STYLE = {
    "KAFKA_BROKER_ID": "7",
    "KAFKA_LISTENERS": "INSIDE://:9092,OUTSIDE://:9094",
    "KAFKA_ADVERTISED_LISTENERS": "INSIDE://kafka:9092,OUTSIDE://localhost:9094",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
    "KAFKA_CREATE_TOPICS": "topic1:1:1",
    "KAFKA_VERSION": "2.8.1",
    "KAFKA_HOME": "/opt/kafka",
}
OTHER_PREFIX = {
    "KAFKA_CFG_NODE_ID": "0",
    "KAFKA_CFG_PROCESS_ROLES": "controller,broker",
    "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "0@kafka:9093",
    "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "ALLOW_PLAINTEXT_LISTENER": "yes",
}
BESIDE_A_SERVICE = {
    "KAFKA_SERVICE_HOST": "10.0.0.7",
    "KAFKA_SERVICE_PORT": "9092",
    "KAFKA_PORT": "tcp://10.0.0.7:9092",
    "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.7",
}


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("LOG_RETENTION_HOURS", "log.retention.hours"),
        ("Auto_Create_Topics_Enable", "auto.create.topics.enable"),
        ("ABC__DEF", "abc_def"),
        ("ABC___DEF", "abc-def"),
        ("ABC____DEF", "abc-.def"),
        ("ZOOKEEPER_CLIENTCNXNSOCKET", "zookeeper.clientCnxnSocket"),
    ],
)
def test_a_variable_names_a_property_as_in_kafkas_image(variable: str, name: str) -> None:
    assert property_name(variable) == name


def test_nothing_said_serves_the_same_machine_from_the_volume() -> None:
    found = settings({"PATH": "/bin"})
    assert found.properties == {
        "log.dirs": "/var/lib/kafka/data",
        "listeners": "PLAINTEXT://:9092",
        "advertised.listeners": "PLAINTEXT://localhost:9092",
    }
    assert found.warnings == ()


def test_listeners_follow_from_what_is_advertised_on_every_interface() -> None:
    found = settings({"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:19092,PLAINTEXT_HOST://[::1]:9092"})
    assert found.properties["listeners"] == "PLAINTEXT://:19092,PLAINTEXT_HOST://:9092"


def test_an_empty_variable_is_as_good_as_none() -> None:
    assert settings({"KAFKA_LISTENERS": "", "KAFKA_LOG_DIRS": ""}).properties == {
        **settings({}).properties,
    }


def test_a_variable_stands_before_the_mounted_file() -> None:
    mounted = {"log.dirs": "/mine", "num.partitions": "3"}
    found = settings({"KAFKA_NUM_PARTITIONS": "6"}, mounted)
    assert found.properties["log.dirs"] == "/mine"
    assert found.properties["num.partitions"] == "6"


@pytest.mark.parametrize(
    ("environment", "ports"),
    [
        pytest.param(KRAFT_ALONE, [9092, 19092], id="apache"),
        pytest.param(KRAFT_OF_A_VENDOR, [9092], id="vendor"),
        pytest.param(OLD_STYLE, [9092, 9094], id="before KRaft"),
        pytest.param(OTHER_PREFIX, [9092], id="KAFKA_CFG_"),
        pytest.param(BESIDE_A_SERVICE, [9092], id="a Kubernetes service called kafka"),
    ],
)
def test_environments_written_for_other_images_start_a_broker(
    environment: dict[str, str], ports: list[int]
) -> None:
    config = BrokerConfig.load(settings(environment).properties)
    assert [endpoint.port for endpoint in config.listeners] == ports


def test_what_names_no_property_is_warned_about_with_a_guess() -> None:
    (warning,) = settings({"KAFKA_NUM_PARTITION": "6"}).warnings
    assert warning == (
        "KAFKA_NUM_PARTITION: there is no property num.partition (did you mean num.partitions?), left out"
    )


def test_options_of_a_jvm_are_not_worth_a_word() -> None:
    assert settings({"KAFKA_HEAP_OPTS": "-Xmx1G", "KAFKA_JMX_PORT": "9999"}).warnings == ()


def test_a_quorum_of_several_is_told_that_it_serves_alone() -> None:
    voters = {"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@a:9093,2@b:9093,3@c:9093"}
    (warning,) = settings(voters).warnings
    assert "names 3 nodes" in warning
    assert "zookeeper.connect" in warning
    assert settings(voters | {"KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181"}).warnings == ()


def test_log4js_level_is_the_log_level() -> None:
    found = settings({"KAFKA_LOG4J_ROOT_LOGLEVEL": "warn"})
    assert found.arguments()[-2:] == ["--log-level", "WARNING"]
    assert settings({"KAFKA_LOG4J_ROOT_LOGLEVEL": "LOUD"}).log_level is None
    assert "LOUD" in settings({"KAFKA_LOG4J_ROOT_LOGLEVEL": "LOUD"}).warnings[0]


def test_the_entry_point_serves_is_healthy_and_stops_cleanly(tmp_path: Path) -> None:
    environment = {
        "KAFKA_LISTENERS": "PLAINTEXT://127.0.0.1:0",
        "KAFKA_LOG_DIRS": str(tmp_path / "data"),
        "KAFKA_PROCESS_ROLES": "broker,controller",
    }
    program = [sys.executable, "-m", "pykafka_broker.container"]
    process = subprocess.Popen(
        program, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        address = next(line for line in lines if line.startswith("listening on ")).split()[-1]
        next(line for line in lines if line.startswith("first message"))
        asking = os.environ | environment | {"KAFKA_LISTENERS": f"PLAINTEXT://{address}"}
        assert subprocess.run([*program, "healthy"], env=asking, check=False, timeout=SECONDS).returncode == 0
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=SECONDS)
        assert process.returncode == 0
        assert complaints == (
            "pykafka-broker: warning: process.roles: known to Apache Kafka, without effect here\n"
        )
        assert subprocess.run([*program, "healthy"], env=asking, check=False, timeout=SECONDS).returncode == 1
    finally:
        process.kill()
        process.communicate()


def test_nobody_there_is_not_healthy(unused_tcp_port: int) -> None:
    config = BrokerConfig.load({"listeners": f"PLAINTEXT://127.0.0.1:{unused_tcp_port}"})
    assert not healthy(config, seconds=1)
