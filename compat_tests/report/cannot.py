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


NO_GROUPS = dict.fromkeys(
    (
        "groups: join, leave, rebalance",
        "groups: static members",
        "groups: new protocol",
        "commit and fetch offsets",
        "admin: groups",
        "errors: fenced",
    ),
    "has no groups",
)


def no_admin(*features: str, reason: str) -> Mapping[str, str]:
    return dict.fromkeys(features or ADMIN, reason)


def old_java() -> Mapping[str, Mapping[str, str]]:
    """What releases of Java's clients did not have yet."""
    before_0_10 = {"produce: timestamps": "messages had no time before 0.10"}
    before_0_10_1 = {"seek by timestamp": "offsets are found by time since 0.10.1"}
    before_0_11 = {
        **no_admin(*ADMIN, "admin: cluster", "errors: refused", reason="has no admin client"),
        "produce: headers": "records have headers since 0.11",
        "produce: idempotence": "has no idempotent producer",
        "errors: unknown topic": "waits for the topic until its time is over, whichever the broker",
    }
    classic = {**NO_STATIC, **NO_KIP_848}
    reading = (
        "consume assigned",
        "seek by offset",
        "groups: join, leave, rebalance",
        "commit and fetch offsets",
    )
    only_writes = dict.fromkeys(reading, "its consumer was not of the new kind yet")
    found = {
        "0.8.2.2": {**classic, **before_0_11, **before_0_10_1, **before_0_10, **only_writes},
        "0.9.0.1": {**classic, **before_0_11, **before_0_10_1, **before_0_10},
        "0.10.2.2": {**classic, **before_0_11},
        "1.1.1": {**classic, "admin: groups": "its admin client cannot"},
        "2.1.1": classic,
        "2.8.2": NO_KIP_848,
    }
    return {f"Java kafka-clients {version}": cannot for version, cannot in found.items()}


CANNOT: Mapping[str, Mapping[str, str]] = {
    **old_java(),
    "kafka-python": {**NO_KIP_848},
    "kafka-python 3.0.12": {"errors: fenced": "is fenced without a word, whichever the broker"},
    "kafka-python 1.4.7": {
        **NO_STATIC,
        "produce: idempotence": "has no idempotent producer",
        "admin: delete records": "its admin client cannot",
        "admin: cluster": "its admin client cannot",
        "admin: groups": "its admin client cannot delete one",
    },
    "kafka-python 2.0.6": {
        **NO_STATIC,
        "produce: idempotence": "has no idempotent producer",
        "admin: delete records": "its admin client cannot",
    },
    "confluent-kafka 2.0.2": {**NO_KIP_848, "admin: delete records": "its admin client cannot"},
    "aiokafka": {
        **NO_KIP_848,
        "admin: groups": "its admin client lists groups, but cannot delete one",
        "errors: fenced": "heartbeats without its static name, and takes its place back, whichever the broker",
    },
    "aiokafka 0.8.1": {**NO_STATIC, "admin: delete records": "its admin client cannot"},
    "kafkajs": {**NO_KIP_848, **NO_STATIC},
    "@platformatic/kafka": {
        "produce: timestamps": "its reader does not know LogAppendTime, whichever the broker"
    },
    "sarama": {**NO_KIP_848},
    "kafka-go": {
        **NO_KIP_848,
        **NO_STATIC,
        "produce: idempotence": "has no idempotent producer",
        "produce: timestamps": "its reader does not know LogAppendTime, whichever the broker",
        "empty and null values": "its reader takes empty for null, whichever the broker",
        "admin: delete records": "its admin client cannot",
    },
    "rskafka": {
        **NO_GROUPS,
        "produce: idempotence": "has no idempotent producer",
        "produce: headers": "keeps headers sorted by name: their order is lost, whichever the broker",
        "produce: timestamps": "its reader does not know LogAppendTime, whichever the broker",
        "admin: partitions": "its controller client creates and deletes topics, and no more",
        "admin: configs": "its controller client creates and deletes topics, and no more",
        "admin: cluster": "does not tell who the brokers are",
        "errors: refused": "gives a topic no configs, so none can be refused",
    },
    "C with librdkafka": {**NO_KIP_848},
    "kcat": {
        **NO_KIP_848,
        **no_admin(reason="a tool to read and write, not to administer"),
        "errors: refused": "creates and deletes nothing",
    },
}


def cannot(name: str, version: str) -> Mapping[str, str]:
    """What this library cannot do, at this version."""
    return {**CANNOT.get(name, {}), **CANNOT.get(f"{name} {version}", {})}
