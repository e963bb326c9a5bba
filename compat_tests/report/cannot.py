"""What a client library cannot do, with the reason; keyed by its name, or by its name and version."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ADMIN = ("admin: topics", "admin: partitions", "admin: configs", "admin: delete records", "admin: groups")
NO_KIP_848 = {"groups: new protocol": "knows the classic protocol only"}
NO_STATIC = {
    "groups: static members": "has no static members",
    "errors: fenced": "has no static members to fence",
}


def no_admin(*features: str, reason: str) -> Mapping[str, str]:
    return dict.fromkeys(features or ADMIN, reason)


CANNOT: Mapping[str, Mapping[str, str]] = {
    "kafka-python": {**NO_KIP_848},
    "kafka-python 2.0.6": {
        "produce: idempotence": "has no idempotent producer",
        "admin: delete records": "its admin client cannot",
    },
    "confluent-kafka 2.0.2": {**NO_KIP_848, "admin: delete records": "its admin client cannot"},
    "aiokafka": {**NO_KIP_848, "admin: groups": "its admin client lists groups, but cannot delete one"},
    "aiokafka 0.8.1": {"admin: delete records": "its admin client cannot"},
    "kafkajs": {**NO_KIP_848, **NO_STATIC},
    "sarama": {**NO_KIP_848},
    "kafka-go": {
        **NO_KIP_848,
        **NO_STATIC,
        "produce: idempotence": "has no idempotent producer",
        "produce: timestamps": "its reader does not know LogAppendTime, whichever the broker",
        "empty and null values": "its reader takes empty for null, whichever the broker",
        "admin: delete records": "its admin client cannot",
    },
    "kcat": {
        **NO_KIP_848,
        **no_admin(reason="a tool to read and write, not to administer"),
        "errors: refused": "creates and deletes nothing",
    },
}


def cannot(name: str, version: str) -> Mapping[str, str]:
    """What this library cannot do, at this version."""
    return {**CANNOT.get(name, {}), **CANNOT.get(f"{name} {version}", {})}
