"""The image in a real container engine, driven through the `docker` package.

The one place that may skip in CI, and it says why: not every machine has an engine.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

import docker
from compat_tests.provision import PROJECT
from compat_tests.servers import HOST, free_port, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from docker.models.containers import Container

    from docker import DockerClient

DATA = "/var/lib/kafka/data"
LARGEST_IMAGE = 200 << 20
HEALTHY_SECONDS = 120
STOP_SECONDS = 30


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    try:
        client = docker.from_env()
    except docker.errors.DockerException as error:
        pytest.skip(f"no container engine answers here: {error}")
    yield client
    client.close()


@pytest.fixture(scope="module")
def image(engine: DockerClient) -> str:
    """The image built from this working tree."""
    built, _ = engine.images.build(
        path=str(PROJECT), dockerfile="docker/Dockerfile", tag="pykafka-broker:test", rm=True
    )
    return str(built.id)


@contextlib.contextmanager
def running(engine: DockerClient, image: str, **options: Any) -> Iterator[Container]:
    """A container that is up and healthy; gone at the end, anonymous volumes included."""
    container = engine.containers.run(image, detach=True, **options)
    try:
        wait_until(lambda: is_healthy(container), "the container is healthy", HEALTHY_SECONDS)
        yield container
    finally:
        container.remove(force=True, v=True)


def is_healthy(container: Container) -> bool:
    container.reload()
    assert container.status in ("created", "running"), container.logs().decode(errors="replace")
    return bool(container.attrs["State"]["Health"]["Status"] == "healthy")


def open_to_us(port: int) -> dict[str, Any]:
    """Options of a container whose broker clients on this machine reach at the port."""
    return {
        "ports": {"9092/tcp": (HOST, port)},
        "environment": {
            "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{HOST}:{port}",
            "KAFKA_LISTENERS": "PLAINTEXT://:9092",
        },
    }


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(60) == 0
    assert failed == []


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        found = consumer.consume(count, timeout=60)
        assert [message.error() for message in found] == [None] * count
        return [message.value() for message in found]
    finally:
        consumer.close()


def test_clients_on_the_machine_write_and_read(engine: DockerClient, image: str) -> None:
    port = free_port()
    with running(engine, image, **open_to_us(port)):
        produce(f"{HOST}:{port}", "greetings", [b"hello"])
        assert consume(f"{HOST}:{port}", "greetings", 1) == [b"hello"]


def test_the_image_is_small_and_does_not_run_as_root(engine: DockerClient, image: str) -> None:
    assert engine.images.get(image).attrs["Size"] < LARGEST_IMAGE
    with running(engine, image) as container:
        assert container.exec_run(["id", "-u"]).output.strip() == b"1000"
        assert container.exec_run(["python", "-c", "import uvloop"]).exit_code == 0


def test_data_outlive_the_container(engine: DockerClient, image: str) -> None:
    port, volume = free_port(), engine.volumes.create()
    options = open_to_us(port) | {"volumes": {volume.name: {"bind": DATA, "mode": "rw"}}}
    try:
        with running(engine, image, **options) as container:
            produce(f"{HOST}:{port}", "kept", [b"before"])
            container.stop(timeout=STOP_SECONDS)
            assert container.wait()["StatusCode"] == 0
        with running(engine, image, **options):
            assert consume(f"{HOST}:{port}", "kept", 1) == [b"before"]
    finally:
        volume.remove(force=True)


def test_three_brokers_of_the_compose_file_survive_one_of_them(engine: DockerClient, image: str) -> None:
    services = yaml.safe_load((PROJECT / "docker" / "compose-cluster.yaml").read_text())["services"]
    ports = {name: free_port() for name in services if name != "zookeeper"}
    with contextlib.ExitStack() as ending:
        network = engine.networks.create(f"pykafka-{uuid.uuid4().hex[:8]}")
        ending.callback(network.remove)
        keeper = services["zookeeper"]
        told = {"environment": keeper["environment"], "healthcheck": in_nanoseconds(keeper["healthcheck"])}
        ending.enter_context(running(engine, keeper["image"], **told, **named(network.name, "zookeeper")))
        brokers = {}
        for name, port in ports.items():
            environment = services[name]["environment"] | {
                "KAFKA_ADVERTISED_LISTENERS": f"INSIDE://{name}:19092,OUTSIDE://{HOST}:{port}"
            }
            options = open_to_us(port) | {"environment": environment} | named(network.name, name)
            brokers[name] = ending.enter_context(running(engine, image, **options))
        everyone = ",".join(f"{HOST}:{port}" for port in ports.values())
        admin = AdminClient({"bootstrap.servers": everyone})
        wait_until(lambda: len(admin.list_topics(timeout=30).brokers) == 3, "all brokers know each other")
        admin.create_topics([NewTopic("kept", 3, 3)])["kept"].result(60)
        produce(everyone, "kept", [b"%d" % number for number in range(30)])
        brokers["broker-1"].kill()
        produce(everyone, "kept", [b"%d" % number for number in range(30, 60)])
        assert sorted(consume(everyone, "kept", 60), key=int) == [b"%d" % number for number in range(60)]


def named(network: str, name: str) -> dict[str, Any]:
    """Options of a container that others of the network reach by its service's name."""
    alias = docker.types.EndpointConfig("1.44", aliases=[name])
    return {"network": network, "networking_config": {network: alias}}


def in_nanoseconds(check: Mapping[str, Any]) -> dict[str, Any]:
    """A compose file's health check, its durations as the engine wants them."""
    return {
        key: int(value.removesuffix("s")) * 1_000_000_000 if key in ("interval", "timeout") else value
        for key, value in check.items()
    }
