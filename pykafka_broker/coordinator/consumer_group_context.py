"""What deciding for consumer groups takes: settings, the topics of the moment, the groups of a shard, its deadlines."""

from __future__ import annotations

import base64
import hashlib
import struct
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from pykafka_broker.coordinator.classic_rebalance import Rebalances
    from pykafka_broker.coordinator.deadlines import Deadlines
    from pykafka_broker.coordinator.group import Group
    from pykafka_broker.coordinator.settings import GroupSettings
    from pykafka_broker.coordinator.topics import Topics

_ID_AND_COUNT = struct.Struct(">16sI")


def revoke_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Until when a member has to give back partitions."""
    return "consumer revoke", group_id, member_id


def join_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Until when a classic member has to join again."""
    return "consumer join", group_id, member_id


def sync_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Until when a classic member that joined has to sync."""
    return "consumer sync", group_id, member_id


def new_member_id() -> str:
    """As Kafka writes the ids it makes; none begins with a dash, which command lines would take for an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


class ConsumerContext:
    """Shared by all that decide for the consumer groups of one shard. Owns only what it remembers of topics."""

    def __init__(
        self,
        settings: GroupSettings,
        topics: Topics,
        groups: dict[str, Group],
        deadlines: Deadlines,
        rebalances: Rebalances,
        new_id: Callable[[], str] = new_member_id,
    ) -> None:
        self.settings = settings
        self.topics = topics
        self.groups = groups
        self.deadlines = deadlines
        self.rebalances = rebalances
        self.new_id = new_id
        self.topics_version = 1
        """Grows when topics come or change, so that what was matched before is known to be old."""
        self._hashes: dict[str, int] = {}

    def topics_changed(self) -> None:
        self.topics_version += 1
        self._hashes.clear()

    def topic_ids(self, names: Iterable[str]) -> frozenset[UUID]:
        """The ids of those that exist."""
        ids = (self.topics.topic_id(name) for name in names)
        return frozenset(topic_id for topic_id in ids if topic_id is not None)

    def metadata_hash(self, names: Iterable[str]) -> int:
        """Tells topics from what they become when one is made, grows or is replaced. It need not be Kafka's own: a
        group that Kafka wrote has one epoch more, and nothing moves."""
        known = [(name, self._topic_hash(name)) for name in sorted(names)]
        parts = [value for _, value in known if value is not None]
        return _hash(struct.pack(f">{len(parts)}q", *parts)) if parts else 0

    def _topic_hash(self, name: str) -> int | None:
        if (known := self._hashes.get(name)) is not None:
            return known
        topic_id, count = self.topics.topic_id(name), self.topics.partition_count(name)
        if topic_id is None or count is None:
            return None
        racks = self.topics.racks(name) or []
        placed = "|".join(",".join(sorted(partition)) for partition in racks)
        hashed = _hash(_ID_AND_COUNT.pack(topic_id.bytes, count) + f"{name}|{placed}".encode())
        self._hashes[name] = hashed
        return hashed


def _hash(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big", signed=True)
