"""AlterConfigs 0-2, the legacy request: what it names is all that a topic, this broker, or (under the empty name) all
brokers shall have; the rest goes back to its default."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pykafka_broker.config import AlterOp, check_form, validate_broker
from pykafka_broker.handlers.config_resources import BROKER, TOPIC, broker_named
from pykafka_broker.handlers.services import Call, Services, error_code, error_text
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


async def handle(services: Services, call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    responses = []
    for resource in request.resources:
        response = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        try:
            if times[resource.resource_type, resource.resource_name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            await _replace(services, resource, validate_only=request.validate_only)
        except Exception as error:  # noqa: BLE001 -- one resource's failure is its own
            response.error_code, response.error_message = error_code(error), error_text(error)
        responses.append(response)
    return AlterConfigsResponse(responses=responses)


async def _replace(services: Services, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    wanted = _wanted(resource)
    name = resource.resource_name
    outcome: Mapping[Any, object]
    if resource.resource_type == TOPIC:
        outcome = await services.metadata.alter_topic_configs({name: lambda _: wanted}, validate_only)
    elif resource.resource_type == BROKER:
        target = broker_named(services, name)
        validate_broker(wanted)
        outcome = await services.metadata.alter_broker_configs({target: lambda _: wanted}, validate_only)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
    for result in outcome.values():
        if isinstance(result, KafkaError):
            raise result


def _wanted(resource: AlterConfigsResource) -> dict[str, str]:
    check_form([(config.name, AlterOp.SET, config.value) for config in resource.configs])
    return {config.name: config.value for config in resource.configs if config.value is not None}
