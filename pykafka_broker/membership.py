"""The part of a broker that makes it one of a cluster, put together: see `broker` for the rest.

membership = await Membership.open(...)     the tree is read, nothing is announced
membership.serve(partitions, changed)       whatever the controller says can be carried out
await membership.join(registration)         the others see this broker
await membership.hand_over()                before a stop: leaders move elsewhere
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Final

from pykafka_broker.cluster.controller.loop import Controller
from pykafka_broker.cluster.controller.state import ControllerSettings
from pykafka_broker.cluster.member import Member
from pykafka_broker.cluster.view import ClusterView
from pykafka_broker.handlers.services import Cluster
from pykafka_broker.network.peer import Peer, PeerSettings
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from pykafka_broker.replication.fetchers import Fetchers
from pykafka_broker.replication.follower_ports import FollowerSettings
from pykafka_broker.replication.isr_proposals import IsrProposals
from pykafka_broker.replication.partition import ReplicationContext
from pykafka_broker.replication.roles import Roles
from pykafka_broker.replication.throttle import Throttles

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.clock import Clock
    from pykafka_broker.cluster.controller.channels import Channel
    from pykafka_broker.cluster.store import Store
    from pykafka_broker.cluster.topics import TopicRules
    from pykafka_broker.cluster.view import BrokerInfo
    from pykafka_broker.cluster.znodes import BrokerRegistration
    from pykafka_broker.config import BrokerConfig
    from pykafka_broker.replication.partitions import Partitions

log = logging.getLogger(__name__)

_FIRST_NEWS_TIMEOUT_MS: Final = 10_000
_CONTROLLED_SHUTDOWN_NEWEST: Final = 3


class Membership:
    """Owner of everything between this broker and the others: controller, fetchers, proposals, connections."""

    def __init__(self, store: Store, clock: Clock, config: BrokerConfig, broker_id: int) -> None:
        self._store = store
        self._clock = clock
        self._config = config
        self._broker_id = broker_id
        self._listener = config.inter_broker_listener_name
        self._to_controller: Peer | None = None
        self.controller = Controller(store, clock, _controller_settings(config, broker_id), self._connect)
        self.member: Member
        self._proposals = IsrProposals(broker_id, lambda: self.member.epoch, self._controller_channel)
        self._fetchers: Fetchers | None = None
        self._throttles = Throttles(
            broker_id,
            clock,
            config.replication_quota_window_num,
            config.replication_quota_window_size_seconds,
        )

    @classmethod
    async def open(
        cls,
        store: Store,
        clock: Clock,
        config: BrokerConfig,
        rules: TopicRules,
        broker_id: int,
        cluster_id: str | None,
    ) -> Membership:
        """StoreError if the tree cannot be read or is another cluster's."""
        membership = cls(store, clock, config, broker_id)
        placement = random.Random()  # noqa: S311 - spreads replicas, guards nothing
        membership.member = await Member.open(
            store, clock, rules, placement, membership.controller, membership._controller_peer, cluster_id
        )
        return membership

    @property
    def context(self) -> ReplicationContext:
        """What partitions need of the cluster."""
        return ReplicationContext(
            broker_id=self._broker_id,
            clock=self._clock,
            lag_ms=self._config.replica_lag_time_max_ms,
            is_alive=lambda broker: broker in self.member.view.brokers,
            propose=self._proposals.propose,
            lost_logs=self.member.lost_logs,
            throttle=self._throttles.leading,
            is_offline=self._is_offline,
        )

    def serve(self, partitions: Partitions, roles_changed: Callable[[], None]) -> Cluster:
        """From now on the controller's requests can be carried out."""
        settings = FollowerSettings.of(
            self._config, self._broker_id, lambda: self.member.epoch, self._throttles.following
        )
        fetchers = self._fetchers = Fetchers(self._leader, settings, self._clock)
        self.member.on_change(self._addresses_changed)
        self.member.on_change(self._throttles.follow)
        self.member.on_change(lambda *_: _replicas_went(partitions))
        self._throttles.follow(ClusterView(""), self.member.view)
        self._proposals.start()
        roles = Roles(
            self._broker_id, partitions, fetchers, self.member.heed, self.member.configs_of, roles_changed
        )
        return Cluster(self.member, roles, self.controller)

    async def join(self, registration: BrokerRegistration) -> None:
        """Registers, becomes a candidate for the controller, and waits a while for its first word."""
        await self.member.join(registration, patience_ms=2 * self._config.zookeeper_session_timeout_ms)
        await self.controller.start()
        if not await self.member.known_to_the_controller(_FIRST_NEWS_TIMEOUT_MS):
            log.warning("no controller has told this broker about the cluster yet, it goes on without")

    async def hand_over(self) -> None:
        """Controlled shutdown: the controller finds other leaders for what is led here, as far as there are any."""
        config = self._config
        if not config.controlled_shutdown_enable:
            return
        for attempt in range(config.controlled_shutdown_max_retries + 1):
            if attempt:
                await asyncio.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
            try:
                if await self._hand_over_once():
                    return
            except (OSError, KafkaError) as error:
                log.info("leaders could not be handed over: %s", error)
        log.warning("this broker stops although it may still lead partitions")

    async def _hand_over_once(self) -> bool:
        channel = self.member.controller_channel()
        if channel is None:
            return False
        request = ControlledShutdownRequest(broker_id=self._broker_id, broker_epoch=self.member.epoch)
        answer = await channel.call(request, newest=_CONTROLLED_SHUTDOWN_NEWEST)
        if answer.error_code != ErrorCode.NONE:
            log.info("the controller refuses the shutdown with error %d", answer.error_code)
            return False
        if answer.remaining_partitions:
            log.info("%d partitions have no other leader yet", len(answer.remaining_partitions))
        return not answer.remaining_partitions

    async def close(self) -> None:
        """Follows and decides nothing any more. The store, and with it the registration, belongs to the caller."""
        self.member.leave()
        await self.controller.close()
        await self._proposals.close()
        if self._fetchers is not None:
            await self._fetchers.close()
        if self._to_controller is not None:
            self._to_controller.close()
        await self.member.close()

    # Finding the others

    def _is_offline(self, topic: str, index: int, broker_id: int) -> bool:
        known = self.member.view.partition(topic, index)
        return known is not None and broker_id in known.offline

    def _controller_channel(self) -> Channel | None:
        return self.member.controller_channel()

    def _connect(self, broker: BrokerInfo) -> Peer:
        host, port = broker.endpoints[self._listener]
        return Peer(host, port, f"broker-{self._broker_id}")

    def _leader(self, broker_id: int) -> Peer:
        host, port = self._address(self.member.view, broker_id) or ("", 0)
        timeout = max(self._config.replica_socket_timeout_ms, self._config.replica_fetch_wait_max_ms)
        backoff = self._config.replica_fetch_backoff_ms
        settings = PeerSettings(request_timeout_ms=timeout, reconnect_backoff_max_ms=backoff)
        return Peer(host, port, f"broker-{self._broker_id}-follower", settings)

    def _address(self, view: ClusterView, broker_id: int) -> tuple[str, int] | None:
        broker = view.brokers.get(broker_id)
        return None if broker is None else broker.endpoints.get(self._listener)

    def _controller_peer(self, view: ClusterView) -> Peer | None:
        address = self._address(view, self.controller.controller_id)
        peer = self._to_controller
        if peer is not None and (address is None or (peer.host, peer.port) != address):
            peer.close()
            peer = self._to_controller = None
        if peer is None and address is not None:
            peer = self._to_controller = Peer(*address, f"broker-{self._broker_id}")
        return peer

    def _addresses_changed(self, old: ClusterView, new: ClusterView) -> None:
        assert self._fetchers is not None
        for broker_id in new.brokers:
            if self._address(old, broker_id) != self._address(new, broker_id):
                self._fetchers.reconnect(broker_id)


def _replicas_went(partitions: Partitions) -> None:
    """Every change of the view may tell of it. To look at a partition without need costs next to nothing."""
    for partition in tuple(partitions):
        partition.replicas_went()


def _controller_settings(config: BrokerConfig, broker_id: int) -> ControllerSettings:
    return ControllerSettings(
        broker_id=broker_id,
        unclean_leader_election_enable=config.unclean_leader_election_enable,
        delete_topic_enable=config.delete_topic_enable,
        auto_leader_rebalance_enable=config.auto_leader_rebalance_enable,
        leader_imbalance_per_broker_percentage=config.leader_imbalance_per_broker_percentage,
        leader_imbalance_check_interval_seconds=config.leader_imbalance_check_interval_seconds,
        inter_broker_listener=config.inter_broker_listener_name,
    )
