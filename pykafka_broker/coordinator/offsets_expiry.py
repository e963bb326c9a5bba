"""Offsets nobody has use for are deleted after a while (KIP-211), and with the last of them the group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.offsets import tombstone

if TYPE_CHECKING:
    from pykafka_broker.coordinator.deadlines import Deadlines
    from pykafka_broker.coordinator.group import Decision, Group
    from pykafka_broker.coordinator.offsets import Committed, Offsets
    from pykafka_broker.coordinator.settings import GroupSettings

_KEY = "offsets expire"


class OffsetExpiry:
    """Looks at all groups from time to time. Owns nothing."""

    def __init__(
        self, settings: GroupSettings, groups: dict[str, Group], offsets: Offsets, deadlines: Deadlines
    ) -> None:
        self._settings = settings
        self._groups = groups
        self._offsets = offsets
        self._deadlines = deadlines

    def start(self, now_ms: int) -> None:
        at_ms = now_ms + self._settings.offsets_retention_check_interval_ms
        self._deadlines.set(_KEY, at_ms, self._look)

    def _look(self, now_ms: int, decision: Decision) -> None:
        decision.is_divisible = True
        self.start(now_ms)
        for group in self._groups.values():
            nothing_left = self._expire(group, now_ms, decision)
            if nothing_left and group.is_empty:
                decision.records += group.tombstones()

    def _expire(self, group: Group, now_ms: int, decision: Decision) -> bool:
        """Whether the group keeps no offset."""
        kept = self._offsets.has_pending(group.group_id)
        for topic, partitions in self._offsets.of_group(group.group_id).items():
            in_use = group.subscribes_to(topic)
            for partition, committed in partitions.items():
                needed = in_use or self._offsets.is_pending(group.group_id, topic, partition)
                if needed or not self._is_over(group, committed, now_ms):
                    kept = True
                else:
                    decision.records.append(tombstone(group.group_id, topic, partition))
        return not kept

    def _is_over(self, group: Group, committed: Committed, now_ms: int) -> bool:
        since = group.retained_since(committed.commit_timestamp)
        if since is None:
            return False
        if committed.expire_timestamp >= 0:
            return now_ms >= committed.expire_timestamp
        return now_ms - since >= self._settings.offsets_retention_ms
