"""The scenarios' words in kafka-python, 2.0 to 3: its admin client changed its names and answers with each."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import Any

import kafka.errors
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.structs import OffsetAndMetadata
from tasks import headers_of, serve, told, unpacked

SECONDS = 60
MODERN = int(kafka.__version__.split(".")[0]) >= 3


class Worker:
    """Owns the admin client and a producer for each way of producing."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self._producers: dict[tuple[str, str, bool], KafkaProducer] = {}

    def cluster(self) -> dict[str, Any]:
        found = self._admin.describe_cluster()["brokers"]
        return {"brokers": [f"{broker['host']}:{broker['port']}" for broker in found]}

    def create(self, topic: str, count: int, configs: dict[str, str]) -> None:
        self._admin.create_topics([NewTopic(topic, count, 1, topic_configs=configs)])

    def topics(self) -> dict[str, Any]:
        if not hasattr(self._admin, "describe_topics"):  # in 1.4 a consumer lists them
            with closing(KafkaConsumer(bootstrap_servers=self._bootstrap)) as consumer:
                names = consumer.topics()
                return {"topics": {name: len(consumer.partitions_for_topic(name) or ()) for name in names}}
        name = "name" if MODERN else "topic"
        return {"topics": {found[name]: len(found["partitions"]) for found in self._admin.describe_topics()}}

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def grow(self, topic: str, count: int) -> None:
        self._admin.create_partitions({topic: count if MODERN else NewPartitions(count)})

    def configs(self, topic: str) -> dict[str, Any]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        if MODERN:
            found = self._admin.describe_configs([resource], config_filter="all")["topic"][topic]
            return {"configs": {name: entry["value"] for name, entry in found.items()}}
        found = self._admin.describe_configs([resource])
        [answer] = found if isinstance(found, list) else [found]  # 1.4 gives one answer, not a list
        [(_, _, _, _, entries)] = answer.resources
        return {"configs": {entry[0]: entry[1] for entry in entries}}

    def alter(self, topic: str, configs: dict[str, str]) -> None:
        self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs)])

    def trim(self, topic: str, partition: int, offset: int) -> None:
        self._admin.delete_records({TopicPartition(topic, partition): offset})

    def produce(
        self, topic: str, acks: str, codec: str, idempotent: bool, records: list[dict[str, Any]]
    ) -> dict[str, Any]:
        producer = self._producer(acks, codec, idempotent)
        sent = [
            producer.send(
                topic,
                unpacked(record["value"]),
                unpacked(record["key"]),
                headers_of(record),
                record["partition"],
                record["timestamp"],
            )
            for record in records
        ]
        producer.flush(SECONDS)
        return {"offsets": [future.get(SECONDS).offset for future in sent]}

    def consume(self, topic: str, partitions: list[int], offset: int, count: int) -> dict[str, Any]:
        places = [TopicPartition(topic, partition) for partition in partitions]
        with closing(self._consumer(None)) as consumer:
            consumer.assign(places)
            if offset < 0:
                consumer.seek_to_beginning(*places)
            else:
                for place in places:
                    consumer.seek(place, offset)
            records: list[dict[str, Any]] = []
            deadline = time.monotonic() + SECONDS
            while len(records) < count and time.monotonic() < deadline:
                for place, found in consumer.poll(500).items():
                    records += [
                        told(place.partition, r.offset, r.timestamp, r.key, r.value, r.headers) for r in found
                    ]
        return {"records": records}

    def offset_at(self, topic: str, partition: int, timestamp: int) -> dict[str, Any]:
        place = TopicPartition(topic, partition)
        with closing(self._consumer(None)) as consumer:
            found = consumer.offsets_for_times({place: timestamp})[place]
        return {"offset": -1 if found is None else found.offset}

    def commit(self, group: str, topic: str, partition: int, offset: int, note: str) -> None:
        place = TopicPartition(topic, partition)
        # A leader epoch joined offset and text with 2.1.
        position = OffsetAndMetadata(offset, note, *[-1] * (len(OffsetAndMetadata._fields) - 2))
        with closing(self._consumer(group)) as consumer:
            consumer.assign([place])
            consumer.commit({place: position})

    def committed(self, group: str, topic: str, partition: int) -> dict[str, Any]:
        with closing(self._consumer(group)) as consumer:
            found = consumer.committed(TopicPartition(topic, partition))
        return {"offset": -1 if found is None else found}

    def groups(self) -> dict[str, Any]:
        if MODERN:
            return {"groups": [found["group_id"] for found in self._admin.list_groups()]}
        return {"groups": [name for name, _ in self._admin.list_consumer_groups()]}

    def forget(self, group: str) -> None:
        if MODERN:
            self._admin.delete_groups([group])
        else:
            self._admin.delete_consumer_groups([group])

    def _producer(self, acks: str, codec: str, idempotent: bool) -> KafkaProducer:
        which = (acks, codec, idempotent)
        if which not in self._producers:
            settings: dict[str, Any] = {"enable_idempotence": True} if idempotent else {}
            if not idempotent and "enable_idempotence" in KafkaProducer.DEFAULT_CONFIG:
                settings = {"enable_idempotence": False}
            self._producers[which] = KafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks=acks if acks == "all" else int(acks),
                compression_type=None if codec == "none" else codec,
                linger_ms=20,
                retries=100,
                reconnect_backoff_max_ms=500,
                **settings,
            )
        return self._producers[which]

    def _consumer(self, group: str | None) -> KafkaConsumer:
        settings = {"enable_auto_commit": False, "fetch_max_wait_ms": 100}
        return KafkaConsumer(bootstrap_servers=self._bootstrap, group_id=group, **settings)


if __name__ == "__main__":
    serve(Worker(sys.argv[1]))
