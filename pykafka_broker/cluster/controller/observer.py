"""The tree as the controller sees it: watched first and read then, told as events."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.config_changes import ConfigChanges
from pykafka_broker.cluster.controller import events
from pykafka_broker.cluster.view import load_brokers, load_topics, load_view

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from pykafka_broker.cluster.controller.requests import TopicPartition
    from pykafka_broker.cluster.controller.state import ControllerState
    from pykafka_broker.cluster.store import Node, Store, Unwatch

logger = logging.getLogger(__name__)

_CHILDREN = (
    znodes.BROKER_IDS,
    znodes.TOPICS,
    znodes.DELETE_TOPICS,
    znodes.ISR_CHANGES,
    znodes.LOG_DIR_EVENTS,
    znodes.CONFIG_CHANGES,
)
_DATA = (znodes.REASSIGN_PARTITIONS, znodes.PREFERRED_REPLICA_ELECTION)


class TreeObserver:
    """Owner of the controller's watches, from taking office to leaving it.

    Calls `changed` with the path of what may have changed; several changes may be told as one. What changed,
    `read` finds out when its turn comes. Watches of what is not there any more stay until `close`: they are
    needed again if it comes back.
    """

    def __init__(self, store: Store, changed: Callable[[str], None]) -> None:
        self._store = store
        self._changed = changed
        self._watched: dict[str, Unwatch] = {}
        self._config_changes = ConfigChanges(store)
        self._readers: dict[str, Callable[[ControllerState], Awaitable[list[events.Event]]]] = {
            znodes.BROKER_IDS: self._brokers,
            znodes.TOPICS: self._topics,
            znodes.DELETE_TOPICS: self._deletions,
            znodes.ISR_CHANGES: self._isr_changes,
            znodes.LOG_DIR_EVENTS: self._log_dir_events,
            znodes.CONFIG_CHANGES: self._changed_configs,
            znodes.REASSIGN_PARTITIONS: self._reassignments,
            znodes.PREFERRED_REPLICA_ELECTION: self._preferred_elections,
        }

    async def everything(self) -> events.TookOver:
        """The whole tree; what changes in it from now on is told."""
        for path in _CHILDREN:
            await self._watch(self._store.watch_children, [path])
        await self._watch(self._store.watch_data, _DATA)
        store = self._store
        brokers, topics, _ = await asyncio.gather(
            store.children(znodes.BROKER_IDS), store.children(znodes.TOPICS), self._config_changes.skip()
        )
        paths = [*(f"{znodes.BROKER_IDS}/{name}" for name in brokers), *map(znodes.topic_path, topics)]
        await self._watch(store.watch_data, paths)
        reassign, preferred = await store.get_many(_DATA)
        notifications = [
            f"{parent}/{name}"
            for parent in (znodes.ISR_CHANGES, znodes.LOG_DIR_EVENTS)
            for name in await store.children(parent)
        ]
        return events.TookOver(
            await load_view(store),
            await store.children(znodes.DELETE_TOPICS),
            _reassignments_in(reassign),
            None if preferred is None else _partitions_in(preferred),
            notifications,
        )

    async def read(self, path: str, state: ControllerState) -> list[events.Event]:
        """What is different from the state at or below a path that was told."""
        parent, _, name = path.rpartition("/")
        if parent == znodes.TOPICS:
            return await self._topic(name, state)
        return await self._readers[znodes.BROKER_IDS if parent == znodes.BROKER_IDS else path](state)

    def forget_topics(self, names: Iterable[str]) -> None:
        for name in names:
            if unwatch := self._watched.pop(znodes.topic_path(name), None):
                unwatch()

    def close(self) -> None:
        for unwatch in self._watched.values():
            unwatch()
        self._watched.clear()

    async def _watch(
        self, watch: Callable[[str, Callable[[str], None]], Awaitable[Unwatch]], paths: Sequence[str]
    ) -> None:
        new = [path for path in paths if path not in self._watched]
        self._watched |= zip(
            new, await asyncio.gather(*(watch(path, self._changed) for path in new)), strict=True
        )

    async def _brokers(self, state: ControllerState) -> list[events.Event]:
        ids = await self._store.children(znodes.BROKER_IDS)
        await self._watch(self._store.watch_data, [f"{znodes.BROKER_IDS}/{name}" for name in ids])
        brokers = await load_brokers(self._store)
        return [] if brokers == state.view.brokers else [events.BrokersChanged(brokers)]

    async def _topics(self, state: ControllerState) -> list[events.Event]:
        names, known = set(await self._store.children(znodes.TOPICS)), state.view.topics.keys()
        return await self._new_topics(sorted(names - known), sorted(known - names))

    async def _topic(self, name: str, state: ControllerState) -> list[events.Event]:
        known = state.view.topics.get(name)
        if known is None:
            return []
        found = await load_topics(self._store, [name])
        if not found:
            return await self._new_topics([], [name])
        if found[0].topic_id != known.topic_id:
            return await self._new_topics([name], [name])
        return [events.TopicChanged(found[0])] if found[0].version != known.version else []

    async def _new_topics(self, created: Sequence[str], vanished: Sequence[str]) -> list[events.Event]:
        if not created and not vanished:
            return []
        await self._watch(self._store.watch_data, list(map(znodes.topic_path, created)))
        news: list[events.Event] = [
            events.TopicsChanged(await load_topics(self._store, created), vanished)
        ]  # fmt: skip
        # It may have been marked for deletion before it was known.
        if marked := set(created) & set(await self._store.children(znodes.DELETE_TOPICS)):
            news.append(events.DeletionsAsked(sorted(marked)))
        return news

    async def _deletions(self, state: ControllerState) -> list[events.Event]:
        marked = await self._store.children(znodes.DELETE_TOPICS)
        if all(name in state.deletions for name in marked):
            return []
        # A topic that is marked may be newer than what is known of topics.
        return [*await self._topics(state), events.DeletionsAsked(marked)]

    async def _isr_changes(self, _: ControllerState) -> list[events.Event]:
        paths, nodes = await self._children_and_nodes(znodes.ISR_CHANGES)
        named = {tp for node in nodes for tp in _partitions_in(node)}
        topics = {t.name: t for t in await load_topics(self._store, sorted({topic for topic, _ in named}))}
        found = {
            (topic, n): topics[topic].partitions[n]
            for topic, n in named
            if topic in topics and n < len(topics[topic].partitions)
        }
        return [events.IsrNotified(paths, found)] if paths else []

    async def _log_dir_events(self, _: ControllerState) -> list[events.Event]:
        paths, nodes = await self._children_and_nodes(znodes.LOG_DIR_EVENTS)
        brokers = [znodes.decode_log_dir_event(node.data) for node in nodes]
        return [events.LogDirsFailed(paths, brokers)] if paths else []

    async def _changed_configs(self, _: ControllerState) -> list[events.Event]:
        return [*await self._config_changes.read()]

    async def _reassignments(self, state: ControllerState) -> list[events.Event]:
        found = _reassignments_in((await self._store.get_many([znodes.REASSIGN_PARTITIONS]))[0])
        return [] if found == state.tree_reassignments else [events.ReassignmentsAsked(found)]

    async def _preferred_elections(self, _: ControllerState) -> list[events.Event]:
        node = (await self._store.get_many([znodes.PREFERRED_REPLICA_ELECTION]))[0]
        return [] if node is None else [events.PreferredElectionsAsked(_partitions_in(node))]

    async def _children_and_nodes(self, parent: str) -> tuple[list[str], list[Node]]:
        paths = [f"{parent}/{name}" for name in await self._store.children(parent)]
        return paths, [node for node in await self._store.get_many(paths) if node is not None]


def _reassignments_in(node: Node | None) -> dict[TopicPartition, tuple[int, ...]]:
    """Written by people and old tools: what cannot be read is as good as not there, as in Kafka."""
    if node is None:
        return {}
    try:
        return znodes.decode_reassignments(node.data)
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        logger.warning("%s is ignored, it cannot be read: %r", znodes.REASSIGN_PARTITIONS, error)
        return {}


def _partitions_in(node: Node) -> list[TopicPartition]:
    try:
        return znodes.decode_partitions(node.data)
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        logger.warning("a list of partitions in the tree cannot be read: %r", error)
        return []
