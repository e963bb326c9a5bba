"""The composition root: the only place that names concrete classes and puts them together.

    async with Broker({"log.dirs": "data", "listeners": "PLAINTEXT://127.0.0.1:0"}) as broker:
        print(broker.bootstrap_servers)

What only a broker of a cluster needs is loaded by it alone: a third of all there is, kazoo among it.
Nothing is global: a process may hold as many brokers as it likes, each with its own directories and ports.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Self

from pykafka_broker.clock import Clock, SystemClock
from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.metadata import Metadata
from pykafka_broker.cluster.producer_ids import ProducerIds
from pykafka_broker.cluster.sqlite_store import SqliteStore
from pykafka_broker.cluster.store import StoreError
from pykafka_broker.cluster.topics import TopicRules
from pykafka_broker.config import BrokerConfig, validate_all
from pykafka_broker.coordinator.group_coordinator import GroupCoordinator
from pykafka_broker.coordinator.settings import GroupSettings
from pykafka_broker.handlers import ROUTES
from pykafka_broker.handlers.dispatch import Dispatcher
from pykafka_broker.handlers.fetch_sessions import FetchSessions
from pykafka_broker.handlers.releases import UnknownRelease, release
from pykafka_broker.handlers.services import Services
from pykafka_broker.log.log_dir import LogDir, LogDirError
from pykafka_broker.network.listener import Limits, Listeners
from pykafka_broker.replication.adoption import adopt
from pykafka_broker.replication.internal_topics import GroupPlacement, LiveTopics
from pykafka_broker.replication.partitions import Partitions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from pykafka_broker.cluster.member import Member
    from pykafka_broker.cluster.zookeeper_session import Login
    from pykafka_broker.cluster.zookeeper_store import ZookeeperStore
    from pykafka_broker.membership import Membership

log = logging.getLogger(__name__)

METADATA_FILE = "metadata.sqlite"
FIRST_BROKER_ID = 1
_GROUP_PROPERTIES = (
    "group_min_session_timeout_ms",
    "group_max_session_timeout_ms",
    "group_initial_rebalance_delay_ms",
    "group_max_size",
    "group_consumer_assignment_interval_ms",
    "group_consumer_assignors",
    "group_consumer_heartbeat_interval_ms",
    "group_consumer_max_assignment_interval_ms",
    "group_consumer_max_heartbeat_interval_ms",
    "group_consumer_max_session_timeout_ms",
    "group_consumer_max_size",
    "group_consumer_migration_policy",
    "group_consumer_min_assignment_interval_ms",
    "group_consumer_min_heartbeat_interval_ms",
    "group_consumer_min_session_timeout_ms",
    "group_consumer_regex_refresh_interval_ms",
    "group_consumer_session_timeout_ms",
    "offset_metadata_max_bytes",
    "offsets_commit_timeout_ms",
    "offsets_retention_check_interval_ms",
)


class StartError(Exception):
    """The broker cannot start; the message says why in a line."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed, which halves the cost of a request, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Broker:
    """One broker: `start` or `async with`, then `bootstrap_servers`. Owner of everything inside it."""

    def __init__(
        self,
        config: BrokerConfig | Mapping[str, str],
        clock: Clock | None = None,
        as_release: str | None = None,
    ) -> None:
        """`as_release`, "3.9" say: offer and accept only what that release of Apache Kafka did."""
        self.config = config if isinstance(config, BrokerConfig) else BrokerConfig.load(config)
        self._clock = clock or SystemClock()
        try:
            self._release = None if as_release is None else release(as_release)
        except UnknownRelease as error:
            raise StartError(str(error)) from error
        self._closing = contextlib.AsyncExitStack()
        self.bound: list[tuple[str, int]] = []
        self.broker_id = -1
        self.cluster_id = ""

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        return self.config.log_dirs

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self._advertised.values())

    async def start(self) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                await self._start(stack)
                self._closing = stack.pop_all()
        except (OSError, LogDirError, StoreError) as error:
            raise StartError(str(error)) from error

    async def close(self) -> None:
        """Answer nothing more, flush, and leave a directory that needs no recovery."""
        await self._closing.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        config = self.config
        dirs: list[LogDir] = []
        for path in config.log_dirs:
            dirs.append(await asyncio.to_thread(LogDir.open, path))
            stack.callback(dirs[-1].unlock)
        store = await self._open_store(dirs[0])
        stack.push_async_callback(store.close)
        self.broker_id = await _broker_id(config, dirs, store)
        listeners = Listeners(_limits(config), config.socket_listen_backlog_size)
        await self._bind(listeners)
        stack.push_async_callback(listeners.close)
        registration = znodes.BrokerRegistration(self.broker_id, self._endpoints(), config.broker_rack)
        rules = TopicRules(config.num_partitions, config.default_replication_factor, validate_all)
        cluster_id = next((where.cluster_id for where in dirs if where.cluster_id), None)
        membership: Membership | None = None
        metadata: Metadata | Member
        if config.zookeeper_connect:
            from pykafka_broker.membership import Membership

            membership = await Membership.open(store, self._clock, config, rules, self.broker_id, cluster_id)
            metadata = membership.member
        else:
            metadata = await Metadata.open(store, self._clock, rules, registration, cluster_id=cluster_id)
        stack.push_async_callback(metadata.close)
        self.cluster_id = metadata.view.cluster_id
        for where in dirs:
            where.write_identity(self.broker_id, self.cluster_id)
        if isinstance(metadata, Metadata):
            await adopt(store, metadata, self.broker_id, dirs, config)
        context = membership.context if membership is not None else None
        partitions = Partitions(self.broker_id, config, self._clock, dirs, context)
        await asyncio.to_thread(partitions.open, metadata.view)
        stack.push_async_callback(partitions.close)
        metadata.before_change(partitions.apply)
        groups = GroupCoordinator(_group_settings(config), LiveTopics(metadata), self._clock)
        stack.push_async_callback(groups.close)
        placement = GroupPlacement(groups, partitions, config.offsets_load_buffer_size)
        metadata.on_change(placement.follow)
        placement.follow(metadata.view, metadata.view)
        cluster, routes = None, ROUTES
        if membership is not None:
            from pykafka_broker.handlers.cluster_routes import CLUSTER_ROUTES

            cluster = membership.serve(partitions, lambda: placement.follow_leaders(metadata.view))
            stack.push_async_callback(membership.close)
            routes += CLUSTER_ROUTES
        producer_ids = ProducerIds(store, self.broker_id, partitions.highest_producer_id())
        dispatcher = Dispatcher(
            Services(
                broker_id=self.broker_id,
                config=config,
                clock=self._clock,
                metadata=metadata,
                partitions=partitions,
                producer_ids=producer_ids,
                fetch_sessions=FetchSessions(config.max_incremental_fetch_session_cache_slots),
                groups=groups,
                served=routes if self._release is None else self._release.routes(routes),
                release=self._release,
                writes_unseen=type(asyncio.get_running_loop()).__module__.startswith("uvloop"),
                cluster=cluster,
            )
        )
        partitions.start()
        stack.push_async_callback(producer_ids.close)
        await listeners.start(dispatcher)
        # Connections end before the logs close: nothing may be acknowledged after the last checkpoint.
        stack.push_async_callback(listeners.close)
        if membership is not None:
            await membership.join(registration)
            stack.push_async_callback(membership.hand_over)

    async def _open_store(self, first: LogDir) -> SqliteStore | ZookeeperStore:
        config = self.config
        if not config.zookeeper_connect:
            return await SqliteStore.open(first.path / METADATA_FILE, self._clock)
        from pykafka_broker.cluster.zookeeper_store import ZookeeperSettings, ZookeeperStore

        return await ZookeeperStore.open(
            ZookeeperSettings(
                config.zookeeper_connect,
                config.zookeeper_session_timeout_ms,
                config.zookeeper_connection_timeout_ms,
                config.zookeeper_set_acl,
                _login(config),
            )
        )

    def _endpoints(self) -> tuple[znodes.Endpoint, ...]:
        protocols = {endpoint.name: endpoint.security_protocol for endpoint in self.config.listeners}
        return tuple(
            znodes.Endpoint(name, host, port, protocols[name])
            for name, (host, port) in self._advertised.items()
        )

    async def _bind(self, listeners: Listeners) -> None:
        """Ports are bound before the broker registers, so that port 0 is advertised as what it became."""
        self._advertised: dict[str, tuple[str, int]] = {}
        for endpoint in self.config.listeners:
            self.bound.append(await listeners.listen(endpoint.name, endpoint.host, endpoint.port))
        told = {endpoint.name: endpoint for endpoint in self.config.advertised_listeners}
        for endpoint, (_, port) in zip(self.config.listeners, self.bound, strict=True):
            if endpoint.name in told:
                advertised = told[endpoint.name]
                self._advertised[endpoint.name] = (advertised.host, advertised.port or port)


