"""What clients wish for topics and configs, as plans: each is carried out on the view the one before it left."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from pykafka_broker.cluster import topics, znodes
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from pykafka_broker.cluster.topics import MorePartitions, NewTopic, Plan, TopicRules
    from pykafka_broker.cluster.view import ClusterView, TopicInfo

ConfigChange: TypeAlias = "Callable[[Mapping[str, str]], Mapping[str, str]]"
"""From the overrides set now to those that shall be set; may raise KafkaError."""

TopicPlans: TypeAlias = "Mapping[str, Callable[[ClusterView], Plan[TopicInfo]]]"


class TopicWishes:
    """Makes plans under the rules of a broker; `rng` decides where replicas begin."""

    def __init__(self, rules: TopicRules, rng: random.Random) -> None:
        self._rules = rules
        self._rng = rng

    def create(self, wishes: Sequence[NewTopic]) -> TopicPlans:
        if sum(map(self._partitions, wishes)) > topics.MAX_PARTITIONS_PER_REQUEST:
            return dict.fromkeys((wish.name for wish in wishes), topics.refuse_so_many)
        plans = {wish.name: partial(self._create, wish) for wish in wishes}
        return {**plans, **_repeated([w.name for w in wishes], "Found multiple entries for this topic.")}

    def grow(self, wishes: Sequence[MorePartitions]) -> TopicPlans:
        plans = {wish.topic: partial(_grow, wish) for wish in wishes}
        return {**plans, **_repeated([wish.topic for wish in wishes], "Duplicate topic in request.")}

    def configure(self, changes: Mapping[str, ConfigChange]) -> TopicPlans:
        return {
            name: partial(topics.plan_topic_config, name=name, change=change, rules=self._rules)
            for name, change in changes.items()
        }

    def configure_brokers(
        self, changes: Mapping[int | None, ConfigChange]
    ) -> Mapping[int | None, Callable[[ClusterView], Plan[Mapping[str, str]]]]:
        """By broker id, None being the cluster-wide default; the change itself refuses what is not valid."""
        return {
            broker_id: partial(topics.plan_broker_config, broker_id=broker_id, change=change)
            for broker_id, change in changes.items()
        }

    def _partitions(self, wish: NewTopic) -> int:
        if wish.assignments:
            return len(wish.assignments)
        return self._rules.num_partitions if wish.num_partitions == -1 else wish.num_partitions

    def _create(self, wish: NewTopic, view: ClusterView) -> Plan[TopicInfo]:
        topic_id = wish.topic_id or znodes.random_uuid()
        while wish.topic_id is None and topic_id in view.topics_by_id:
            topic_id = znodes.random_uuid()
        return topics.plan_create_topic(view, wish, self._rules, self._rng, topic_id)


def _grow(wish: MorePartitions, view: ClusterView) -> Plan[TopicInfo]:
    return topics.plan_create_partitions(view, wish)


def _repeated(names: Sequence[str], message: str) -> dict[str, Callable[[Any], NoReturn]]:
    def refuse(_: ClusterView) -> NoReturn:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)

    return {name: refuse for name, times in Counter(names).items() if times > 1}
