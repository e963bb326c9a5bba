"""IncrementalAlterConfigs 0-1: set, delete, append to and subtract from lists. Topics can be altered, this broker, and
(under the empty name) all brokers at once; of a broker's properties only those that may change while it runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from pykafka_broker.config import AlterOp, alter, alter_broker, check_form
from pykafka_broker.handlers.config_resources import BROKER, TOPIC, broker_named, exists
from pykafka_broker.handlers.services import Call, Services, error_code, error_text
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


_OPERATIONS: Final = frozenset(AlterOp)


async def handle(
    services: Services,
    call: Call,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse:
    asked = request.resources
    refused: dict[int, KafkaError] = {}
    times = Counter((resource.resource_type, resource.resource_name) for resource in asked)
    for place, resource in enumerate(asked):
        try:
            _check_form(resource, times[resource.resource_type, resource.resource_name])
        except KafkaError as error:
            refused[place] = error
    wellformed = [resource for place, resource in enumerate(asked) if place not in refused]
    if any(config.config_operation not in _OPERATIONS for each in wellformed for config in each.configs):
        # Kafka does not foresee it, and does nothing of what was asked.
        refused = dict.fromkeys(range(len(asked)), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)) | refused
    responses = []
    for place, resource in enumerate(asked):
        response = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        try:
            if place in refused:
                raise refused[place]
            await _alter(services, resource, validate_only=request.validate_only)
        except Exception as error:  # noqa: BLE001 -- one resource's failure is its own
            response.error_code, response.error_message = error_code(error), error_text(error)
        responses.append(response)
    return IncrementalAlterConfigsResponse(responses=responses)


def _check_form(resource: AlterConfigsResource, times: int) -> None:
    """What is wrong with it whatever there is to be altered."""
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if not exists(resource.resource_type):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
    check_form(_ops(resource))


def _ops(resource: AlterConfigsResource) -> list[tuple[str, int, str | None]]:
    return [(config.name, config.config_operation, config.value) for config in resource.configs]


async def _alter(services: Services, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    ops = _ops(resource)
    name = resource.resource_name
    outcome: Mapping[Any, object]
    if resource.resource_type == TOPIC:
        outcome = await services.metadata.alter_topic_configs(
            {name: lambda current: alter(current, ops)}, validate_only
        )
    elif resource.resource_type == BROKER:
        outcome = await services.metadata.alter_broker_configs(
            {broker_named(services, name): lambda current: alter_broker(current, ops)}, validate_only
        )
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
    for result in outcome.values():
        if isinstance(result, KafkaError):
            raise result
