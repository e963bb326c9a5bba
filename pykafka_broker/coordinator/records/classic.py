"""The record of a classic group: all of it, written anew whenever it changes."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, binary, field, int32, int64, message, string, struct


@message(api_key=2, versions="0", flexible="none")
class GroupMetadataKey:
    """A classic group."""

    group: str = field(string, "0")


@struct
class MemberMetadata:
    """A member as the last completed generation knew it."""

    member_id: str = field(string, "0+")
    group_instance_id: str | None = field(string, "3+", nullable="3+", default=None)
    client_id: str = field(string, "0+")
    client_host: str = field(string, "0+")
    rebalance_timeout: int = field(int32, "1+", default=-1)
    session_timeout: int = field(int32, "0+")
    subscription: bytes = field(binary, "0+")
    assignment: bytes = field(binary, "0+")


@message(api_key=2, versions="0-4", flexible="4+")
class GroupMetadataValue:
    """A generation and who is in it."""

    protocol_type: str = field(string, "0+")
    generation: int = field(int32, "0+")
    protocol: str | None = field(string, "0+", nullable="0+")
    leader: str | None = field(string, "0+", nullable="0+")
    current_state_timestamp: int = field(int64, "2+", default=-1)
    members: list[MemberMetadata] = field(array(MemberMetadata), "0+")
