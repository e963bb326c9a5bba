"""The port through which a coordinator sees the topics of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID


class Topics(Protocol):
    """The topics there are at this moment."""

    def partition_count(self, name: str) -> int | None:
        """How many partitions the topic has; None if there is no such topic."""

    def topic_id(self, name: str) -> UUID | None:
        """The id of the topic of this name."""

    def name(self, topic_id: UUID) -> str | None:
        """The name of the topic of this id."""

    def names(self) -> Iterable[str]:
        """All topics."""

    def racks(self, name: str) -> list[frozenset[str]] | None:
        """By partition, the racks its replicas are in; None if there is no such topic."""
