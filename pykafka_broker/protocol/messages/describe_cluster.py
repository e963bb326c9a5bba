"""The brokers or controllers of the cluster."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, boolean, field, int8, int16, int32, message, string, struct


@message(api_key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    """Asks for brokers (endpoint type 1) or controllers (2)."""

    include_cluster_authorized_operations: bool = field(boolean, "0+")
    endpoint_type: int = field(int8, "1+", default=1)
    include_fenced_brokers: bool = field(boolean, "2+")


@struct
class DescribeClusterBroker:
    """A broker and how to reach it."""

    broker_id: int = field(int32, "0+")
    host: str = field(string, "0+")
    port: int = field(int32, "0+")
    rack: str | None = field(string, "0+", nullable="0+", default=None)
    is_fenced: bool = field(boolean, "2+")


@message(api_key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    """The cluster's id, controller and brokers."""

    throttle_time_ms: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+", default=None)
    endpoint_type: int = field(int8, "1+", default=1)
    cluster_id: str = field(string, "0+")
    controller_id: int = field(int32, "0+", default=-1)
    brokers: list[DescribeClusterBroker] = field(array(DescribeClusterBroker), "0+")
    cluster_authorized_operations: int = field(int32, "0+", default=-0x8000_0000)
