"""The scenarios' words in confluent-kafka, from 2.0 on."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic
from tasks import headers_of, serve, told, unpacked

SECONDS = 60


class Worker:
    """Owns the admin client and a producer for each way of producing."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._producers: dict[tuple[str, str, bool], Producer] = {}

    def cluster(self) -> dict[str, Any]:
        found = self._admin.list_topics(timeout=SECONDS).brokers.values()
        return {"brokers": [f"{broker.host}:{broker.port}" for broker in found]}

    def create(self, topic: str, count: int, configs: dict[str, str]) -> None:
        new = NewTopic(topic, num_partitions=count, replication_factor=1, config=configs)
        self._admin.create_topics([new])[topic].result(SECONDS)

    def topics(self) -> dict[str, Any]:
        found = self._admin.list_topics(timeout=SECONDS).topics
        return {"topics": {name: len(topic.partitions) for name, topic in found.items()}}

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(SECONDS)

    def grow(self, topic: str, count: int) -> None:
        self._admin.create_partitions([NewPartitions(topic, count)])[topic].result(SECONDS)

    def configs(self, topic: str) -> dict[str, Any]:
        [future] = self._admin.describe_configs([ConfigResource("topic", topic)]).values()
        return {"configs": {name: entry.value for name, entry in future.result(SECONDS).items()}}

    def alter(self, topic: str, configs: dict[str, str]) -> None:
        if hasattr(self._admin, "incremental_alter_configs"):
            from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

            how = AlterConfigOpType.SET
            entries = [ConfigEntry(n, v, incremental_operation=how) for n, v in configs.items()]
            resource = ConfigResource("topic", topic, incremental_configs=entries)
            [future] = self._admin.incremental_alter_configs([resource]).values()
        else:
            [future] = self._admin.alter_configs([ConfigResource("topic", topic, configs)]).values()
        future.result(SECONDS)

    def trim(self, topic: str, partition: int, offset: int) -> None:
        [future] = self._admin.delete_records([TopicPartition(topic, partition, offset)]).values()
        future.result(SECONDS)

    def produce(
        self, topic: str, acks: str, codec: str, idempotent: bool, records: list[dict[str, Any]]
    ) -> dict[str, Any]:
        producer = self._producer(acks, codec, idempotent)
        offsets: list[int] = [-1] * len(records)
        errors = []

        def delivered(error: object, message: Any, at: int) -> None:
            if error is not None:
                errors.append(error)
            offsets[at] = message.offset()

        for n, record in enumerate(records):
            producer.produce(
                topic,
                unpacked(record["value"]),
                unpacked(record["key"]),
                record["partition"],
                headers=headers_of(record),
                timestamp=record["timestamp"],
                on_delivery=lambda error, message, at=n: delivered(error, message, at),
            )
        if producer.flush(SECONDS):
            raise TimeoutError("not everything was answered")
        if errors:
            raise KafkaException(errors[0])
        return {"offsets": offsets}

    def consume(self, topic: str, partitions: list[int], offset: int, count: int) -> dict[str, Any]:
        start = OFFSET_BEGINNING if offset < 0 else offset
        with closing(self._consumer("assigned")) as consumer:
            consumer.assign([TopicPartition(topic, partition, start) for partition in partitions])
            records: list[dict[str, Any]] = []
            deadline = time.monotonic() + SECONDS
            while len(records) < count and time.monotonic() < deadline:
                for m in consumer.consume(count - len(records), 0.5):
                    if m.error():
                        raise KafkaException(m.error())
                    seen = m.partition(), m.offset(), m.timestamp()[1], m.key(), m.value(), m.headers() or ()
                    records.append(told(*seen))
        return {"records": records}

    def offset_at(self, topic: str, partition: int, timestamp: int) -> dict[str, Any]:
        with closing(self._consumer("assigned")) as consumer:
            [found] = consumer.offsets_for_times([TopicPartition(topic, partition, timestamp)], SECONDS)
        return {"offset": found.offset}

    def commit(self, group: str, topic: str, partition: int, offset: int, note: str) -> None:
        with closing(self._consumer(group)) as consumer:
            [done] = consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
        if done.error:
            raise KafkaException(done.error)

    def committed(self, group: str, topic: str, partition: int) -> dict[str, Any]:
        with closing(self._consumer(group)) as consumer:
            [found] = consumer.committed([TopicPartition(topic, partition)], SECONDS)
        return {"offset": found.offset}

    def groups(self) -> dict[str, Any]:
        found = self._admin.list_consumer_groups().result(SECONDS)
        return {"groups": [listed.group_id for listed in found.valid]}

    def forget(self, group: str) -> None:
        self._admin.delete_consumer_groups([group])[group].result(SECONDS)

    def _producer(self, acks: str, codec: str, idempotent: bool) -> Producer:
        settings = {
            "bootstrap.servers": self._bootstrap,
            "acks": acks,
            "compression.type": codec,
            "enable.idempotence": idempotent,
            "linger.ms": 20,
            "reconnect.backoff.max.ms": 500,
        }
        return self._producers.setdefault((acks, codec, idempotent), Producer(settings))

    def _consumer(self, group: str) -> Consumer:
        settings = {"enable.auto.commit": False, "auto.offset.reset": "error", "fetch.wait.max.ms": 100}
        return Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, **settings})


if __name__ == "__main__":
    serve(Worker(sys.argv[1]))
