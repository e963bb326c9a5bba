"""Replacing all dynamic configs of topics and brokers."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, boolean, field, int8, int16, int32, message, string, struct


@struct
class ReplacedConfig:
    """One config of the resource."""

    name: str = field(string, "0+")
    value: str | None = field(string, "0+", nullable="0+")


@struct
class AlterConfigsResource:
    """A resource and all it shall have."""

    resource_type: int = field(int8, "0+")
    resource_name: str = field(string, "0+")
    configs: list[ReplacedConfig] = field(array(ReplacedConfig), "0+")


@message(api_key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    """The configs of each resource; what is not named goes back to its default."""

    resources: list[AlterConfigsResource] = field(array(AlterConfigsResource), "0+")
    validate_only: bool = field(boolean, "0+")


@struct
class AlterConfigsResourceResponse:
    """A resource and whether it was changed."""

    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+")
    resource_type: int = field(int8, "0+")
    resource_name: str = field(string, "0+")


@message(api_key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """What became of each resource."""

    throttle_time_ms: int = field(int32, "0+")
    responses: list[AlterConfigsResourceResponse] = field(array(AlterConfigsResourceResponse), "0+")
