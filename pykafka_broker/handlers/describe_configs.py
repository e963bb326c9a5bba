"""DescribeConfigs 0-4 for topics, for this broker, and for what was set for all brokers (the empty name): values, where
they come from, synonyms, types, documentation."""

from __future__ import annotations

from pykafka_broker.cluster.topics import validate_name
from pykafka_broker.config import ConfigEntry, describe_default, describe_running_broker, describe_topic_here
from pykafka_broker.handlers.config_resources import BROKER, TOPIC, exists
from pykafka_broker.handlers.services import Call, Services, error_code, error_text
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def handle(services: Services, call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    if not all(exists(resource.resource_type) for resource in request.resources):
        return _refused(request)
    return DescribeConfigsResponse(
        results=[_describe(services, request, resource) for resource in request.resources]
    )


def _refused(request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Where one resource is of a kind that does not exist, none is described, as in Kafka."""
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message="a resource is of a kind that does not exist",
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _describe(
    services: Services, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    try:
        wanted = frozenset(resource.configuration_keys or ())
        result.configs = [
            _entry(entry, request)
            for entry in _entries(services, resource)
            if not wanted or entry.name in wanted
        ]
    except Exception as error:  # noqa: BLE001 -- one resource's failure is its own
        result.error_code, result.error_message = error_code(error), error_text(error)
    return result


def _entries(services: Services, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        validate_name(name)
        topic = services.metadata.view.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        changed = services.metadata.view.broker_configs
        return describe_topic_here(services.config, topic.config, changed, services.broker_id)
    if resource.resource_type == BROKER:
        changed = services.metadata.view.broker_configs
        default = changed.get(None, {})
        if name == "":
            return describe_default(default)
        if name != str(services.broker_id):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {services.broker_id} or empty string, but received {name}",
            )
        return describe_running_broker(services.config, changed.get(services.broker_id, {}), default)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {resource.resource_type} cannot be described")


def _entry(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    described = DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.is_default,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )
    if request.include_synonyms:
        described.synonyms = [
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in entry.synonyms
        ]
    return described
