"""Our controller at the head of Apache Kafka 3.9.1 brokers: they do what it says, as they would for their own."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.provision import or_skip
from compat_tests.servers import ApacheKafka, wait_until
from pykafka_broker.clock import SystemClock
from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.controller import events
from pykafka_broker.cluster.controller.isr import IsrWish
from pykafka_broker.cluster.controller.loop import Controller
from pykafka_broker.cluster.controller.state import ControllerSettings
from pykafka_broker.cluster.metadata import Metadata
from pykafka_broker.cluster.store import Create
from pykafka_broker.cluster.topics import TopicRules
from pykafka_broker.cluster.znodes import TopicAssignment
from pykafka_broker.cluster.zookeeper_store import ZookeeperSettings, ZookeeperStore
from pykafka_broker.network.peer import Peer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from compat_tests.servers import Zookeeper
    from pykafka_broker.cluster.view import BrokerInfo, PartitionInfo

TP = ("orders", 0)


class Led:
    """Two brokers of Apache Kafka under a controller of ours, which is no broker itself."""

    def __init__(self, zookeeper: Zookeeper, directory: Path) -> None:
        self.connect = f"{zookeeper.connect}/{uuid.uuid4().hex}"
        self.brokers = {
            number: ApacheKafka(
                "3.9.1",
                directory / f"broker-{number}",
                {"broker.id": str(number), "zookeeper.connect": self.connect},
                heap="256m",
                zookeeper=zookeeper,
            )
            for number in (1, 2)
        }

    async def start(self) -> None:
        self.store = await ZookeeperStore.open(ZookeeperSettings(self.connect))
        rules = TopicRules(1, 1, lambda config: None)
        await Metadata.open(self.store, SystemClock(), rules)
        self.controller = Controller(self.store, SystemClock(), ControllerSettings(99), self.way_to)
        await self.controller.start()
        await asyncio.gather(*(asyncio.to_thread(broker.start) for broker in self.brokers.values()))
        await self.until(lambda: len(self.controller.state.view.brokers) == 2)

    def way_to(self, broker: BrokerInfo) -> Peer:
        host, port = broker.endpoints["PLAINTEXT"]
        return Peer(host, port, "controller")

    async def until(self, condition) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - what it looks at lies in files and in the view
                await asyncio.sleep(0.05)

    def partition(self) -> PartitionInfo | None:
        return self.controller.state.view.partition(*TP)

    async def create_topic(self) -> None:
        assignment = TopicAssignment(znodes.random_uuid(), {0: (1, 2)})
        await self.store.multi(
            [
                Create(znodes.topic_config_path("orders"), znodes.encode_config({})),
                Create(znodes.topic_path("orders"), assignment.encode()),
            ]
        )
        await self.until(lambda: self.partition() is not None)

    def produce(self, *values: str) -> None:
        running = ",".join(broker.bootstrap for broker in self.brokers.values())
        producer = Producer({"bootstrap.servers": running, "acks": "all"})
        failures: list[object] = []
        for value in values:
            producer.produce(
                "orders", value.encode(), on_delivery=lambda error, _: error and failures.append(error)
            )
        assert producer.flush(40) == 0
        assert not failures

    def consume(self, count: int) -> list[str]:
        running = ",".join(broker.bootstrap for broker in self.brokers.values())
        reader = Consumer({"bootstrap.servers": running, "group.id": "none", "enable.auto.commit": False})
        reader.assign([TopicPartition("orders", 0, 0)])
        found: list[str] = []
        wait_until(
            lambda: (
                found.extend(m.value().decode() for m in reader.consume(100, 0.5) if not m.error())
                or len(found) >= count
            ),
            "the records can be read",
            40,
        )
        reader.close()
        return found

    def log(self, broker: int) -> bytes:
        return b"".join(f.read_bytes() for f in sorted(self.brokers[broker].log_dir.glob("orders-0/*.log")))

    async def alter_isr(self, *isr: int) -> None:
        """For the leader, which cannot reach a controller that is no broker."""
        p = self.partition()
        assert p is not None
        epoch = self.controller.state.view.brokers[p.leader].epoch
        wish = IsrWish(p.leader_epoch, p.partition_epoch, isr)
        await self.controller.submit(events.AlterPartition(p.leader, epoch, 1, {TP: wish}))

    async def close(self) -> None:
        for broker in self.brokers.values():
            await asyncio.to_thread(broker.close)
        await self.controller.close()
        await self.store.close()


@pytest.fixture
async def led(zookeeper: Zookeeper, tmp_path: Path) -> AsyncIterator[Led]:
    made = Led(zookeeper, tmp_path)
    with or_skip():
        await made.start()
    yield made
    await made.close()


async def test_brokers_of_apache_kafka_follow_our_controller(led: Led) -> None:
    await led.create_topic()
    p = led.partition()
    assert p is not None
    assert (p.leader, p.isr) == (1, (1, 2))
    await asyncio.to_thread(led.produce, "a", "b")
    assert await asyncio.to_thread(led.consume, 2) == ["a", "b"]

    await asyncio.to_thread(led.brokers[1].kill)
    await led.until(lambda: led.partition().leader == 2)
    await asyncio.to_thread(led.produce, "c")
    assert await asyncio.to_thread(led.consume, 3) == ["a", "b", "c"]

    await asyncio.to_thread(led.brokers[1].start)
    await led.until(lambda: 1 in led.controller.state.view.brokers and led.log(1) == led.log(2))
    await led.alter_isr(2, 1)
    outcome = await led.controller.submit(events.ElectLeaders(events.ElectionType.PREFERRED, [TP]))
    assert outcome == {TP: 1}
    await asyncio.to_thread(led.produce, "d")
    assert await asyncio.to_thread(led.consume, 4) == ["a", "b", "c", "d"]
    assert led.log(1) == led.log(2)

    log = led.brokers[2].log_dir / "orders-0"
    assert log.exists()
    await led.store.create(znodes.delete_topic_path("orders"))
    await led.until(lambda: "orders" not in led.controller.state.view.topics)
    assert not await led.store.exists(znodes.topic_path("orders"))
    await led.until(lambda: not log.exists())
