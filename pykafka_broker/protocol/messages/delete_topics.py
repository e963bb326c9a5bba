"""Deleting topics, by name or by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.types import array, field, int16, int32, message, string, struct, uuid

if TYPE_CHECKING:
    from uuid import UUID


@struct
class DeleteTopicState:
    """A topic by name or by id."""

    name: str | None = field(string, "6+", nullable="6+", default=None)
    topic_id: UUID = field(uuid, "6+")


@message(api_key=20, versions="0-6", flexible="4+")
class DeleteTopicsRequest:
    """Topics to delete: names alone up to version 5, names or ids after it."""

    topics: list[DeleteTopicState] = field(array(DeleteTopicState), "6+")
    topic_names: list[str] = field(array(string), "0-5")
    timeout_ms: int = field(int32, "0+")


@struct
class DeletableTopicResult:
    """A topic, and why it was not deleted."""

    name: str | None = field(string, "0+", nullable="6+")
    topic_id: UUID = field(uuid, "6+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "5+", nullable="5+", default=None)


@message(api_key=20, versions="0-6", flexible="4+")
class DeleteTopicsResponse:
    """What became of each topic."""

    throttle_time_ms: int = field(int32, "1+")
    responses: list[DeletableTopicResult] = field(array(DeletableTopicResult), "0+")
