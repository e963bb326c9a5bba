"""Members leave a classic group."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int16, int32, message, string, struct


@struct
class MemberIdentity:
    """A member by its id, or by its instance id if static."""

    member_id: str = field(string, "3+")
    group_instance_id: str | None = field(string, "3+", nullable="3+", default=None)
    reason: str | None = field(string, "5+", nullable="5+", default=None)


@message(api_key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """One member up to version 2, several after it."""

    group_id: str = field(string, "0+")
    member_id: str = field(string, "0-2")
    members: list[MemberIdentity] = field(array(MemberIdentity), "3+")


@struct
class MemberResponse:
    """What became of one member."""

    member_id: str = field(string, "3+")
    group_instance_id: str | None = field(string, "3+", nullable="3+")
    error_code: int = field(int16, "3+")


@message(api_key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """Whether the members could leave."""

    throttle_time_ms: int = field(int32, "1+")
    error_code: int = field(int16, "0+")
    members: list[MemberResponse] = field(array(MemberResponse), "3+")
