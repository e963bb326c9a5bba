"""Fields of generated requests that make sense only together, and what Kafka is spared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from compat_tests.differential.batches import SHAPELESS
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequestGroup

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

NO_ID = UUID(int=0)
KIND_TOPIC = 2
GROUPS_SINCE = 8
NO_SESSION = -1
DOTTED, UNDERSCORED = "t.4", "t_4"
OPERATIONS = range(4)
CONFIGS = {
    "retention.ms": ["100000000", "-1", "-2", "abc", None, "", " 100000000 "],
    "max.message.bytes": ["1000000", "2000", "-1", "abc", "1.5"],
    "cleanup.policy": ["compact", "delete", "compact,delete", "nonsense", "", None],
    "compression.type": ["gzip", "producer", "zip"],
    "min.insync.replicas": ["1", "0"],
    "segment.bytes": ["1048576000", "5"],
    "message.timestamp.type": ["CreateTime", "logappendtime"],
    "bogus": ["1", None],
    "": ["1"],
}


def agree(made: Any, random: Random, topic_name: Callable[[str], str]) -> None:
    """Give fields values that fit those of others, most of the time."""
    match type(made).__name__:
        case "AlterConfigsResource" | "DescribeConfigsResource" if made.resource_type != KIND_TOPIC:
            made.resource_name = random.choice(["1", "1", "", "2", "x"])
        case "AlterableConfig" | "CreatableTopicConfig" | "ReplacedConfig":
            made.name = random.choice(list(CONFIGS))
            made.value = random.choice(CONFIGS[made.name])
        case "CreatableTopic":
            if random.random() < 0.8:
                made.assignments = []
            if random.random() < 0.6:
                made.configs = []
        case "DeleteTopicState" if random.random() < 0.9:
            if random.random() < 0.5:
                made.name = None
            else:
                made.topic_id = NO_ID
        case "MetadataRequestTopic" as kind if random.random() < 0.9:
            if made.topic_id != NO_ID and random.random() < 0.4:
                made.name = None
            else:
                made.topic_id = NO_ID
                made.name = made.name or topic_name(kind)


def spare(made: Any, version: int) -> None:
    """Leave out what is more than Kafka can bear: each has its line in `expected.NOT_TRIED`."""
    match type(made).__name__:
        case "FetchRequest":
            made.isolation_level = max(0, min(made.isolation_level, 1))
            made.replica_id = -1
            if made.session_epoch != NO_SESSION:
                made.topics = [topic for topic in made.topics if topic.topic or topic.topic_id != NO_ID]
        case "FetchTopic" if made.topic_id == NO_ID and not made.topic:
            made.partitions = made.partitions[:1]
        case "OffsetFetchRequest" if version >= GROUPS_SINCE and not made.groups:
            made.groups = [OffsetFetchRequestGroup(group_id="nobody", topics=[])]
        case "OffsetFetchRequestGroup" if made.member_id is None:
            made.member_epoch = -1
        case "DescribeTopicPartitionsRequest":
            made.topics = [topic for topic in made.topics if topic.name]
        case "AlterConfigsResource":
            unknown = [
                each for each in made.configs if getattr(each, "config_operation", 0) not in OPERATIONS
            ]
            made.configs = unknown[:1] or made.configs
        case "CreateTopicsRequest" | "MetadataRequest" if made.topics:
            names = [topic.name or "" for topic in made.topics]
            if any(name.endswith(DOTTED) for name in names):
                made.topics = [topic for topic in made.topics if not (topic.name or "").endswith(UNDERSCORED)]
        case "DeleteTopicsRequest" if version == 0:
            made.topic_names = list(dict.fromkeys(made.topic_names))
        case "ProduceRequest":
            _alone_if_broken(made)


def _alone_if_broken(request: Any) -> None:
    """A batch that cannot be taken apart fails all of its request in Kafka: it is sent alone."""
    for topic in request.topic_data or ():
        for data in topic.partition_data or ():
            if data.records.fault in SHAPELESS or data.records.times > 1:
                topic.partition_data = [data]
                request.topic_data = [topic]
                return
