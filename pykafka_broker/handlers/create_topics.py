"""CreateTopics 0-7: by counts or by assignment, with settings, or only a check. Topics succeed or fail alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykafka_broker.cluster.topics import NewTopic
from pykafka_broker.config import describe_topic_here
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.cluster.view import TopicInfo
    from pykafka_broker.handlers.services import Call, Services

_UNSET: Final = -1


async def handle(services: Services, call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    outcome = await services.metadata.create_topics(
        [_wish(topic) for topic in request.topics], request.validate_only, request.timeout_ms
    )
    return CreateTopicsResponse(
        topics=[
            _refused(name, result) if isinstance(result, KafkaError) else _created(services, result)
            for name, result in outcome.items()
        ]
    )


def _wish(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(chosen.partition_index, chosen.broker_ids) for chosen in topic.assignments],
        config={config.name: config.value for config in topic.configs},
    )


def _refused(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.text, configs=[])


def _created(services: Services, topic: TopicInfo) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas) if topic.partitions else _UNSET,
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=topic.config.get(entry.name, entry.value),  # as it was written, blanks and all
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in describe_topic_here(
                services.config, topic.config, services.metadata.view.broker_configs, services.broker_id
            )
        ],
        error_message=None,
    )
