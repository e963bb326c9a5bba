"""The controller's requests as bytes, and what it makes of the answers."""

from __future__ import annotations

import uuid

import pytest

from pykafka_broker.cluster.controller.requests import (
    HostedPartition,
    KnownPartition,
    LeaderAndIsr,
    StoppedPartition,
    StopReplica,
    UpdateMetadata,
)
from pykafka_broker.cluster.controller.wire import from_wire, to_wire
from pykafka_broker.cluster.view import BrokerInfo, PartitionInfo
from pykafka_broker.protocol.codec import decode, encode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from pykafka_broker.protocol.messages.stop_replica import StopReplicaPartitionError, StopReplicaResponse
from pykafka_broker.protocol.messages.update_metadata import UpdateMetadataResponse

ID = uuid.uuid4()
BROKER = BrokerInfo(
    2, {"INNER": ("h", 9), "OUTER": ("o", 10)}, "r", 70, {"INNER": "SSL", "OUTER": "PLAINTEXT"}
)
INFO = PartitionInfo(2, 5, (2, 3), (2, 3, 4), 8, (4,), (3,), recovering=True)
HOSTED = LeaderAndIsr(1, 6, 70, (HostedPartition("t", ID, 0, INFO, True),), (BROKER,))
KNOWN = UpdateMetadata(1, 6, 70, (KnownPartition("t", ID, 0, 2, 5, 8, (2, 3), (2, 3, 4), (4,)),), (BROKER,))
STOPPED = StopReplica(1, 6, 70, (StoppedPartition("t", 0, 5, True), StoppedPartition("u", 1, 6, False)))


def over_the_wire(request):
    wired = to_wire(request, "INNER")
    data = b"".join(bytes(part) for part in encode(wired.message, wired.newest))
    return decode(type(wired.message), wired.newest, memoryview(data))


def test_leader_and_isr_says_all_about_the_partitions_and_where_their_leaders_are():
    found = over_the_wire(HOSTED)
    assert (found.controller_id, found.controller_epoch, found.broker_epoch) == (1, 6, 70)
    topic = found.topic_states[0]
    p = topic.partition_states[0]
    assert (topic.topic_name, topic.topic_id, p.partition_index) == ("t", ID, 0)
    assert (p.leader, p.leader_epoch, p.partition_epoch, p.is_new) == (2, 5, 8, True)
    assert (p.isr, p.replicas, p.adding_replicas, p.removing_replicas) == ([2, 3], [2, 3, 4], [4], [3])
    assert p.leader_recovery_state == 1
    assert [(b.broker_id, b.host_name, b.port) for b in found.live_leaders] == [(2, "h", 9)]


def test_update_metadata_lists_every_listener():
    found = over_the_wire(KNOWN)
    endpoints = found.live_brokers[0].endpoints
    assert [(e.listener, e.port, e.security_protocol) for e in endpoints] == [
        ("INNER", 9, 1),
        ("OUTER", 10, 0),
    ]
    p = found.topic_states[0].partition_states[0]
    assert (p.leader, p.leader_epoch, p.zk_version, p.offline_replicas) == (2, 5, 8, [4])


def test_stop_replica_tells_what_to_delete():
    found = over_the_wire(STOPPED)
    assert [
        (t.topic_name, p.partition_index, p.leader_epoch, p.delete_partition)
        for t in found.topic_states
        for p in t.partition_states
    ] == [("t", 0, 5, True), ("u", 1, 6, False)]


def test_answers_are_told_by_partition():
    errors = [LeaderAndIsrTopicError(ID, [LeaderAndIsrPartitionError("", 0, 56)])]
    answer = from_wire(HOSTED, LeaderAndIsrResponse(0, [], errors))
    assert answer.partitions == {("t", 0): ErrorCode.KAFKA_STORAGE_ERROR}
    assert from_wire(KNOWN, UpdateMetadataResponse(11)).error is ErrorCode.STALE_CONTROLLER_EPOCH


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (StopReplicaResponse(0, [StopReplicaPartitionError("t", 0, 0)]), ErrorCode.NONE),
        (StopReplicaResponse(0, [StopReplicaPartitionError("t", 0, 56)]), ErrorCode.KAFKA_STORAGE_ERROR),
        (StopReplicaResponse(77, []), ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_of_a_stop_only_deletions_are_answered_and_a_refusal_concerns_them_all(response, code):
    assert from_wire(STOPPED, response).partitions == {("t", 0): code}
