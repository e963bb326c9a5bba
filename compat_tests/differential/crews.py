"""Members that do what clients do, in order: random requests alone rarely get a group as far as a heartbeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.differential.sides import Step
from compat_tests.differential.symbols import placeholder
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from random import Random

K = ApiKey
SUBSCRIPTION = b"\0\0\0\0\0\1\0\2t0\0\0\0\0"
IDS_ARE_GIVEN_FIRST_SINCE = 4
PROTOCOL_IS_NAMED_SINCE = 5


def crews(
    random: Random, prefix: str, offered: Mapping[ApiKey, tuple[int, int]], known: Callable[[str], int]
) -> Iterator[Step]:
    """As many as there are versions of JoinGroup, so that each is there, and each of the others."""
    oldest, newest = offered[K.JOIN_GROUP]
    for version in range(oldest, newest + 1):
        yield from _classic(f"{prefix}c{version}", version, offered, known)
    if K.CONSUMER_GROUP_HEARTBEAT in offered:
        oldest, newest = offered[K.CONSUMER_GROUP_HEARTBEAT]
        for version in range(oldest, newest + 1):
            yield from _of_consumers(random, prefix, version, offered)


def names(prefix: str) -> list[str]:
    """The groups that crews may leave behind."""
    return [f"{prefix}{kind}{version}" for kind in "cn" for version in range(10)]


def _classic(
    group: str,
    version: int,
    offered: Mapping[ApiKey, tuple[int, int]],
    known: Callable[[str], int],
) -> Iterator[Step]:
    """A member joins, is given its part by itself, says that it lives, and leaves."""

    def at(key: ApiKey) -> int:
        oldest, newest = offered[key]
        return max(oldest, min(version, newest))

    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=400,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )
    number = known("member")
    yield Step(K.JOIN_GROUP, version, join)
    member = placeholder("member", number)
    if version >= IDS_ARE_GIVEN_FIRST_SINCE:
        join.member_id = member
        yield Step(K.JOIN_GROUP, version, join)
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=1,
        member_id=member,
        assignments=[SyncGroupRequestAssignment(member_id=member, assignment=b"part")],
    )
    if at(K.SYNC_GROUP) >= PROTOCOL_IS_NAMED_SINCE:
        sync.protocol_type, sync.protocol_name = "consumer", "range"
    yield Step(K.SYNC_GROUP, at(K.SYNC_GROUP), sync)
    yield Step(
        K.HEARTBEAT, at(K.HEARTBEAT), HeartbeatRequest(group_id=group, generation_id=1, member_id=member)
    )
    yield Step(K.DESCRIBE_GROUPS, at(K.DESCRIBE_GROUPS), DescribeGroupsRequest(groups=[group]))
    leave = LeaveGroupRequest(group_id=group, member_id=member, members=[MemberIdentity(member_id=member)])
    yield Step(K.LEAVE_GROUP, at(K.LEAVE_GROUP), leave)


def _of_consumers(
    random: Random, prefix: str, version: int, offered: Mapping[ApiKey, tuple[int, int]]
) -> Iterator[Step]:
    """A member of the new kind joins, says that it lives, is described, and leaves."""
    group, member = f"{prefix}n{version}", f"m{random.randrange(3)}"
    join = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=400,
        subscribed_topic_names=[f"{prefix}t0", f"{prefix}t1"],
        topic_partitions=[],
    )
    yield Step(K.CONSUMER_GROUP_HEARTBEAT, version, join)
    lives = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=2)
    yield Step(K.CONSUMER_GROUP_HEARTBEAT, version, lives)
    oldest, newest = offered[K.CONSUMER_GROUP_DESCRIBE]
    described = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True)
    yield Step(K.CONSUMER_GROUP_DESCRIBE, max(oldest, min(version, newest)), described)
    leaves = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=-1)
    yield Step(K.CONSUMER_GROUP_HEARTBEAT, version, leaves)
