"""The same requests to Apache Kafka 4.3.1 and to a shard of ours: the answers are the same, field by field."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from compat_tests import provision, servers
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pykafka_broker.protocol.messages.metadata import MetadataRequest
from tests.client import Client

from .two_sides import DELAY_MS, MAX_SIZE, Kafka, Ours, Side

if TYPE_CHECKING:
    from collections.abc import Iterator

RELEASE = "4.3.1"


async def nobody_there(side: Side) -> None:
    for version in range(2, 10):
        await side.ask(side.join("ghost"), version)
    await side.ask(side.join("x", group_id=""), 9)
    await side.ask(side.join("x", session_timeout_ms=10), 9)
    await side.ask(side.heartbeat("ghost", 1), 4)
    await side.ask(side.sync("ghost", 1), 5)
    await side.ask(side.sync("ghost", 1, group_id=""), 5)
    await side.ask(side.sync("ghost", 1, group_id="", protocol_name=None), 5)
    for version in range(3, 6):
        await side.ask(side.leave(MemberIdentity(member_id="ghost")), version)
    for version in range(3):
        await side.ask(LeaveGroupRequest(group_id=side.group, member_id="ghost"), version)
    for version in range(7):
        await side.ask(side.describe(), version)
    for version in range(2, 11):
        await side.ask(side.commit("ghost", 1), version)
        await side.ask(side.commit("ghost", 1, topic="nowhere"), version)
        await side.ask(side.fetch(("t", 0)), version)
        await side.ask(side.fetch(), version)
    await side.ask(side.delete("t", 0), 0)
    await side.ask(side.delete("t", 0, group=""), 0)
    await side.ask(DeleteGroupsRequest(groups_names=[side.group]), 2)
    await side.ask(side.join(protocols={}), 9)
    await side.ask(side.join(protocol_type=""), 9)
    await side.ask(side.describe(), 6)


async def a_stable_member(side: Side) -> None:
    (member,) = await side.stable()
    await side.ask(side.describe(), 6)
    for generation, instance in ((1, None), (0, None), (1, "nobody")):
        await side.ask(side.heartbeat(member, generation, instance), 4)
    await side.ask(side.join(protocols={"other": b""}), 9)
    await side.ask(side.join("ghost", protocol_type="connect"), 9)
    await side.ask(side.join("ghost", group_instance_id="nobody"), 9)
    await side.ask(side.sync(member, 2), 5)
    await side.ask(side.sync(member, 1, protocol_name="other"), 5)
    await side.ask(side.sync(member, 1), 5)
    await side.ask(DeleteGroupsRequest(groups_names=[side.group]), 2)
    await side.ask(side.join(member), 9)
    await side.ask(side.describe(), 6)
    await side.ask(side.heartbeat(member, 2), 4)
    await side.ask(side.commit(member, 2), 9)


async def offsets(side: Side) -> None:
    (member,) = await side.stable()
    for version in range(2, 11):
        for generation, who in ((1, member), (2, member), (-1, member), (-1, ""), (1, "ghost")):
            await side.ask(side.commit(who, generation), version)
        for partition in (1, 9, -1):
            await side.ask(side.commit(member, 1, partition=partition), version)
    await side.ask(side.commit(member, 1, metadata="x" * 4097), 9)
    await side.ask(side.commit(member, 1, metadata=None), 9)
    for version in range(1, 11):
        await side.ask(side.fetch(("t", 0), ("t", 7), ("nowhere", 0)), version)
    for version in range(2, 11):
        await side.ask(side.fetch(), version)
    await side.ask(side.delete("t", 0), 0)
    await side.ask(side.delete("nowhere", 0), 0)
    await side.ask(side.leave(MemberIdentity(member_id=member)), 5)
    await side.ask(side.commit(member, 1), 9)
    await side.ask(side.commit(), 9)
    await side.ask(side.delete("t", 1), 0)
    await side.ask(side.fetch(), 9)
    await side.ask(DeleteGroupsRequest(groups_names=[side.group]), 2)
    await side.ask(side.fetch(), 9)


async def a_full_group(side: Side) -> None:
    leader, second, third = await side.stable(3)
    await side.ask(side.join(), 9)
    await side.ask(side.join(second), 9)
    leaving = (second, None), ("ghost", None), ("", "nobody"), (third, "nobody")
    await side.ask(side.leave(*(MemberIdentity(member_id=m, group_instance_id=i) for m, i in leaving)), 5)
    await side.ask(side.heartbeat(leader, 1), 4)
    await side.ask(side.sync(leader, 1), 5)
    await side.ask(side.describe(), 6)
    waiting = [await side.send(side.join(member), 9) for member in (leader, third)]
    for answer in waiting:
        await side.hear(answer)
    await side.ask(side.leave(*(MemberIdentity(member_id=m) for m in (leader, third))), 5)
    await side.ask(side.describe(), 6)
    await side.ask(side.join(leader), 9)
    await side.ask(side.heartbeat(leader, 2), 4)
    await side.ask(side.sync(leader, 2), 5)


async def a_static_member(side: Side) -> None:
    member = (await side.ask(side.join(group_instance_id="a"), 9)).member_id
    await side.ask(side.sync(member, 1, member, group_instance_id="a"), 5)
    for version in range(5, 10):
        successor = (await side.ask(side.join(group_instance_id="a"), version)).member_id
        await side.ask(side.heartbeat(member, 1, "a"), 4)
        await side.ask(side.heartbeat(member, 1), 4)
        await side.ask(side.join(member, group_instance_id="a"), 9)
        await side.ask(side.sync(successor, 1, group_instance_id="a"), 5)
        member = successor
    await side.ask(side.describe(), 6)
    await side.ask(side.join(group_instance_id="a", protocols={"sticky": b"", "range": b""}), 9)
    await side.ask(side.leave(MemberIdentity(member_id="", group_instance_id="a")), 5)
    await side.ask(side.describe(), 6)


async def others_than_consumers(side: Side) -> None:
    await side.stable(protocol_type="connect")
    await side.ask(side.delete("t", 0), 0)


async def subscriptions_nobody_can_read(side: Side) -> None:
    await side.stable(protocols={"range": b"\0"})
    await side.ask(side.delete("t", 0), 0)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    properties = {"group.initial.rebalance.delay.ms": str(DELAY_MS), "group.max.size": str(MAX_SIZE)}
    with provision.or_skip():
        server = servers.make(f"kafka-{RELEASE}", tmp_path_factory.mktemp("kafka"), properties)
        server.start()
    try:
        yield server.bootstrap
    finally:
        server.close()


async def _topic(bootstrap: str) -> UUID:
    """The id of the topic, once there is one, and the coordinator serves."""
    client = await Client.connect(bootstrap)
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    await client.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    metadata = await client.call(ApiKey.METADATA, 12, MetadataRequest(topics=None))
    loop = asyncio.get_running_loop()
    give_up = loop.time() + 30
    while loop.time() < give_up:
        found = await client.call(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
        probe = await client.call(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id="g", member_id="m"))
        if not found.coordinators[0].error_code and probe.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            break
        await asyncio.sleep(0.05)
    await client.close()
    return next(topic.topic_id for topic in metadata.topics if topic.name == "t")


@pytest.mark.parametrize(
    "story",
    [
        nobody_there,
        a_stable_member,
        offsets,
        a_full_group,
        a_static_member,
        others_than_consumers,
        subscriptions_nobody_can_read,
    ],
)
async def test_kafka_answers_the_same(kafka: str, story: Any) -> None:
    name = f"{story.__name__}-{uuid4().hex[:8]}"
    theirs = Side(Kafka(kafka, await _topic(kafka)), name)
    ours = Side(Ours(), name)
    for side in (theirs, ours):
        await story(side)
    assert ours.answers == theirs.answers
