"""Paths and contents of the tree, exactly as Apache Kafka 3.9 keeps them in ZooKeeper."""

from __future__ import annotations

import base64
import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
FEATURE = "/feature"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = "/log_dir_event_notification/log_dir_event_"
CONFIG_TOPICS = "/config/topics"
CONFIG_BROKERS = "/config/brokers"
CONFIG_CHANGES = "/config/changes"
BROKER_SEQUENCE = "/brokers/seqid"
CONFIG_CHANGE_PREFIX = "/config/changes/config_change_"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"

DEFAULT_ENTITY = "<default>"
"""The name of the cluster-wide default under /config/brokers."""

PERSISTENT_PATHS = (
    "/consumers",
    "/brokers",
    BROKER_IDS,
    TOPICS,
    BROKER_SEQUENCE,
    "/config",
    CONFIG_CHANGES,
    CONFIG_TOPICS,
    "/config/clients",
    "/config/users",
    CONFIG_BROKERS,
    "/config/ips",
    "/admin",
    DELETE_TOPICS,
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    "/cluster",
)
"""Nodes without data that exist before any broker registers; parents come first."""


def broker_id_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def partition_state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return f"{CONFIG_TOPICS}/{topic}"


def broker_config_path(broker_id: int | None) -> str:
    return f"{CONFIG_BROKERS}/{DEFAULT_ENTITY if broker_id is None else broker_id}"


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


