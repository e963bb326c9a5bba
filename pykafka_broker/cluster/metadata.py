"""A broker alone and its tree: registers, claims the controller, turns wishes into committed views."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pykafka_broker.cluster import topics, znodes
from pykafka_broker.cluster.current_view import CurrentView
from pykafka_broker.cluster.store import BadVersion, Check, Create, Delete, NodeExists, SetData
from pykafka_broker.cluster.topic_wishes import TopicWishes
from pykafka_broker.cluster.view import broker_info, load_view
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Mapping, Sequence

    from pykafka_broker.clock import Clock
    from pykafka_broker.cluster.store import Op, Store
    from pykafka_broker.cluster.topic_wishes import ConfigChange
    from pykafka_broker.cluster.topics import MorePartitions, NewTopic, Plan, TopicRules
    from pykafka_broker.cluster.view import ClusterView, TopicInfo
    from pykafka_broker.cluster.znodes import BrokerRegistration

K = TypeVar("K")
T = TypeVar("T")

_CONFIG_CHANGE_LIFETIME_MS = 15 * 60 * 1000


class Metadata(CurrentView):
    """A broker that is its own cluster: member, controller and all.

    Every change is planned on the current view, committed in one multi fenced by the controller epoch, and
    only then visible: first as `view`, then to the listeners in the order they came.
    """

    def __init__(
        self, store: Store, clock: Clock, rules: TopicRules, rng: random.Random, view: ClusterView
    ) -> None:
        super().__init__(view)
        self._store = store
        self._clock = clock
        self._wishes = TopicWishes(rules, rng)
        self._controller_epoch_version: int | None = None

    @classmethod
    async def open(
        cls,
        store: Store,
        clock: Clock,
        rules: TopicRules,
        registration: BrokerRegistration | None = None,
        rng: random.Random | None = None,
        cluster_id: str | None = None,
    ) -> Metadata:
        """Sets up the tree where it is missing and reads it; given a registration, joins the cluster too.

        A tree that is new gets the `cluster_id` that the log directories already bear, if they do."""
        await ensure_tree(store, cluster_id or znodes.uuid_to_text(znodes.random_uuid()))
        placement = rng or random.Random()  # noqa: S311 - spreads replicas, guards nothing
        metadata = cls(store, clock, rules, placement, await load_view(store))
        if registration is not None:
            await metadata.register(registration)
        return metadata

    @property
    def is_controller(self) -> bool:
        return self._controller_epoch_version is not None

    async def register(self, registration: BrokerRegistration) -> None:
        """Announces the broker and claims the controller if nobody has it. NodeExists if the id is taken."""
        await self._undisturbed(self._register(registration))

    async def create_topics(
        self,
        wishes: Sequence[NewTopic],
        validate_only: bool = False,
        timeout_ms: int = 0,  # noqa: ARG002 -- whatever is created is there at once
    ) -> dict[str, TopicInfo | KafkaError]:
        return await self._change(self._wishes.create(wishes), validate_only)

    async def ensure_topics(self, wishes: Sequence[NewTopic]) -> dict[str, TopicInfo | KafkaError]:
        """Topics that are made because they are needed."""
        return await self.create_topics(wishes)

    async def create_partitions(
        self,
        wishes: Sequence[MorePartitions],
        validate_only: bool = False,
        timeout_ms: int = 0,  # noqa: ARG002
    ) -> dict[str, TopicInfo | KafkaError]:
        return await self._change(self._wishes.grow(wishes), validate_only)

    async def delete_topics(
        self,
        targets: Sequence[str | uuid.UUID],
        timeout_ms: int = 0,  # noqa: ARG002
    ) -> dict[str | uuid.UUID, TopicInfo | KafkaError]:
        """By name or id; the answer for a deleted topic is what it was."""

        def plan(target: str | uuid.UUID, view: ClusterView) -> Plan[TopicInfo]:
            return topics.plan_delete_topic(view, target)

        return await self._change({target: partial(plan, target) for target in targets}, False)

    async def alter_topic_configs(
        self, changes: Mapping[str, ConfigChange], validate_only: bool = False
    ) -> dict[str, TopicInfo | KafkaError]:
        outcome = await self._change(self._wishes.configure(changes), validate_only)
        await self._undisturbed(forget_old_config_changes(self._store, self._clock.wall_ms()))
        return outcome

    async def alter_broker_configs(
        self, changes: Mapping[int | None, ConfigChange], validate_only: bool = False
    ) -> dict[int | None, Mapping[str, str] | KafkaError]:
        outcome = await self._change(self._wishes.configure_brokers(changes), validate_only)
        await self._undisturbed(forget_old_config_changes(self._store, self._clock.wall_ms()))
        return outcome

    async def _register(self, registration: BrokerRegistration) -> None:
        async with self._changing:
            stamped = replace(registration, timestamp_ms=self._clock.wall_ms())
            path = znodes.broker_id_path(registration.broker_id)
            await self._store.create(path, stamped.encode(), ephemeral=True)
            epoch = (await self._store.get(path)).czxid
            view = self._view.with_broker(broker_info(stamped, epoch))
            await self._publish(await self._claim_controller(registration.broker_id, view))
        if self.is_controller:
            await self._finish_deletions()

    async def _claim_controller(self, broker_id: int, view: ClusterView) -> ClusterView:
        """The claim and the epoch bump are one multi, so two brokers can never hold the same epoch."""
        node = await self._store.get(znodes.CONTROLLER_EPOCH)
        epoch = int(node.data) + 1
        claim = znodes.encode_controller(broker_id, self._clock.wall_ms())
        try:
            await self._store.multi(
                [
                    Create(znodes.CONTROLLER, claim, ephemeral=True),
                    SetData(znodes.CONTROLLER_EPOCH, str(epoch).encode(), node.version),
                ]
            )
        except (NodeExists, BadVersion):
            found = await load_view(self._store)
            return replace(
                view, controller_id=found.controller_id, controller_epoch=found.controller_epoch
            )  # fmt: skip
        self._controller_epoch_version = node.version + 1
        return replace(view, controller_id=broker_id, controller_epoch=epoch)

    async def _finish_deletions(self) -> None:
        """Deletions that were asked for and not carried out by an earlier controller."""
        marked = await self._store.children(znodes.DELETE_TOPICS)
        await self.delete_topics(marked)
        for name in marked:
            await self._store.delete(znodes.delete_topic_path(name))

    async def _change(
        self,
        plans: Mapping[K, Callable[[ClusterView], Plan[T]]],
        validate_only: bool,
    ) -> dict[K, T | KafkaError]:
        return await self._undisturbed(self._commit(plans, validate_only))

    async def _commit(
        self,
        plans: Mapping[K, Callable[[ClusterView], Plan[T]]],
        validate_only: bool,
    ) -> dict[K, T | KafkaError]:
        """Each plan builds on those before it; what can be done is committed together, the rest refused."""
        async with self._changing:
            view = self._view
            ops: list[Op] = []
            outcome: dict[K, T | KafkaError] = {}
            for key, plan in plans.items():
                try:
                    planned = self._plan_as_controller(plan, view)
                except KafkaError as error:
                    outcome[key] = error
                    continue
                view = planned.view
                ops.extend(planned.ops)
                outcome[key] = planned.outcome
            if ops and not validate_only:
                await self._commit_fenced(ops)
                await self._publish(view)
            return outcome

    def _plan_as_controller(self, plan: Callable[[ClusterView], Plan[T]], view: ClusterView) -> Plan[T]:
        if not self.is_controller:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return plan(view)

    async def _commit_fenced(self, ops: list[Op]) -> None:
        assert self._controller_epoch_version is not None
        fence = Check(znodes.CONTROLLER_EPOCH, self._controller_epoch_version)
        try:
            await self._store.multi([fence, *ops])
        except BadVersion as error:
            if error.op_index == 0:
                self._controller_epoch_version = None
                raise KafkaError(ErrorCode.NOT_CONTROLLER) from error
            raise


async def ensure_tree(store: Store, cluster_id: str) -> None:
    """Creates what is missing; brokers that start together may all try, and each node is made once."""
    contents = dict.fromkeys(znodes.PERSISTENT_PATHS, b"")
    contents[znodes.CLUSTER_ID] = znodes.encode_cluster_id(cluster_id)
    contents[znodes.CONTROLLER_EPOCH] = b"0"
    contents[znodes.FEATURE] = znodes.encode_feature({})
    present = await store.get_many(list(contents))
    missing = [
        Create(path, data)
        for (path, data), node in zip(contents.items(), present, strict=True)
        if node is None
    ]
    if not missing:
        return
    try:
        await store.multi(missing)
    except NodeExists:
        await ensure_tree(store, cluster_id)


async def forget_old_config_changes(store: Store, now_ms: int) -> None:
    """Notifications are for brokers that watch now; Kafka keeps them a quarter of an hour."""
    paths = [f"{znodes.CONFIG_CHANGES}/{name}" for name in await store.children(znodes.CONFIG_CHANGES)]
    nodes = await store.get_many(paths)
    oldest = now_ms - _CONFIG_CHANGE_LIFETIME_MS
    old = [Delete(path) for path, node in zip(paths, nodes, strict=True) if node and node.ctime_ms < oldest]
    if old:
        await store.multi(old)
