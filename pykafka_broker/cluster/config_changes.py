"""Configs that change in the tree, told by notifications that everybody in the cluster reads."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from pykafka_broker.cluster import znodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafka_broker.cluster.store import Node, Store


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """Overrides of a topic, or dynamic configs of a broker (None for the cluster-wide default)."""

    topic: str | None
    broker: int | None
    config: Mapping[str, str]


class ConfigChanges:
    """Which notifications have been read. Owner: whoever follows the configs, be it the controller or a broker."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: set[str] = set()

    async def skip(self) -> None:
        """Those that are there now tell nothing new: the configs themselves are read after this."""
        self._seen = set(await self._store.children(znodes.CONFIG_CHANGES))

    async def read(self) -> list[ConfigChanged]:
        """The configs that new notifications are about, as they are now."""
        names = set(await self._store.children(znodes.CONFIG_CHANGES))
        new = sorted(names - self._seen)
        nodes = await self._store.get_many([f"{znodes.CONFIG_CHANGES}/{name}" for name in new])
        named = dict.fromkeys(znodes.decode_config_change(node.data) for node in nodes if node and node.data)
        entities = [entity for entity in named if entity.partition("/")[0] in ("topics", "brokers")]
        configs = await self._store.get_many([f"/config/{entity}" for entity in entities])
        self._seen = names
        return [_change(entity, node) for entity, node in zip(entities, configs, strict=True)]


def _change(entity: str, node: Node | None) -> ConfigChanged:
    kind, _, name = entity.partition("/")
    config = MappingProxyType(znodes.decode_config(node.data) if node and node.data else {})
    topic = name if kind == "topics" else None
    broker = int(name) if kind == "brokers" and name != znodes.DEFAULT_ENTITY else None
    return ConfigChanged(topic, broker, config)