def _encode(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _decode(data: bytes) -> dict[str, Any]:
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, found {data[:80]!r}")  # noqa: TRY004 - bad data, not a bad call
    return value


def uuid_to_text(value: uuid.UUID) -> str:
    """Kafka's way to print a uuid: 22 characters of url-safe base64."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def uuid_from_text(text: str) -> uuid.UUID:
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def random_uuid() -> uuid.UUID:
    """A uuid that is none of Kafka's reserved ones (zero and one) and does not look like an option."""
    while True:
        value = uuid.uuid4()
        if value.int > 1 and not uuid_to_text(value).startswith("-"):
            return value


@dataclass(frozen=True, slots=True)
class Endpoint:
    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """What a broker tells the cluster about itself, at /brokers/ids/N."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Supported (min, max) by feature."""
    timestamp_ms: int = 0

    def encode(self) -> bytes:
        plain = next((e for e in self.endpoints if e.security_protocol == "PLAINTEXT"), None)
        value: dict[str, Any] = {
            "features": {
                name: {"min_version": low, "max_version": high} for name, (low, high) in self.features.items()
            },
            "listener_security_protocol_map": {e.listener: e.security_protocol for e in self.endpoints},
            "endpoints": [e.url() for e in self.endpoints],
        }
        if self.rack is not None:
            value["rack"] = self.rack
        value |= {
            "jmx_port": -1,
            "port": plain.port if plain else -1,
            "host": plain.host if plain else None,
            "version": 5,
            "timestamp": str(self.timestamp_ms),
        }
        return _encode(value)

    @classmethod
    def decode(cls, broker_id: int, data: bytes) -> BrokerRegistration:
        value = _decode(data)
        protocols = value.get("listener_security_protocol_map", {})
        endpoints = tuple(_endpoint(url, protocols) for url in value["endpoints"])
        features = {
            name: (bounds["min_version"], bounds["max_version"])
            for name, bounds in (value.get("features") or {}).items()
        }
        return cls(broker_id, endpoints, value.get("rack"), features, int(value.get("timestamp", 0)))


def _endpoint(url: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, _, address = url.partition("://")
    host, _, port = address.rpartition(":")
    return Endpoint(listener, host.strip("[]"), int(port), protocols.get(listener, listener))


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """/brokers/topics/T: where the replicas of each partition live."""

    topic_id: uuid.UUID
    replicas: Mapping[int, tuple[int, ...]]
    adding: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    removing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def encode(self) -> bytes:
        def by_text(replicas: Mapping[int, tuple[int, ...]]) -> dict[str, list[int]]:
            return {str(partition): list(ids) for partition, ids in replicas.items()}

        return _encode(
            {
                "partitions": by_text(self.replicas),
                "topic_id": uuid_to_text(self.topic_id),
                "adding_replicas": by_text(self.adding),
                "removing_replicas": by_text(self.removing),
                "version": 3,
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> TopicAssignment:
        def by_number(replicas: Mapping[str, list[int]]) -> dict[int, tuple[int, ...]]:
            return {int(p): tuple(replicas[p]) for p in sorted(replicas, key=int)}

        value = _decode(data)
        return cls(
            uuid_from_text(value["topic_id"]),
            by_number(value["partitions"]),
            by_number(value.get("adding_replicas", {})),
            by_number(value.get("removing_replicas", {})),
        )


@dataclass(frozen=True, slots=True)
class PartitionState:
    """/brokers/topics/T/partitions/N/state: who leads and who is in sync."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    recovering: bool = False
    """The leader was elected from outside the ISR and has not yet said that it recovered."""

    def encode(self) -> bytes:
        value: dict[str, Any] = {
            "controller_epoch": self.controller_epoch,
            "leader": self.leader,
            "version": 1,
        }
        if self.recovering:
            value["leader_recovery_state"] = 1
        return _encode(value | {"leader_epoch": self.leader_epoch, "isr": list(self.isr)})

    @classmethod
    def decode(cls, data: bytes) -> PartitionState:
        value = _decode(data)
        recovering = value.get("leader_recovery_state", 0) == 1
        return cls(
            value["leader"], value["leader_epoch"], tuple(value["isr"]), value["controller_epoch"], recovering
        )


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """/latest_producer_id_block: the producer ids last handed out, both ends included."""

    broker_id: int
    first: int
    last: int

    def encode(self) -> bytes:
        return _encode(
            {
                "version": 1,
                "broker": self.broker_id,
                "block_start": str(self.first),
                "block_end": str(self.last),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> ProducerIdBlock:
        value = _decode(data)
        return cls(int(value["broker"]), int(value["block_start"]), int(value["block_end"]))


def encode_config(config: Mapping[str, str]) -> bytes:
    return _encode({"version": 1, "config": dict(config)})


def decode_config(data: bytes) -> dict[str, str]:
    config = _decode(data).get("config", {})
    return {str(name): str(value) for name, value in config.items()}


def encode_config_change(entity_path: str) -> bytes:
    """A notification such as `topics/orders` or `brokers/<default>`."""
    return _encode({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes) -> str:
    """The entity of a notification, `topics/orders`; the old form names kind and entity apart."""
    value = _decode(data)
    if "entity_path" in value:
        return str(value["entity_path"])
    return f"{value['entity_type']}/{value['entity_name']}"


def encode_reassignments(wanted: Mapping[tuple[str, int], tuple[int, ...]]) -> bytes:
    """/admin/reassign_partitions: where replicas shall go, by (topic, partition)."""
    partitions = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in wanted.items()
    ]
    return _encode({"version": 1, "partitions": partitions})


def decode_reassignments(data: bytes) -> dict[tuple[str, int], tuple[int, ...]]:
    entries = _decode(data)["partitions"]
    return {(e["topic"], int(e["partition"])): tuple(map(int, e["replicas"])) for e in entries}


def decode_partitions(data: bytes) -> list[tuple[str, int]]:
    """The (topic, partition) pairs of /admin/preferred_replica_election or of a notification of ISR changes."""
    return [(e["topic"], int(e["partition"])) for e in _decode(data)["partitions"]]


def encode_log_dir_event(broker_id: int) -> bytes:
    """A broker lost a log directory, or a log in it."""
    return _encode({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(data: bytes) -> int:
    """The broker that lost a log directory."""
    return int(_decode(data)["broker"])


def encode_cluster_id(cluster_id: str) -> bytes:
    return _encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    return str(_decode(data)["id"])


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    return _encode(
        {"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1}
    )


def decode_controller(data: bytes) -> int:
    return int(_decode(data)["brokerid"])


def encode_feature(features: Mapping[str, int]) -> bytes:
    """Finalized feature levels; status 1 says that the feature system is on."""
    return _encode({"features": dict(features), "version": 2, "status": 1})
