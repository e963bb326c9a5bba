"""What generated requests are made of: for each field, values that work, and values that are odd in some way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from compat_tests.differential.agreement import agree, spare
from compat_tests.differential.batches import any_batches
from compat_tests.differential.symbols import OF_ZOOKEEPER, placeholder
from pykafka_broker.protocol.types import Array, Field, Scalar, WireType, boolean, spec_of, string, uuid

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1
NOBODY = UUID(int=0xABCDEF)
SUBSCRIPTION = b"\0\0\0\0\0\1\0\2t0\0\0\0\0"
_PLACES = [0] * 8 + [1, 1, 2, 2, 3, 99, -1, MAX_INT32]
_EPOCHS = [-1] * 6 + [0, 0, 1, 5, -2]
_SIZES = [1 << 20] * 6 + [0, 1, 100, 300, MAX_INT32]

NUMBERS: dict[str, list[int]] = {
    "partition": _PLACES,
    "partition_index": _PLACES,
    "partition_indexes": _PLACES,
    "partitions": _PLACES,
    "index": _PLACES,
    "num_partitions": [1, 1, 2, 3, -1, 0, -2],
    "replication_factor": [1, 1, 1, 1, -1, 0, -2, 2, 32767],
    "broker_ids": [1, 1, 1, 1, 0, 2, -1],
    "replicas": [1, 1, 1, 1, 0, 2, -1],
    "election_type": [0, 0, 0, 1, 2],
    "count": [1, 2, 3, 4, 5, 6, 0, -1],
    "timeout_ms": [30_000],
    "offset": [0, 1, 2, 3, -1, -2, 100, MAX_INT64],
    "fetch_offset": [0, 0, 0, 1, 2, 3, 5, 100, -1, 2**62],
    "committed_offset": [0, 5, 5, 100, -1, MAX_INT64, -5],
    "current_leader_epoch": _EPOCHS,
    "leader_epoch": [0, 0, 0, -1, 1, 5, -2],
    "last_fetched_epoch": _EPOCHS,
    "committed_leader_epoch": [-1, 0, 0, 3, -5],
    "log_start_offset": [-1, -1, 0, 5],
    "commit_timestamp": [-1],
    "retention_time_ms": [-1, -1, 86_400_000],
    "max_num_offsets": [1, 1, 2, 10, 0, -1],
    "isolation_level": [0, 0, 0, 1, 1, 2, -1],
    "acks": [-1] * 6 + [1, 1, 0, 2, -2],
    "replica_id": [-1] * 12 + [-2, 7],
    "session_epoch": [-1, -1, -1, 0, 0, 0, 1, 1, 2, 3, -2, MAX_INT32],
    "max_wait_ms": [0, 0, 0, 10, -1],
    "min_bytes": [0, 1, 1, 1, 1000, -1],
    "max_bytes": _SIZES,
    "partition_max_bytes": _SIZES,
    "generation_id": [1, 1, 1, 2, 2, 0, 3, -1, -2, 99],
    "generation_id_or_member_epoch": [-1, -1, -1, 1, 1, 2, 0, -2, 99],
    "member_epoch": [0, 0, 0, 1, 1, 2, 2, 3, -1, -2, -3, 9],
    "session_timeout_ms": [10_000] * 8 + [30_000, 6_000, 1, 2_000_000, -1],
    "rebalance_timeout_ms": [1000],
    "transaction_timeout_ms": [60_000, 60_000, 0, -1, MAX_INT32],
    "producer_epoch": [-1, -1, -1, 0, 0, 1],
    "key_type": [0] * 8 + [2, 3, -1],
    "endpoint_type": [1] * 6 + [3, 0],
    "resource_type": [2] * 12 + [0, 3, 99],
    "config_operation": [0, 0, 0, 0, 1, 1, 2, 3, 4, -1],
    "response_partition_limit": [2000, 2000, 1, 2, 0, -1],
    "node_id": [-1, 1, 1, 5],
}
TEXTS: dict[str, list[str | None]] = {
    "group_instance_id": [None] * 6 + ["i0", "i0", "i1", ""],
    "instance_id": [None] * 6 + ["i0", "i1", ""],
    "protocol_type": ["consumer"] * 8 + ["connect", "", None],
    "protocol_name": [None, "range", "range", "other"],
    "reason": [None, "why not"],
    "rack_id": ["", None, "r1"],
    "client_software_name": ["differ", "differ", "", "-x", "a b", "a.b-1"],
    "client_software_version": ["1", "1.0-x", "", "1 0"],
    "committed_metadata": ["", None, "note"],
    "states_filter": ["Stable", "Empty", "stable", "PreparingRebalance", "Dead", "Bogus"],
    "types_filter": ["classic", "consumer", "Classic", "bogus", "share"],
    "server_assignor": [None] * 6 + ["uniform", "range", "bogus", ""],
    "subscribed_topic_regex": [None] * 12 + ["[", "("],
    "transactional_id": [None],
    "cluster_id": [None],
    "configuration_keys": ["retention.ms", "max.message.bytes", "cleanup.policy", "bogus", ""],
}
STRANGE_NAMES = ["", ".", "..", "a b", "sl/ash", "ü"]
_TOPIC_NAMES = {
    ("CreatableTopic", "name"),
    ("CreatePartitionsTopic", "name"),
    ("DeleteTopicState", "name"),
    ("DeleteTopicsRequest", "topic_names"),
    ("DeleteRecordsTopic", "name"),
    ("ListOffsetsTopic", "name"),
    ("OffsetForLeaderTopic", "topic"),
    ("FetchTopic", "topic"),
    ("ForgottenTopic", "topic"),
    ("TopicProduceData", "name"),
    ("MetadataRequestTopic", "name"),
    ("OffsetCommitRequestTopic", "name"),
    ("OffsetFetchRequestTopic", "name"),
    ("OffsetFetchRequestTopics", "name"),
    ("OffsetDeleteRequestTopic", "name"),
    ("ConsumerGroupHeartbeatRequest", "subscribed_topic_names"),
    ("TopicRequest", "name"),
    ("Cursor", "topic_name"),
    ("DescribableLogDirTopic", "topic"),
    ("DescribeProducersTopic", "name"),
    ("TopicPartitions", "topic"),
    ("ReassignableTopic", "name"),
    ("ListPartitionReassignmentsTopics", "name"),
}
_GROUP_NAMES = {"group_id", "groups", "groups_names", "group_ids", "key", "coordinator_keys"}
_FEW = [1] * 8 + [2, 2, 0, 3]


_NAMELESS = (None, UUID(int=0))
_NAMING = ("name", "resource_name", "topic", "topic_id", "group_id", "partition_index", "partition", "index")
_REPEATABLE = {
    "CreatableTopic",
    "CreatePartitionsTopic",
    "DeleteTopicState",
    "AlterableConfig",
    "MetadataRequestTopic",
}
"""Said twice, these are an error of their own."""


def _may_repeat(field: Field) -> bool:
    element = field.type.element if isinstance(field.type, Array) else None
    return isinstance(element, type) and element.__name__ in _REPEATABLE


class Maker:
    """Makes requests for one story. `known` says how many of a kind every side has handed out."""

    def __init__(self, random: Random, prefix: str, known: Callable[[str], int], now: int) -> None:
        self._random = random
        self._prefix = prefix
        self._known = known
        self._now = now

    def message(self, cls: type[Any], version: int) -> Any:
        made = cls()
        for field in spec_of(cls).fields:
            if version in field.versions:
                setattr(made, field.name, self._field(cls, field, version))
        agree(made, self._random, self.topic_name)
        spare(made, version)
        return made

    def _field(self, cls: type[Any], field: Field, version: int) -> Any:
        random = self._random
        kind, name = cls.__name__, field.name
        if version in field.nullable and name not in {*TEXTS, "records"} and random.random() < 0.15:
            return None
        if name == "cursor":
            return None if random.random() < 0.8 else self.message(field.type, version)  # type: ignore[arg-type]
        if isinstance(field.type, type) and version in field.tagged:
            return None
        if isinstance(field.type, Array):
            few = random.choice(_FEW)
            made = [self._value(kind, name, field.type.element, version, field) for _ in range(few)]
            return made if _may_repeat(field) and random.random() < 0.2 else self._distinct(made)
        return self._value(kind, name, field.type, version, field)

    @staticmethod
    def _distinct(items: list[Any]) -> list[Any]:
        """Without what names the same thing twice: which of the two is answered is up to hash tables."""
        kept: dict[str, Any] = {}
        for item in items:
            told = next(
                (value for each in _NAMING if (value := getattr(item, each, None)) not in _NAMELESS), item
            )
            kept.setdefault(repr(told), item)
        return list(kept.values())

    def _value(self, kind: str, name: str, wire: WireType, version: int, field: Field) -> Any:
        random = self._random
        if isinstance(wire, type):
            return self.message(wire, version)
        if name == "records":
            producers = [placeholder("producer", n) for n in range(self._known("producer"))]
            return any_batches(random, producers, self._now, version)
        if wire is uuid:
            known = [placeholder("topic", n) for n in range(self._known("topic"))]
            return random.choice([*known * 4, NOBODY, UUID(int=0)])
        if wire is boolean:
            return random.random() < (0.1 if name == "validate_only" else 0.5)
        if wire is string:
            return self._text(kind, name, field, version)
        if isinstance(wire, Scalar):
            return self._number(kind, name, field)
        return {"metadata": SUBSCRIPTION, "assignment": b"part"}.get(name, b"")

    def _number(self, kind: str, name: str, field: Field) -> Any:
        if name == "timestamp":
            marks = [-1, -1, -2, -2, -3, -4, -5, -6, -100, 0, 2**62]
            return self._random.choice([*marks, self._now, self._now + 5, self._now + 500])
        for kind_of in ("producer", "session"):
            if name == f"{kind_of}_id":
                known = [placeholder(kind_of, n) for n in range(self._known(kind_of))]
                nothing = -1 if kind_of == "producer" else 0
                return self._random.choice([nothing, nothing, *known * 2, 12_345])
        return self._random.choice(NUMBERS.get(name, [field.default]))  # type: ignore[list-item]

    def _text(self, kind: str, name: str, field: Field, version: int) -> Any:
        random = self._random
        if (kind, name) in _TOPIC_NAMES or name == "resource_name":
            return self.topic_name(kind)
        if kind in {"OffsetCommitRequest", "OffsetFetchRequest"} and name == "group_id" and version == 0:
            return f"{self._prefix}{OF_ZOOKEEPER}"
        if name in _GROUP_NAMES:
            return random.choice([f"{self._prefix}g{n}" for n in (0, 0, 0, 0, 1, 1, 2)] + [""])
        if name == "member_id":
            known = [placeholder("member", n) for n in range(self._known("member"))]
            own = ["m0", "m0", "m0", "m1", "m2"] if "Consumer" in kind else ["", "", ""]
            return random.choice([*own, *known * 2, "", "ghost"])
        if (kind, name) == ("JoinGroupRequestProtocol", "name"):
            return random.choice(["range", "range", "range", "roundrobin", ""])
        if name in TEXTS:
            chosen = random.choice(TEXTS[name])
            return chosen if chosen is not None or version in field.nullable else ""
        return field.default

    def topic_name(self, kind: str) -> str:
        random = self._random
        if random.random() < 0.06:
            return random.choice(STRANGE_NAMES)
        if random.random() < 0.02:
            return self._prefix + "x" * (random.choice([249, 250, 251]) - len(self._prefix))
        names = ["t0", "t0", "t0", "t1", "t1", "missing"]
        if kind in {"CreatableTopic", "MetadataRequestTopic", "DeleteTopicState", "DeleteTopicsRequest"}:
            names = ["t0", "t1", "t2", "t2", "t3", "t.4", "t_4", "missing"]
        return self._prefix + random.choice(names)
