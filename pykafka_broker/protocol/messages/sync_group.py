"""Handing out the assignment the leader of a classic group made."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, binary, field, int16, int32, message, string, struct


@struct
class SyncGroupRequestAssignment:
    """The part of one member."""

    member_id: str = field(string, "0+")
    assignment: bytes = field(binary, "0+")


@message(api_key=14, versions="0-5", flexible="4+")
class SyncGroupRequest:
    """A member asks for its part; the leader brings everybody's."""

    group_id: str = field(string, "0+")
    generation_id: int = field(int32, "0+")
    member_id: str = field(string, "0+")
    group_instance_id: str | None = field(string, "3+", nullable="3+", default=None)
    protocol_type: str | None = field(string, "5+", nullable="5+", default=None)
    protocol_name: str | None = field(string, "5+", nullable="5+", default=None)
    assignments: list[SyncGroupRequestAssignment] = field(array(SyncGroupRequestAssignment), "0+")


@message(api_key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """The part of the member that asked."""

    throttle_time_ms: int = field(int32, "1+")
    error_code: int = field(int16, "0+")
    protocol_type: str | None = field(string, "5+", nullable="5+", default=None)
    protocol_name: str | None = field(string, "5+", nullable="5+", default=None)
    assignment: bytes = field(binary, "0+")
