"""What a follower needs of others: a way to the leader, a local replica, and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pykafka_broker.replication.follower_state import LocalLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from pykafka_broker.config import BrokerConfig
    from pykafka_broker.protocol.types import Buffer
    from pykafka_broker.replication.throttle import Throttle


class Channel(Protocol):
    """The way to the leader; `network.peer.Peer` is one."""

    async def call(
        self, request: object, *, newest: int | None = None, timeout_ms: float | None = None
    ) -> Any:
        """The answer, or OSError if there is none."""

    def interrupt(self) -> None:
        """Whoever waits for an answer gets none; the next call is as good as any."""

    def close(self) -> None: ...


class Replica(LocalLog, Protocol):
    """The local replica of a partition led elsewhere; `partition.Partition` is one. Storage trouble is KafkaError."""

    @property
    def topic(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def topic_id(self) -> UUID: ...
    @property
    def leader_epoch(self) -> int: ...

    def truncate_to(self, offset: int) -> None: ...

    def restart_at(self, offset: int) -> None:
        """The log begins anew, empty, at `offset`."""

    def append_fetched(self, records: Buffer, high_watermark: int, log_start_offset: int) -> None:
        """Takes what the leader sent, and learns how much of it is committed and what it let go of."""


@dataclass(frozen=True, slots=True)
class FollowerSettings:
    """Under Kafka's names: replica.fetch.* and replica.socket.timeout.ms."""

    broker_id: int
    broker_epoch: Callable[[], int] = lambda: -1
    wait_max_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 1024 * 1024
    response_max_bytes: int = 10 * 1024 * 1024
    backoff_ms: int = 1000
    socket_timeout_ms: int = 30_000
    throttle: Throttle | None = None

    @classmethod
    def of(
        cls, config: BrokerConfig, broker_id: int, broker_epoch: Callable[[], int], throttle: Throttle
    ) -> FollowerSettings:
        return cls(
            broker_id,
            broker_epoch,
            wait_max_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_max_bytes,
            response_max_bytes=config.replica_fetch_response_max_bytes,
            backoff_ms=config.replica_fetch_backoff_ms,
            socket_timeout_ms=config.replica_socket_timeout_ms,
            throttle=throttle,
        )
