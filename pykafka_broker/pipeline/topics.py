"""Topics as a pipeline needs them: which partitions there are, where they begin and end, and their records by range."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from pykafka_broker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

Place = tuple[str, int]
"""A topic and the number of a partition."""
Range = tuple[int, int]
"""Offsets from the first to the second, which is not counted in."""

PATIENCE_SECONDS = 20
_WARNINGS = 4  # in the numbers of syslog


@dataclass(frozen=True, slots=True)
class Kafka:
    """How to reach a broker. Two clients do, and name some of their settings differently."""

    bootstrap: str
    connector: Mapping[str, str] = field(default_factory=dict)
    """Settings of Kafka's Java clients, for Spark's connector."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Settings of librdkafka, for everything that is not reading records."""

    def spark_options(self) -> dict[str, str]:
        named = {f"kafka.{name}": value for name, value in self.connector.items()}
        return {"kafka.bootstrap.servers": self.bootstrap} | named

    def client_options(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap, "log_level": _WARNINGS} | dict(self.client)


@dataclass(frozen=True, slots=True)
class Topics:
    """Questions about topics, and their creation. PipelineError when nobody answers, or a topic is missing."""

    kafka: Kafka

    def partitions(self, names: Iterable[str]) -> list[Place]:
        """Every partition of these topics."""
        known = self._known()
        wanted = list(dict.fromkeys(names))
        if missing := [name for name in wanted if name not in known]:
            raise PipelineError(f"no topic {', '.join(missing)} at {self.kafka.bootstrap}")
        return [(name, number) for name in wanted for number in range(known[name])]

    def missing(self, names: Iterable[str]) -> list[str]:
        known = self._known()
        return [name for name in dict.fromkeys(names) if name not in known]

    def earliest(self, places: Iterable[Place]) -> dict[Place, int]:
        return self._offsets(dict.fromkeys(places, OffsetSpec.earliest()))  # type: ignore[no-untyped-call, arg-type]

    def latest(self, places: Iterable[Place]) -> dict[Place, int]:
        """Where committed records end."""
        return self._offsets(dict.fromkeys(places, OffsetSpec.latest()))  # type: ignore[no-untyped-call, arg-type]

    def at_time(self, times: Mapping[Place, int]) -> dict[Place, int]:
        """The first offset at or after a time, in milliseconds; where there is none, the end."""
        found = self._offsets({place: OffsetSpec.for_timestamp(ms) for place, ms in times.items()})
        behind = self.latest([place for place, offset in found.items() if offset < 0])
        return found | behind

    def create(self, wanted: Mapping[str, int]) -> list[str]:
        """Create those that are not there, with this many partitions; returns their names."""
        new = self.missing(wanted)
        if new:
            admin = AdminClient(self.kafka.client_options())
            futures = admin.create_topics([NewTopic(name, num_partitions=wanted[name]) for name in new])
            try:
                for future in futures.values():
                    future.result(PATIENCE_SECONDS)
            except KafkaException as error:
                raise PipelineError(f"cannot create a topic: {error.args[0].str()}") from error
        return new

    def _known(self) -> dict[str, int]:
        admin = AdminClient(self.kafka.client_options())
        try:
            found = admin.list_topics(timeout=PATIENCE_SECONDS).topics
        except KafkaException as error:
            raise PipelineError(
                f"no broker answers at {self.kafka.bootstrap}: {error.args[0].str()}"
            ) from error
        return {name: len(topic.partitions) for name, topic in found.items()}

    def _offsets(self, wanted: Mapping[Place, OffsetSpec]) -> dict[Place, int]:
        if not wanted:
            return {}
        admin = AdminClient(self.kafka.client_options())
        asked = {TopicPartition(*place): spec for place, spec in wanted.items()}
        futures = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED)
        try:
            return {(at.topic, at.partition): future.result().offset for at, future in futures.items()}
        except KafkaException as error:
            raise PipelineError(f"cannot look up offsets: {error.args[0].str()}") from error


def read_ranges(spark: SparkSession, kafka: Kafka, ranges: Mapping[Place, Range]) -> DataFrame:
    """The committed records at these offsets, through Spark's own connector, headers included."""
    assigned: dict[str, list[int]] = {}
    for topic, number in ranges:
        assigned.setdefault(topic, []).append(number)
    options = kafka.spark_options() | {
        "assign": json.dumps(assigned),
        "startingOffsets": by_topic({place: first for place, (first, _) in ranges.items()}),
        "endingOffsets": by_topic({place: end for place, (_, end) in ranges.items()}),
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
    }
    return spark.read.format("kafka").options(**options).load()


def by_topic(offsets: Mapping[Place, object]) -> str:
    """JSON as Spark's connector takes it."""
    nested: dict[str, dict[str, object]] = {}
    for (topic, number), offset in offsets.items():
        nested.setdefault(topic, {})[str(number)] = offset
    return json.dumps(nested)
