"""Joining a classic group."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, binary, boolean, field, int16, int32, message, string, struct


@struct
class JoinGroupRequestProtocol:
    """A protocol, and what the member has to say under it."""

    name: str = field(string, "0+")
    metadata: bytes = field(binary, "0+")


@message(api_key=11, versions="0-9", flexible="6+")
class JoinGroupRequest:
    """A member and the protocols it can do; the first join has no member id."""

    group_id: str = field(string, "0+")
    session_timeout_ms: int = field(int32, "0+")
    rebalance_timeout_ms: int = field(int32, "1+", default=-1)
    member_id: str = field(string, "0+")
    group_instance_id: str | None = field(string, "5+", nullable="5+", default=None)
    protocol_type: str = field(string, "0+")
    protocols: list[JoinGroupRequestProtocol] = field(array(JoinGroupRequestProtocol), "0+")
    reason: str | None = field(string, "8+", nullable="8+", default=None)


@struct
class JoinGroupResponseMember:
    """A member and what it said under the protocol chosen."""

    member_id: str = field(string, "0+")
    group_instance_id: str | None = field(string, "5+", nullable="5+", default=None)
    metadata: bytes = field(binary, "0+")


@message(api_key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """The generation joined; only its leader is told the members."""

    throttle_time_ms: int = field(int32, "2+")
    error_code: int = field(int16, "0+")
    generation_id: int = field(int32, "0+", default=-1)
    protocol_type: str | None = field(string, "7+", nullable="7+", default=None)
    protocol_name: str | None = field(string, "0+", nullable="7+")
    leader: str = field(string, "0+")
    skip_assignment: bool = field(boolean, "9+")
    member_id: str = field(string, "0+")
    members: list[JoinGroupResponseMember] = field(array(JoinGroupResponseMember), "0+")
