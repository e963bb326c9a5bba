"""How much of a broker's traffic moves of partitions may take, as Kafka limits it (KIP-73).

Topics say which replicas are throttled, on the leader's side and on the follower's; brokers say to how many bytes a
second, each side for itself. Only replicas that are not in sync are held back: clients wait for the others.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from pykafka_broker.config import FOLLOWER_RATE, LEADER_RATE, dynamic_long

if TYPE_CHECKING:
    from pykafka_broker.clock import Clock
    from pykafka_broker.cluster.view import ClusterView, TopicInfo

LED_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWED_REPLICAS: Final = "follower.replication.throttled.replicas"
_ALL: Final = "*"


class Throttle:
    """One side's limit, what it covers, and how much went through lately. Owner: Throttles.

    The rate is that of the last few windows, the present one included, and of one window at least."""

    def __init__(self, clock: Clock, windows: int = 11, window_s: float = 1) -> None:
        self.limit: float = float("inf")
        """Bytes a second."""
        self._clock = clock
        self._memory_s = windows * window_s
        self._window_s = window_s
        self._covered: dict[str, frozenset[int] | None] = {}
        self._windows: deque[list[float]] = deque()
        self._sum = 0.0

    @property
    def is_on(self) -> bool:
        """Whether anything is covered at all."""
        return bool(self._covered)

    def cover(self, topic: str, partitions: frozenset[int] | None) -> None:
        """From now on these of the topic, None for all."""
        if partitions is None or partitions:
            self._covered[topic] = partitions
        else:
            self._covered.pop(topic, None)

    def covers(self, topic: str, index: int) -> bool:
        if topic not in self._covered:
            return False
        partitions = self._covered[topic]
        return partitions is None or index in partitions

    def record(self, size: int) -> None:
        """Bytes of a replica that is covered."""
        now = self._clock.monotonic()
        if not self._windows or now >= self._windows[-1][0] + self._window_s:
            self._windows.append([now, 0])
        self._windows[-1][1] += size
        self._sum += size

    @property
    def is_exceeded(self) -> bool:
        now = self._clock.monotonic()
        while self._windows and self._windows[0][0] + self._memory_s <= now:
            self._sum -= self._windows.popleft()[1]
        if not self._windows:
            return False
        return self._sum / max(now - self._windows[0][0], self._window_s) > self.limit


class Throttles:
    """Both sides of one broker, as the cluster's configs have them."""

    def __init__(self, broker_id: int, clock: Clock, windows: int, window_s: float) -> None:
        self._broker_id = broker_id
        self.leading = Throttle(clock, windows, window_s)
        self.following = Throttle(clock, windows, window_s)
        self._sides = (
            (self.leading, LEADER_RATE, LED_REPLICAS),
            (self.following, FOLLOWER_RATE, FOLLOWED_REPLICAS),
        )

    def follow(self, old: ClusterView, new: ClusterView) -> None:
        """A listener to the view in force."""
        own, default = new.broker_configs.get(self._broker_id, {}), new.broker_configs.get(None, {})
        for throttle, rate, _ in self._sides:
            throttle.limit = dynamic_long(rate, own, default)
        for name, topic in new.topics.items():
            if old.topics.get(name) is not topic:
                self._learn(topic)
        for name in old.topics.keys() - new.topics.keys():
            for throttle, _, _ in self._sides:
                throttle.cover(name, frozenset())

    def _learn(self, topic: TopicInfo) -> None:
        for throttle, _, replicas in self._sides:
            items = [item.strip() for item in topic.config.get(replicas, "").split(",")]
            if _ALL in items:
                throttle.cover(topic.name, None)
            else:
                pairs = (item.split(":") for item in items if ":" in item)
                here = str(self._broker_id)
                throttle.cover(topic.name, frozenset(int(index) for index, broker in pairs if broker == here))
