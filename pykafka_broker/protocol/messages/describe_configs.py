"""Reading the configuration of topics and brokers."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, boolean, field, int8, int16, int32, message, string, struct


@struct
class DescribeConfigsResource:
    """A topic or broker; keys None means all of them."""

    resource_type: int = field(int8, "0+")
    resource_name: str = field(string, "0+")
    configuration_keys: list[str] | None = field(array(string), "0+", nullable="0+")


@message(api_key=32, versions="0-4", flexible="4+")
class DescribeConfigsRequest:
    """Resources whose configuration is asked for."""

    resources: list[DescribeConfigsResource] = field(array(DescribeConfigsResource), "0+")
    include_synonyms: bool = field(boolean, "1+")
    include_documentation: bool = field(boolean, "3+")


@struct
class DescribeConfigsSynonym:
    """A place the value is or could be set, nearest first."""

    name: str = field(string, "1+")
    value: str | None = field(string, "1+", nullable="0+")
    source: int = field(int8, "1+")


@struct
class DescribeConfigsResourceResult:
    """A value in effect and where it comes from."""

    name: str = field(string, "0+")
    value: str | None = field(string, "0+", nullable="0+")
    read_only: bool = field(boolean, "0+")
    is_default: bool = field(boolean, "0")
    config_source: int = field(int8, "1+", default=-1)
    is_sensitive: bool = field(boolean, "0+")
    synonyms: list[DescribeConfigsSynonym] = field(array(DescribeConfigsSynonym), "1+")
    config_type: int = field(int8, "3+")
    documentation: str | None = field(string, "3+", nullable="0+")


@struct
class DescribeConfigsResult:
    """A resource and its values, or why there are none."""

    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+")
    resource_type: int = field(int8, "0+")
    resource_name: str = field(string, "0+")
    configs: list[DescribeConfigsResourceResult] = field(array(DescribeConfigsResourceResult), "0+")


@message(api_key=32, versions="0-4", flexible="4+")
class DescribeConfigsResponse:
    """The configuration of each resource."""

    throttle_time_ms: int = field(int32, "0+")
    results: list[DescribeConfigsResult] = field(array(DescribeConfigsResult), "0+")
