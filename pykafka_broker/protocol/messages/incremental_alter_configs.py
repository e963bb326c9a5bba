"""Changing single configuration values."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, boolean, field, int8, int16, int32, message, string, struct


@struct
class AlterableConfig:
    """A change: 0 sets, 1 deletes, 2 appends to a list, 3 takes from it."""

    name: str = field(string, "0+")
    config_operation: int = field(int8, "0+")
    value: str | None = field(string, "0+", nullable="0+")


@struct
class AlterConfigsResource:
    """A topic or broker and the changes to it."""

    resource_type: int = field(int8, "0+")
    resource_name: str = field(string, "0+")
    configs: list[AlterableConfig] = field(array(AlterableConfig), "0+")


@message(api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """Changes to make, or only to check."""

    resources: list[AlterConfigsResource] = field(array(AlterConfigsResource), "0+")
    validate_only: bool = field(boolean, "0+")


@struct
class AlterConfigsResourceResponse:
    """A resource, and why it was not changed."""

    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+")
    resource_type: int = field(int8, "0+")
    resource_name: str = field(string, "0+")


@message(api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """What became of each resource's changes."""

    throttle_time_ms: int = field(int32, "0+")
    responses: list[AlterConfigsResourceResponse] = field(array(AlterConfigsResourceResponse), "0+")
