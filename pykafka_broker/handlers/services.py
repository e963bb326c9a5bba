"""What handlers work with: one object, handed to each of them, and the shape they all have."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.clock import Clock
    from pykafka_broker.cluster.controller.loop import Controller
    from pykafka_broker.cluster.member import Member
    from pykafka_broker.cluster.metadata import Metadata
    from pykafka_broker.cluster.producer_ids import ProducerIds
    from pykafka_broker.config import BrokerConfig
    from pykafka_broker.coordinator.group_coordinator import GroupCoordinator
    from pykafka_broker.handlers.fetch_sessions import FetchSessions
    from pykafka_broker.handlers.releases import Release
    from pykafka_broker.network.connection import Client
    from pykafka_broker.protocol.api import Api
    from pykafka_broker.replication.partitions import Partitions
    from pykafka_broker.replication.roles import Roles

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What only a broker of a cluster has."""

    member: Member
    roles: Roles
    controller: Controller


@dataclass(frozen=True, slots=True)
class Services:
    broker_id: int
    config: BrokerConfig
    clock: Clock
    metadata: Metadata | Member
    partitions: Partitions
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    served: tuple[Route, ...]
    writes_unseen: bool
    """Whether the event loop hands buffers to the kernel as they are, without ever reading them itself."""
    cluster: Cluster | None = None

    @property
    def in_cluster(self) -> Cluster:
        """For requests that are served only there."""
        assert self.cluster is not None
        return self.cluster

    release: Release | None = None
    """The release of Apache Kafka the broker passes itself off as; `served` is limited to it already."""


@dataclass(slots=True)
class Call:
    """How a request arrived: from whom, through which listener, at which version."""

    client: Client
    client_id: str | None
    version: int


Handler = Callable[[Services, Call, Any], "Any | Coroutine[Any, Any, Any]"]
"""(services, call, request) -> the response, None where none is due, `Soon`, or a coroutine that ends in either of
the first."""


@dataclass(frozen=True, slots=True)
class Route:
    """One API as it is served. `advertised_from` is below `oldest` where clients need to see an older version; of one
    that goes `in_line` a client's next request is worked on while the one before only waits for others."""

    api: Api
    handler: Handler
    oldest: int
    newest: int
    advertised_from: int
    in_line: bool = False


def error_code(error: Exception) -> ErrorCode:
    """The code a failure is answered with; what nobody foresaw is logged with its traceback."""
    if isinstance(error, KafkaError):
        return error.code
    log.error("unexpected failure", exc_info=error)
    return ErrorCode.UNKNOWN_SERVER_ERROR


def error_text(error: Exception) -> str | None:
    return error.text if isinstance(error, KafkaError) else None


TOPIC_OPERATIONS = sum(1 << op for op in (3, 4, 5, 6, 7, 8, 10, 11))
"""Everything that can be done to a topic, as a bit field of Kafka's AclOperation codes: no authorizer, no limits."""

GROUP_OPERATIONS = sum(1 << op for op in (3, 6, 8, 10, 11))

CLUSTER_OPERATIONS = sum(1 << op for op in (5, 7, 8, 9, 10, 11, 12))
