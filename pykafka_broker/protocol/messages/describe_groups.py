"""The state and members of classic groups."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, binary, boolean, field, int16, int32, message, string, struct


@message(api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """Groups to describe."""

    groups: list[str] = field(array(string), "0+")
    include_authorized_operations: bool = field(boolean, "3+")


@struct
class DescribedGroupMember:
    """A member and the part it holds."""

    member_id: str = field(string, "0+")
    group_instance_id: str | None = field(string, "4+", nullable="4+", default=None)
    client_id: str = field(string, "0+")
    client_host: str = field(string, "0+")
    member_metadata: bytes = field(binary, "0+")
    member_assignment: bytes = field(binary, "0+")


@struct
class DescribedGroup:
    """A group; one that does not exist is Dead."""

    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "6+", nullable="6+", default=None)
    group_id: str = field(string, "0+")
    group_state: str = field(string, "0+")
    protocol_type: str = field(string, "0+")
    protocol_data: str = field(string, "0+")
    members: list[DescribedGroupMember] = field(array(DescribedGroupMember), "0+")
    authorized_operations: int = field(int32, "3+", default=-0x8000_0000)


@message(api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """The groups asked for."""

    throttle_time_ms: int = field(int32, "1+")
    groups: list[DescribedGroup] = field(array(DescribedGroup), "0+")
