"""Log directories that come from another broker, be it Apache Kafka's, are served as they are."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pykafka_broker.cluster.topics import NewTopic
from pykafka_broker.coordinator.group_coordinator import OFFSETS_TOPIC
from pykafka_broker.log.log_dir import partition_directory
from pykafka_broker.log.recovery import open_epochs
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.replication.internal_topics import offsets_topic_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafka_broker.cluster.metadata import Metadata
    from pykafka_broker.cluster.store import Store
    from pykafka_broker.config import BrokerConfig
    from pykafka_broker.log.log_dir import LogDir

log = logging.getLogger(__name__)

ADOPTED: Final = "/pykafka_adopted"
"""A node beside Kafka's own that says that the directories have been looked through."""


async def adopt(
    store: Store, metadata: Metadata, broker_id: int, dirs: Sequence[LogDir], config: BrokerConfig
) -> None:
    """Makes topics of the partitions found on disk, under their old ids and above their old epochs. Done once, and
    again if it was cut short: later, what the tree does not know was deleted."""
    if await store.exists(ADOPTED):
        return
    found = _topics_on_disk(broker_id, dirs, config)
    unknown = [topic for name, topic in found.items() if name not in metadata.view.topics]
    for name, outcome in (await metadata.create_topics(unknown)).items():
        if isinstance(outcome, KafkaError):
            log.warning("topic %s lies on disk but cannot be served: %s", name, outcome.text)
        else:
            log.info("adopted topic %s with %d partitions", name, len(outcome.partitions))
    await store.create(ADOPTED)


def _topics_on_disk(broker_id: int, dirs: Sequence[LogDir], config: BrokerConfig) -> dict[str, NewTopic]:
    found: dict[str, NewTopic] = {}
    for where in dirs:
        for topic, index in where.partitions():
            directory = partition_directory(where.path, topic, index)
            settings = offsets_topic_config(config) if topic == OFFSETS_TOPIC else {}
            known = found.get(topic, NewTopic(topic, config=settings))
            found[topic] = replace(
                known,
                assignments=[(i, [broker_id]) for i in range(max(index + 1, len(known.assignments)))],
                topic_id=known.topic_id or where.read_topic_id(directory),
                leader_epoch=max(known.leader_epoch, open_epochs(directory).latest + 1),
            )
    return found
