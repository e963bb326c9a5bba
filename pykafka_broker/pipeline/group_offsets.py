"""Positions kept as the offsets of a consumer group that nobody has joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.pipeline.topics import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafka_broker.pipeline.topics import Kafka, Place


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """PipelineError if the group cannot be asked, or has members that own its positions."""

    kafka: Kafka
    group: str

    def positions(self, earliest: Mapping[Place, int]) -> dict[Place, int]:
        """Where to go on in each partition: its committed offset, but not below its first."""
        asked = [TopicPartition(*place) for place in earliest]
        consumer = self._consumer()
        try:
            found = consumer.committed(asked, timeout=PATIENCE_SECONDS)
        except KafkaException as error:
            raise PipelineError(f"group {self.group}: {error.args[0].str()}") from error
        finally:
            consumer.close()
        return {(at.topic, at.partition): max(at.offset, earliest[at.topic, at.partition]) for at in found}

    def commit(self, offsets: Mapping[Place, int]) -> None:
        consumer = self._consumer()
        try:
            wanted = [TopicPartition(*place, offset) for place, offset in offsets.items()]
            for at in consumer.commit(offsets=wanted, asynchronous=False):
                if at.error is not None:
                    raise PipelineError(f"group {self.group}: {at.error.str()}")
        except KafkaException as error:
            raise PipelineError(f"group {self.group}: {error.args[0].str()}") from error
        finally:
            consumer.close()

    def _consumer(self) -> Consumer:
        own = {"group.id": self.group, "enable.auto.commit": False}
        return Consumer(self.kafka.client_options() | own)
