"""What a broker of a cluster serves beside the others. A module of its own, so that a broker alone does not load the
controller and all that belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.handlers import (
    allocate_producer_ids,
    alter_partition,
    controlled_shutdown,
    leader_and_isr,
    route,
    stop_replica,
    update_metadata,
)
from pykafka_broker.protocol.api import ApiKey

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Route

CLUSTER_ROUTES: tuple[Route, ...] = (
    route(ApiKey.LEADER_AND_ISR, leader_and_isr.handle, 5, 7),
    route(ApiKey.STOP_REPLICA, stop_replica.handle, 3, 4),
    route(ApiKey.UPDATE_METADATA, update_metadata.handle, 7, 8),
    route(ApiKey.CONTROLLED_SHUTDOWN, controlled_shutdown.handle, 0, 3),
    route(ApiKey.ALTER_PARTITION, alter_partition.handle, 0, 3),
    route(ApiKey.ALLOCATE_PRODUCER_IDS, allocate_producer_ids.handle, 0, 0),
)
