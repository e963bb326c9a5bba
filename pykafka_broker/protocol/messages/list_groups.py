"""The groups a broker coordinates."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int16, int32, message, string, struct


@message(api_key=16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    """Filters by state and type; an empty list lets all pass."""

    states_filter: list[str] = field(array(string), "4+")
    types_filter: list[str] = field(array(string), "5+")


@struct
class ListedGroup:
    """A group in short."""

    group_id: str = field(string, "0+")
    protocol_type: str = field(string, "0+")
    group_state: str = field(string, "4+")
    group_type: str = field(string, "5+")


@message(api_key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """The groups this broker coordinates."""

    throttle_time_ms: int = field(int32, "1+")
    error_code: int = field(int16, "0+")
    groups: list[ListedGroup] = field(array(ListedGroup), "0+")
