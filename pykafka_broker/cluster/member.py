"""A broker in a cluster: registered in the tree, told by the controller who leads what, asking it for changes.

The controller's word alone changes brokers and partitions in the view. Configs are not part of it: they are read
from the tree when a topic is first heard of, and again when a notification says so.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.config_changes import ConfigChanges
from pykafka_broker.cluster.controller import events
from pykafka_broker.cluster.current_view import CurrentView
from pykafka_broker.cluster.member_news import apply_configs, apply_update
from pykafka_broker.cluster.metadata import ensure_tree, forget_old_config_changes
from pykafka_broker.cluster.store import ConnectionLost, NodeExists, SessionState, StoreClosed, StoreError
from pykafka_broker.cluster.topic_wishes import TopicWishes
from pykafka_broker.cluster.view import load_topic_configs, load_view
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

if TYPE_CHECKING:
    import random
    import uuid
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pykafka_broker.clock import Clock
    from pykafka_broker.cluster.controller.channels import Channel
    from pykafka_broker.cluster.controller.loop import Controller
    from pykafka_broker.cluster.store import Op, Store, Unwatch
    from pykafka_broker.cluster.topic_wishes import ConfigChange
    from pykafka_broker.cluster.topics import MorePartitions, NewTopic, TopicRules
    from pykafka_broker.cluster.view import ClusterView, TopicInfo
    from pykafka_broker.cluster.znodes import BrokerRegistration
    from pykafka_broker.protocol.messages.update_metadata import UpdateMetadataRequest

logger = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 0.1
_NEEDED_TOPIC_TIMEOUT_MS: Final = 5_000
_CREATE_TOPICS_NEWEST: Final = 7
_RESERVED_IDS: Final = 1000
"""reserved.broker.max.id"""


class WrongCluster(StoreError):
    """The log directories belong to another cluster than the tree."""


class Member(CurrentView):
    """This broker's place in the cluster. Owner of its registration and of the view; lives on the event loop."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rules: TopicRules,
        rng: random.Random,
        controller: Controller,
        way_to_controller: Callable[[ClusterView], Channel | None],
        view: ClusterView,
    ) -> None:
        super().__init__(view)
        self._store = store
        self._clock = clock
        self._wishes = TopicWishes(rules, rng)
        self._controller = controller
        self._way_to_controller = way_to_controller
        self._config_changes = ConfigChanges(store)
        self._registration: BrokerRegistration | None = None
        self._epoch = -1
        self._session = 0
        self._controller_epoch = view.controller_epoch
        self._unwatch: list[Unwatch] = []
        self._reports: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(
        cls,
        store: Store,
        clock: Clock,
        rules: TopicRules,
        rng: random.Random,
        controller: Controller,
        way_to_controller: Callable[[ClusterView], Channel | None],
        cluster_id: str | None,
    ) -> Member:
        """Reads the tree, or sets it up. Not part of the cluster yet: see `join`."""
        await ensure_tree(store, cluster_id or znodes.uuid_to_text(znodes.random_uuid()))
        member = cls(store, clock, rules, rng, controller, way_to_controller, await load_view(store))
        found = member.view.cluster_id
        if cluster_id not in (None, found):
            raise WrongCluster(
                znodes.CLUSTER_ID, f"is {found}, but the log directories are of cluster {cluster_id}"
            )
        return member

    @property
    def epoch(self) -> int:
        """The epoch of this broker's registration, which fences requests meant for an earlier one."""
        return self._epoch

    # Belonging

    async def join(self, registration: BrokerRegistration, patience_ms: int) -> None:
        """Registers, and again whenever the session is lost. NodeExists if another broker has the id for so long."""
        self._registration = registration
        await self._undisturbed(self._enrol(self._clock.monotonic() + patience_ms / 1000))
        self._unwatch.append(self._store.on_session(self._session_changed))
        self._unwatch.append(await self._store.watch_children(znodes.CONFIG_CHANGES, self._configs_changed))
        self._configs_changed(znodes.CONFIG_CHANGES)

    async def known_to_the_controller(self, timeout_ms: int) -> bool:
        """Whether the controller has told this broker that it is part of the cluster."""
        assert self._registration is not None
        own = self._registration.broker_id
        return await self._until(lambda view: own in view.brokers, timeout_ms)

    def leave(self) -> None:
        """Watches nothing any more and has nothing more to say; the registration goes with the session."""
        for report in self._reports:
            report.cancel()
        for unwatch in self._unwatch:
            unwatch()
        self._unwatch.clear()

    async def _enrol(self, deadline: float) -> None:
        """One node for each session. A broker killed a moment ago may still be there: its session has to end."""
        assert self._registration is not None
        path = znodes.broker_id_path(self._registration.broker_id)
        while True:
            stamped = replace(self._registration, timestamp_ms=self._clock.wall_ms())
            try:
                await self._store.create(path, stamped.encode(), ephemeral=True)
            except (NodeExists, ConnectionLost) as error:
                logger.info("not registered yet: %s", error)
            node = (await self._store.get_many([path]))[0]
            if node is not None and node.ephemeral_owner == self._store.session_id:
                self._epoch, self._session = node.czxid, node.ephemeral_owner
                break
            if self._clock.monotonic() > deadline:
                raise NodeExists(path, "another broker is registered under this id")
            await asyncio.sleep(_PAUSE_SECONDS)
        logger.info("registered as broker %d in epoch %d", self._registration.broker_id, self._epoch)
        await self._forget_deleted_topics()

    async def _forget_deleted_topics(self) -> None:
        """Topics that went while nobody told this broker. From now on it is told."""
        async with self._changing:
            there = set(await self._store.children(znodes.TOPICS))
            gone = [name for name in self.view.topics if name not in there]
            if gone:
                await self._publish(self.view.with_topics(removed=gone))

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED and self._store.session_id != self._session:
            self._in_background(self._enrol(float("inf")))

    def _in_background(self, work: Any) -> asyncio.Task[None]:
        async def run() -> None:
            try:
                await work
            except StoreClosed:
                return
            except StoreError as error:
                logger.warning("the tree could not be followed: %s", error)

        task = asyncio.get_running_loop().create_task(run())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def lost_logs(self) -> None:
        """Tells the controller that a disk failed: it will ask what is left, and find other leaders."""
        report = self._in_background(self._report_lost_logs())
        self._reports.add(report)
        report.add_done_callback(self._reports.discard)

    async def _report_lost_logs(self) -> None:
        """Until it is in the tree: a lost log is told of once. That it may then be there twice does no harm."""
        assert self._registration is not None
        event = znodes.encode_log_dir_event(self._registration.broker_id)
        while True:
            try:
                await self._store.create(znodes.LOG_DIR_EVENT_PREFIX, event, sequence=True)
            except ConnectionLost as error:
                logger.info("a failed disk could not be told of yet: %s", error)
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return

    # Listening

    def heed(self, controller_epoch: int, broker_epoch: int) -> None:
        """KafkaError unless this is the newest controller, speaking to this registration of this broker."""
        if broker_epoch not in (-1, self._epoch) and broker_epoch < self._epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        if controller_epoch < self._controller_epoch:
            raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH)
        self._controller_epoch = controller_epoch

    async def learn(self, request: UpdateMetadataRequest) -> None:
        """The controller's news of brokers and partitions."""
        await self._undisturbed(self._learn(request))

    async def _learn(self, request: UpdateMetadataRequest) -> None:
        async with self._changing:
            self.heed(request.controller_epoch, request.broker_epoch)
            topics = self.view.topics
            new = [
                state.topic_name
                for state in request.topic_states
                if state.topic_name not in topics or topics[state.topic_name].topic_id != state.topic_id
            ]
            configs = dict(zip(new, await self.configs_of(new), strict=True))
            await self._publish(apply_update(self.view, request, configs))

    async def configs_of(self, topics: Sequence[str]) -> list[Mapping[str, str]]:
        """The overrides of topics as the tree has them now."""
        return await load_topic_configs(self._store, topics)

    def _configs_changed(self, _: str) -> None:
        self._in_background(self._follow_configs())

    async def _follow_configs(self) -> None:
        async with self._changing:
            changes = await self._config_changes.read()
            if changes:
                await self._publish(apply_configs(self.view, changes))

    # Asking

    def controller_channel(self) -> Channel | None:
        """The way to whoever is the controller now, None while that is not known."""
        return self._way_to_controller(self.view)

    async def create_topics(
        self, wishes: Sequence[NewTopic], validate_only: bool = False, timeout_ms: int = 30_000
    ) -> dict[str, TopicInfo | KafkaError]:
        asked = events.ChangeTopics(self._wishes.create(wishes), validate_only)
        outcome = await self._ask(asked, [wish.name for wish in wishes])
        return outcome if validate_only else await self._once_shown(outcome, timeout_ms)

    async def ensure_topics(self, wishes: Sequence[NewTopic]) -> dict[str, TopicInfo | KafkaError]:
        """Topics that are made because they are needed, whoever is the controller."""
        if self._controller.is_active:
            return await self.create_topics(wishes, timeout_ms=_NEEDED_TOPIC_TIMEOUT_MS)
        channel = self.controller_channel()
        nobody = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "There is no controller to create the topic now.")
        if channel is None:
            return {wish.name: nobody for wish in wishes}
        request = CreateTopicsRequest(
            topics=[_on_the_wire(wish) for wish in wishes], timeout_ms=_NEEDED_TOPIC_TIMEOUT_MS
        )
        try:
            answer = await channel.call(request, newest=_CREATE_TOPICS_NEWEST)
        except (OSError, KafkaError) as error:
            logger.info("the controller cannot be asked to create topics: %s", error)
            return {wish.name: nobody for wish in wishes}
        outcome: dict[str, Any] = {
            each.name: _outcome(each.error_code, each.error_message) for each in answer.topics
        }
        return await self._once_shown(outcome, _NEEDED_TOPIC_TIMEOUT_MS)

    async def create_partitions(
        self, wishes: Sequence[MorePartitions], validate_only: bool = False, timeout_ms: int = 30_000
    ) -> dict[str, TopicInfo | KafkaError]:
        asked = events.ChangeTopics(self._wishes.grow(wishes), validate_only)
        outcome = await self._ask(asked, [wish.topic for wish in wishes])
        return outcome if validate_only else await self._once_shown(outcome, timeout_ms)

    async def delete_topics(
        self, targets: Sequence[str | uuid.UUID], timeout_ms: int = 30_000
    ) -> dict[str | uuid.UUID, TopicInfo | KafkaError]:
        """By name or id; the answer for a deleted topic is what it was."""
        outcome = await self._ask(events.DeleteTopics(targets), targets)
        ids = {topic.topic_id for topic in outcome.values() if not isinstance(topic, KafkaError)}
        await self._until(lambda view: ids.isdisjoint(view.topics_by_id), timeout_ms)
        left = self.view.topics_by_id
        return {
            target: result
            if isinstance(result, KafkaError) or result.topic_id not in left
            else KafkaError(ErrorCode.REQUEST_TIMED_OUT)
            for target, result in outcome.items()
        }

    async def alter_topic_configs(
        self, changes: Mapping[str, ConfigChange], validate_only: bool = False
    ) -> dict[str, TopicInfo | KafkaError]:
        return await self._undisturbed(self._reconfigure(self._wishes.configure(changes), validate_only))

    async def alter_broker_configs(
        self, changes: Mapping[int | None, ConfigChange], validate_only: bool = False
    ) -> dict[int | None, Mapping[str, str] | KafkaError]:
        plans = self._wishes.configure_brokers(changes)
        return await self._undisturbed(self._reconfigure(plans, validate_only))

    async def _reconfigure(
        self, plans: Mapping[Any, Callable[[ClusterView], Any]], validate_only: bool
    ) -> Any:
        """Any broker may write configs into the tree; the notification tells all the others, the controller too."""
        async with self._changing:
            view, outcome = self.view, dict[Any, Any]()
            ops: list[Op] = []
            for key, plan in plans.items():
                try:
                    planned = plan(view)
                except KafkaError as error:
                    outcome[key] = error
                else:
                    view, outcome[key] = planned.view, planned.outcome
                    ops.extend(planned.ops)
            if ops and not validate_only:
                await self._store.multi(ops)
                await self._publish(view)
        if not validate_only:
            self._in_background(forget_old_config_changes(self._store, self._clock.wall_ms()))
        return outcome

    async def _ask(self, event: events.Event, keys: Iterable[Any]) -> dict[Any, Any]:
        try:
            outcome: dict[Any, Any] = await self._controller.submit(event)
        except KafkaError as error:
            return dict.fromkeys(keys, error)
        return outcome

    async def _once_shown(
        self, outcome: dict[str, Any], timeout_ms: int
    ) -> dict[str, TopicInfo | KafkaError]:
        """The outcome when this broker can tell clients about it: all partitions with their leaders."""
        made = {name: topic for name, topic in outcome.items() if not isinstance(topic, KafkaError)}
        await self._until(
            lambda view: all(_is_shown(view, n, topic) for n, topic in made.items()), timeout_ms
        )
        view = self.view
        late = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        return {
            name: result
            if isinstance(result, KafkaError)
            else (view.topics[name] if _is_shown(view, name, result) else late)
            for name, result in outcome.items()
        }

    async def _until(self, holds: Callable[[ClusterView], bool], timeout_ms: int) -> bool:
        if holds(self.view):
            return True
        shown = asyncio.get_running_loop().create_future()

        def look(_: ClusterView, view: ClusterView) -> None:
            if not shown.done() and holds(view):
                shown.set_result(None)

        stop = self.on_change(look)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await shown
        except TimeoutError:
            return False
        finally:
            stop()
        return True


async def next_broker_id(store: Store) -> int:
    """A number for a broker that was not given one, as Kafka counts them: the node's version never comes twice."""
    return _RESERVED_IDS + await store.set(znodes.BROKER_SEQUENCE, b"")


def _is_shown(view: ClusterView, name: str, made: TopicInfo | None) -> bool:
    """`made` is what the controller made, None where it is not known how many partitions that are."""
    topic = view.topics.get(name)
    if topic is None or (made is not None and len(topic.partitions) < len(made.partitions)):
        return False
    return all(partition.leader >= 0 for partition in topic.partitions)


def _outcome(code: int, text: str | None) -> KafkaError | None:
    if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        return None
    if code == ErrorCode.NOT_CONTROLLER:
        return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, text)
    return KafkaError(next((c for c in ErrorCode if c == code), ErrorCode.UNKNOWN_SERVER_ERROR), text)


def _on_the_wire(wish: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=wish.name,
        num_partitions=wish.num_partitions,
        replication_factor=wish.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
            for index, ids in wish.assignments
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in wish.config.items()],
    )
