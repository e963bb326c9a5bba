"""The scenarios' words in aiokafka, from 0.8 on."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.structs import OffsetAndMetadata
from tasks import answer, asked, headers_of, refuse, told, unpacked

if tuple(map(int, aiokafka.__version__.split(".")[:2])) < (0, 9):
    # Until 0.9 it borrowed what it needed from kafka-python.
    from kafka.admin import NewPartitions, NewTopic
    from kafka.admin.config_resource import ConfigResource, ConfigResourceType
    from kafka.errors import for_code
else:
    from aiokafka.admin import NewPartitions, NewTopic
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
    from aiokafka.errors import for_code

SECONDS = 60


def check(code: int, message: object = "") -> None:
    """Its admin client hands errors over as numbers."""
    if code:
        raise for_code(code)(message)


class Worker:
    """Owns the admin client and a producer for each way of producing."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        self._producers: dict[tuple[str, str, bool], AIOKafkaProducer] = {}

    async def start(self) -> None:
        await self._admin.start()

    async def close(self) -> None:
        for client in (*self._producers.values(),):
            await client.stop()
        await self._admin.close()

    async def cluster(self) -> dict[str, Any]:
        found = (await self._admin.describe_cluster())["brokers"]
        return {"brokers": [f"{broker['host']}:{broker['port']}" for broker in found]}

    async def create(self, topic: str, count: int, configs: dict[str, str]) -> None:
        done = await self._admin.create_topics([NewTopic(topic, count, 1, topic_configs=configs)])
        check(*done.topic_errors[0][1:3])

    async def topics(self) -> dict[str, Any]:
        found = await self._admin.describe_topics()
        return {"topics": {each["topic"]: len(each["partitions"]) for each in found}}

    async def delete(self, topic: str) -> None:
        done = await self._admin.delete_topics([topic])
        check(done.topic_error_codes[0][1])

    async def grow(self, topic: str, count: int) -> None:
        await self._admin.create_partitions({topic: NewPartitions(count)})

    async def configs(self, topic: str) -> dict[str, Any]:
        [found] = await self._admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        [(_, _, _, _, entries)] = found.resources
        return {"configs": {entry[0]: entry[1] for entry in entries}}

    async def alter(self, topic: str, configs: dict[str, str]) -> None:
        await self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs)])

    async def trim(self, topic: str, partition: int, offset: int) -> None:
        from aiokafka.admin import RecordsToDelete

        await self._admin.delete_records({TopicPartition(topic, partition): RecordsToDelete(offset)})

    async def produce(
        self, topic: str, acks: str, codec: str, idempotent: bool, records: list[dict[str, Any]]
    ) -> dict[str, Any]:
        producer = await self._producer(acks, codec, idempotent)
        sent = [
            await producer.send(
                topic,
                unpacked(record["value"]),
                unpacked(record["key"]),
                record["partition"],
                record["timestamp"],
                headers_of(record),
            )
            for record in records
        ]
        await producer.flush()
        done = await asyncio.wait_for(asyncio.gather(*sent), SECONDS)
        return {"offsets": [-1 if told is None else told.offset for told in done]}

    async def consume(self, topic: str, partitions: list[int], offset: int, count: int) -> dict[str, Any]:
        places = [TopicPartition(topic, partition) for partition in partitions]
        async with self._consumer(None) as consumer:
            consumer.assign(places)
            if offset < 0:
                await consumer.seek_to_beginning(*places)
            else:
                for place in places:
                    consumer.seek(place, offset)
            async with asyncio.timeout(SECONDS):
                got = [await consumer.getone() for _ in range(count)]
        seen = [told(r.partition, r.offset, r.timestamp, r.key, r.value, r.headers) for r in got]
        return {"records": seen}

    async def offset_at(self, topic: str, partition: int, timestamp: int) -> dict[str, Any]:
        place = TopicPartition(topic, partition)
        async with self._consumer(None) as consumer:
            found = (await consumer.offsets_for_times({place: timestamp}))[place]
        return {"offset": -1 if found is None else found.offset}

    async def commit(self, group: str, topic: str, partition: int, offset: int, note: str) -> None:
        place = TopicPartition(topic, partition)
        async with self._consumer(group) as consumer:
            consumer.assign([place])
            await consumer.commit({place: OffsetAndMetadata(offset, note)})

    async def committed(self, group: str, topic: str, partition: int) -> dict[str, Any]:
        place = TopicPartition(topic, partition)
        async with self._consumer(group) as consumer:
            consumer.assign([place])
            found = await consumer.committed(place)
        return {"offset": -1 if found is None else found}

    async def _producer(self, acks: str, codec: str, idempotent: bool) -> AIOKafkaProducer:
        which = (acks, codec, idempotent)
        if which not in self._producers:
            self._producers[which] = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks=acks if acks == "all" else int(acks),
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                linger_ms=20,
            )
            await self._producers[which].start()
        return self._producers[which]

    def _consumer(self, group: str | None) -> AIOKafkaConsumer:
        settings = {"enable_auto_commit": False, "auto_offset_reset": "none", "fetch_max_wait_ms": 100}
        return AIOKafkaConsumer(bootstrap_servers=self._bootstrap, group_id=group, **settings)


async def main() -> None:
    worker = Worker(sys.argv[1])
    await worker.start()
    lines = asked()
    while (task := await asyncio.to_thread(next, lines, None)) is not None:
        word, what = task
        try:
            done = await getattr(worker, word)(**what)
        except Exception as error:  # noqa: BLE001 - whatever the library raises is its answer
            refuse(error)
        else:
            answer(done)
    await worker.close()


if __name__ == "__main__":
    asyncio.run(main())
