"""Which broker coordinates a group or a transactional id."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int8, int16, int32, message, string, struct


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """A key up to version 3, keys after it; type 0 is a group, 1 a transactional id."""

    key: str = field(string, "0-3")
    key_type: int = field(int8, "1+")
    coordinator_keys: list[str] = field(array(string), "4+")


@struct
class Coordinator:
    """The coordinator of one key, or why there is none."""

    key: str = field(string, "4+")
    node_id: int = field(int32, "4+")
    host: str = field(string, "4+")
    port: int = field(int32, "4+")
    error_code: int = field(int16, "4+")
    error_message: str | None = field(string, "4+", nullable="4+")


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """One coordinator up to version 3, a list after it."""

    throttle_time_ms: int = field(int32, "1+")
    error_code: int = field(int16, "0-3")
    error_message: str | None = field(string, "1-3", nullable="1-3")
    node_id: int = field(int32, "0-3")
    host: str = field(string, "0-3")
    port: int = field(int32, "0-3")
    coordinators: list[Coordinator] = field(array(Coordinator), "4+")
