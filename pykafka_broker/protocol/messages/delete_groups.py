"""Deleting groups that have no members."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int16, int32, message, string, struct


@message(api_key=42, versions="0-3", flexible="2+")
class DeleteGroupsRequest:
    """Groups to delete."""

    groups_names: list[str] = field(array(string), "0+")


@struct
class DeletableGroupResult:
    """A group, and why it was not deleted."""

    group_id: str = field(string, "0+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "3+", nullable="3+", default=None)


@message(api_key=42, versions="0-3", flexible="2+")
class DeleteGroupsResponse:
    """What became of each group."""

    throttle_time_ms: int = field(int32, "0+")
    results: list[DeletableGroupResult] = field(array(DeletableGroupResult), "0+")