async def _broker_id(config: BrokerConfig, dirs: list[LogDir], store: SqliteStore | ZookeeperStore) -> int:
    """The configured id, else the one the directories were made with, else the first, or the cluster's next."""
    known = {where.broker_id for where in dirs if where.broker_id is not None}
    if len(known) > 1:
        raise StartError(f"the log directories belong to different brokers: {sorted(known)}")
    stored = next(iter(known), None)
    if config.broker_id < 0:
        if stored is not None:
            return stored
        if not config.zookeeper_connect:
            return FIRST_BROKER_ID
        from pykafka_broker.cluster.member import next_broker_id

        return await next_broker_id(store)
    if stored is not None and stored != config.broker_id:
        raise StartError(
            f"broker.id is {config.broker_id}, but meta.properties in {dirs[0].path} says {stored}: wrong directory?"
        )
    return config.broker_id


def _login(config: BrokerConfig) -> Login | None:
    if config.zookeeper_login is None:
        return None
    from pykafka_broker.cluster.zookeeper_session import Login

    user, _, password = config.zookeeper_login.partition(":")
    return Login(user, password, "sasl" if config.zookeeper_login_scheme == "sasl" else "digest")


def _limits(config: BrokerConfig) -> Limits:
    return Limits(
        max_frame=config.socket_request_max_bytes,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        per_ip_overrides=config.max_connections_per_ip_overrides,
        max_idle_ms=config.connections_max_idle_ms,
        send_buffer=config.socket_send_buffer_bytes,
        receive_buffer=config.socket_receive_buffer_bytes,
    )


def _group_settings(config: BrokerConfig) -> GroupSettings:
    """The properties of groups under the names the coordinator has for them."""
    given = {name: getattr(config, name) for name in _GROUP_PROPERTIES}
    return GroupSettings(**given, offsets_retention_ms=config.offsets_retention_minutes * 60_000)
