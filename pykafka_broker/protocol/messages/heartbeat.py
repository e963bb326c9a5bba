"""A member of a classic group says that it is alive."""

from __future__ import annotations

from pykafka_broker.protocol.types import field, int16, int32, message, string


@message(api_key=12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    """The member, and the generation it believes to be current."""

    group_id: str = field(string, "0+")
    generation_id: int = field(int32, "0+")
    member_id: str = field(string, "0+")
    group_instance_id: str | None = field(string, "3+", nullable="3+", default=None)


@message(api_key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """Whether the member may go on."""

    throttle_time_ms: int = field(int32, "1+")
    error_code: int = field(int16, "0+")
