"""Every version of every API that is served: what a client would send, over a socket, and an answer that makes sense.

What the versions mean in their corners is compared with Apache Kafka elsewhere (differential); here none is left out.
"""

from __future__ import annotations

import itertools
import os
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from compat_tests.wire import Wire, batch, served_by
from pykafka_broker.handlers import ROUTES
from pykafka_broker.protocol.api import APIS, ApiKey, RequestHeader, frame_request, read_response_header
from pykafka_broker.protocol.codec import decode
from pykafka_broker.protocol.messages import (
    alter_configs,
    alter_partition_reassignments,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server

K = ApiKey
TOPIC = 2
NO_ID = UUID(int=0)
BATCHES_SINCE, TOPIC_IDS_OF_FETCH_SINCE, TOPIC_IDS_OF_PRODUCE_SINCE, TOPIC_IDS_OF_OFFSETS_SINCE = (
    3,
    13,
    13,
    10,
)
GROUPS_OF_FIND_SINCE, GROUPS_OF_FETCH_SINCE, STATES_OF_DELETE_SINCE, MEMBERS_OF_LEAVE_SINCE = 4, 8, 6, 3
EVERY = [(route.api.key, version) for route in ROUTES for version in range(route.oldest, route.newest + 1)]
_numbers = itertools.count(1)


class Scene:
    """A connection, a topic of one record, and groups that are asked for by their names."""

    def __init__(self, port: int, topic: str, key: ApiKey, version: int) -> None:
        self._wire = Wire(port, timeout=30)
        self.topic = topic
        self.version = version
        self.group = f"every-{key.name}-{version}-{os.getpid()}-{next(_numbers)}"
        self._wire.produce_one(topic, batch(b"v"))
        asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=topic)])
        known = self.ask(K.METADATA, 12, asked)
        self.topic_id, self.node = known.topics[0].topic_id, known.brokers[0].node_id

    def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        self._wire.send(b"".join(map(bytes, frame_request(RequestHeader(key, version, 1, "every"), request))))
        answer = self._wire.receive()
        assert answer is not None, "the broker hung up"
        _, start = read_response_header(key, version, memoryview(answer))
        return decode(APIS[key].response, version, memoryview(answer), start)

    def coordinator(self) -> None:
        """Wait until somebody coordinates the group."""
        deadline = time.monotonic() + 30
        probe = heartbeat.HeartbeatRequest(group_id=self.group, generation_id=-1, member_id="nobody")
        find = find_coordinator.FindCoordinatorRequest(coordinator_keys=[self.group])
        unknown_member = 25
        while True:
            self.ask(K.FIND_COORDINATOR, 4, find)
            if self.ask(K.HEARTBEAT, 4, probe).error_code == unknown_member:
                return
            assert time.monotonic() < deadline, "no coordinator"
            time.sleep(0.05)

    def join(self) -> str:
        """The id of a member that has joined, in generation 1."""
        self.coordinator()
        return self.ask(K.JOIN_GROUP, 3, self.wants_to_join()).member_id

    def member(self) -> str:
        """The id of a member that has also been given its part."""
        joined = self.join()
        assert self.ask(K.SYNC_GROUP, 3, self.wants_its_part(joined)).error_code == 0
        return joined

    def wants_to_join(self) -> join_group.JoinGroupRequest:
        return join_group.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")],
        )

    def wants_its_part(self, member: str) -> sync_group.SyncGroupRequest:
        part = sync_group.SyncGroupRequestAssignment(member_id=member, assignment=b"part")
        return sync_group.SyncGroupRequest(
            group_id=self.group,
            generation_id=1,
            member_id=member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[part],
        )

    def commit(self) -> None:
        self.coordinator()
        assert not errors(self.ask(K.OFFSET_COMMIT, 2, _offset_commit(self, 2)))


def errors(answer: Any) -> list[int]:
    """Every error code in an answer that says something is wrong."""
    if isinstance(answer, list):
        return [code for each in answer for code in errors(each)]
    if not hasattr(answer, "__dataclass_fields__"):
        return []
    found = [answer.error_code] if getattr(answer, "error_code", 0) else []
    election_not_needed = 84
    found = [code for code in found if code != election_not_needed]
    return found + [code for name in answer.__dataclass_fields__ for code in errors(getattr(answer, name))]


def _produce(scene: Scene, version: int) -> Any:
    records = batch(b"v")
    data = [produce.PartitionProduceData(index=0, records=bytes(records))]
    topic = produce.TopicProduceData(name=scene.topic, partition_data=data)
    if version >= TOPIC_IDS_OF_PRODUCE_SINCE:
        topic = produce.TopicProduceData(topic_id=scene.topic_id, partition_data=data)
    return produce.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])


def _fetch(scene: Scene, version: int) -> Any:
    part = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = fetch.FetchTopic(topic=scene.topic, partitions=[part])
    if version >= TOPIC_IDS_OF_FETCH_SINCE:
        topic = fetch.FetchTopic(topic_id=scene.topic_id, partitions=[part])
    return fetch.FetchRequest(
        replica_id=-1, max_wait_ms=1000, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic]
    )


def _list_offsets(scene: Scene, version: int) -> Any:
    part = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1, max_num_offsets=5)
    topic = list_offsets.ListOffsetsTopic(name=scene.topic, partitions=[part])
    return list_offsets.ListOffsetsRequest(replica_id=-1, topics=[topic])


def _metadata(scene: Scene, version: int) -> Any:
    return metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=scene.topic)])


def _offset_commit(scene: Scene, version: int) -> Any:
    scene.coordinator()
    place = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topic = offset_commit.OffsetCommitRequestTopic(name=scene.topic, partitions=[place])
    if version >= TOPIC_IDS_OF_OFFSETS_SINCE:
        topic = offset_commit.OffsetCommitRequestTopic(topic_id=scene.topic_id, partitions=[place])
    return offset_commit.OffsetCommitRequest(
        group_id=scene.group, generation_id_or_member_epoch=-1, topics=[topic]
    )


def _offset_fetch(scene: Scene, version: int) -> Any:
    if version == 0:  # which Kafka kept elsewhere
        scene.coordinator()
        assert not errors(scene.ask(K.OFFSET_COMMIT, 0, _offset_commit(scene, 0)))
    else:
        scene.commit()
    if version < GROUPS_OF_FETCH_SINCE:
        asked = offset_fetch.OffsetFetchRequestTopic(name=scene.topic, partition_indexes=[0])
        return offset_fetch.OffsetFetchRequest(group_id=scene.group, topics=[asked])
    topic = offset_fetch.OffsetFetchRequestTopics(name=scene.topic, partition_indexes=[0])
    if version >= TOPIC_IDS_OF_OFFSETS_SINCE:
        topic = offset_fetch.OffsetFetchRequestTopics(topic_id=scene.topic_id, partition_indexes=[0])
    group = offset_fetch.OffsetFetchRequestGroup(group_id=scene.group, topics=[topic])
    return offset_fetch.OffsetFetchRequest(groups=[group])


def _find_coordinator(scene: Scene, version: int) -> Any:
    scene.coordinator()
    if version < GROUPS_OF_FIND_SINCE:
        return find_coordinator.FindCoordinatorRequest(key=scene.group)
    return find_coordinator.FindCoordinatorRequest(coordinator_keys=[scene.group])


def _join_group(scene: Scene, version: int) -> Any:
    scene.coordinator()
    request = scene.wants_to_join()
    member_id_required = 79
    first = scene.ask(K.JOIN_GROUP, version, request)
    assert first.error_code in (0, member_id_required)
    request.member_id = first.member_id
    return request


def _heartbeat(scene: Scene, version: int) -> Any:
    return heartbeat.HeartbeatRequest(group_id=scene.group, generation_id=1, member_id=scene.member())


def _leave_group(scene: Scene, version: int) -> Any:
    member = scene.member()
    if version < MEMBERS_OF_LEAVE_SINCE:
        return leave_group.LeaveGroupRequest(group_id=scene.group, member_id=member)
    return leave_group.LeaveGroupRequest(
        group_id=scene.group, members=[leave_group.MemberIdentity(member_id=member)]
    )


def _sync_group(scene: Scene, version: int) -> Any:
    return scene.wants_its_part(scene.join())


def _describe_groups(scene: Scene, version: int) -> Any:
    scene.member()
    return describe_groups.DescribeGroupsRequest(groups=[scene.group])


def _list_groups(scene: Scene, version: int) -> Any:
    scene.member()
    return list_groups.ListGroupsRequest()


def _api_versions(scene: Scene, version: int) -> Any:
    return api_versions.ApiVersionsRequest(client_software_name="every", client_software_version="1")


def _create_topics(scene: Scene, version: int) -> Any:
    wanted = create_topics.CreatableTopic(name=scene.group, num_partitions=2, replication_factor=1)
    return create_topics.CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)


def _delete_topics(scene: Scene, version: int) -> Any:
    if version < STATES_OF_DELETE_SINCE:
        return delete_topics.DeleteTopicsRequest(topic_names=[scene.topic], timeout_ms=10_000)
    state = delete_topics.DeleteTopicState(name=None, topic_id=scene.topic_id)
    return delete_topics.DeleteTopicsRequest(topics=[state], timeout_ms=10_000)


def _delete_records(scene: Scene, version: int) -> Any:
    place = delete_records.DeleteRecordsPartition(partition_index=0, offset=1)
    topic = delete_records.DeleteRecordsTopic(name=scene.topic, partitions=[place])
    return delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=10_000)


def _init_producer_id(scene: Scene, version: int) -> Any:
    return init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)


def _offset_for_leader_epoch(scene: Scene, version: int) -> Any:
    place = offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    topic = offset_for_leader_epoch.OffsetForLeaderTopic(topic=scene.topic, partitions=[place])
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])


def _describe_configs(scene: Scene, version: int) -> Any:
    resource = describe_configs.DescribeConfigsResource(
        resource_type=TOPIC, resource_name=scene.topic, configuration_keys=["retention.ms"]
    )
    return describe_configs.DescribeConfigsRequest(resources=[resource])


def _alter_configs(scene: Scene, version: int) -> Any:
    config = alter_configs.ReplacedConfig(name="retention.ms", value="1000000")
    resource = alter_configs.AlterConfigsResource(
        resource_type=TOPIC, resource_name=scene.topic, configs=[config]
    )
    return alter_configs.AlterConfigsRequest(resources=[resource])


def _describe_log_dirs(scene: Scene, version: int) -> Any:
    topic = describe_log_dirs.DescribableLogDirTopic(topic=scene.topic, partitions=[0])
    return describe_log_dirs.DescribeLogDirsRequest(topics=[topic])


def _create_partitions(scene: Scene, version: int) -> Any:
    topic = create_partitions.CreatePartitionsTopic(name=scene.topic, count=3, assignments=None)
    return create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)


def _delete_groups(scene: Scene, version: int) -> Any:
    scene.commit()
    return delete_groups.DeleteGroupsRequest(groups_names=[scene.group])


def _incremental_alter_configs(scene: Scene, version: int) -> Any:
    config = incremental_alter_configs.AlterableConfig(
        name="retention.ms", config_operation=0, value="1000000"
    )
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=TOPIC, resource_name=scene.topic, configs=[config]
    )
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])


def _offset_delete(scene: Scene, version: int) -> Any:
    scene.commit()
    place = offset_delete.OffsetDeleteRequestPartition(partition_index=0)
    topic = offset_delete.OffsetDeleteRequestTopic(name=scene.topic, partitions=[place])
    return offset_delete.OffsetDeleteRequest(group_id=scene.group, topics=[topic])


def _describe_cluster(scene: Scene, version: int) -> Any:
    return describe_cluster.DescribeClusterRequest()


def _consumer_group_heartbeat(scene: Scene, version: int) -> Any:
    scene.coordinator()
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=scene.group,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[scene.topic],
        topic_partitions=[],
    )


def _consumer_group_describe(scene: Scene, version: int) -> Any:
    scene.ask(K.CONSUMER_GROUP_HEARTBEAT, 1, _consumer_group_heartbeat(scene, 1))
    return consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[scene.group])


def _describe_topic_partitions(scene: Scene, version: int) -> Any:
    topics = [describe_topic_partitions.TopicRequest(name=scene.topic)]
    return describe_topic_partitions.DescribeTopicPartitionsRequest(topics=topics)


def _elect_leaders(scene: Scene, version: int) -> Any:
    place = elect_leaders.TopicPartitions(topic=scene.topic, partitions=[0])
    return elect_leaders.ElectLeadersRequest(topic_partitions=[place], timeout_ms=10_000)


def _alter_reassignments(scene: Scene, version: int) -> Any:
    place = alter_partition_reassignments.ReassignablePartition(partition_index=0, replicas=[scene.node])
    topic = alter_partition_reassignments.ReassignableTopic(name=scene.topic, partitions=[place])
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=[topic])


def _list_reassignments(scene: Scene, version: int) -> Any:
    topic = list_partition_reassignments.ListPartitionReassignmentsTopics(
        name=scene.topic, partition_indexes=[0]
    )
    return list_partition_reassignments.ListPartitionReassignmentsRequest(topics=[topic])


def _offset(answer: Any) -> Any:
    group = answer.groups[0] if answer.groups else answer
    return group.topics[0].partitions[0].committed_offset


def _ends(answer: Any) -> Any:
    place = answer.topics[0].partitions[0]
    return place.old_style_offsets[0] if place.old_style_offsets else place.offset


ASKED: dict[ApiKey, tuple[Callable[[Scene, int], Any], Callable[[Any, Scene], Any]]] = {
    K.PRODUCE: (_produce, lambda it, _: it.responses[0].partition_responses[0].base_offset == 1),
    K.FETCH: (_fetch, lambda it, _: bytes(it.responses[0].partitions[0].records).endswith((b"v", b"v\0"))),
    K.LIST_OFFSETS: (_list_offsets, lambda it, _: _ends(it) == 1),
    K.METADATA: (_metadata, lambda it, scene: it.topics[0].name == scene.topic and it.brokers),
    K.OFFSET_COMMIT: (_offset_commit, lambda it, _: it.topics[0].partitions[0].partition_index == 0),
    K.OFFSET_FETCH: (_offset_fetch, lambda it, _: _offset(it) == 7),
    K.FIND_COORDINATOR: (_find_coordinator, lambda it, _: (it.coordinators or [it])[0].port > 0),
    K.JOIN_GROUP: (_join_group, lambda it, _: it.leader == it.member_id and it.members),
    K.HEARTBEAT: (_heartbeat, lambda it, _: it.error_code == 0),
    K.LEAVE_GROUP: (_leave_group, lambda it, _: it.error_code == 0),
    K.SYNC_GROUP: (_sync_group, lambda it, _: bytes(it.assignment) == b"part"),
    K.DESCRIBE_GROUPS: (_describe_groups, lambda it, _: it.groups[0].group_state == "Stable"),
    K.LIST_GROUPS: (_list_groups, lambda it, scene: scene.group in [g.group_id for g in it.groups]),
    K.API_VERSIONS: (_api_versions, lambda it, _: K.API_VERSIONS in [api.api_key for api in it.api_keys]),
    K.CREATE_TOPICS: (_create_topics, lambda it, scene: it.topics[0].name == scene.group),
    K.DELETE_TOPICS: (_delete_topics, lambda it, scene: it.responses[0].name == scene.topic),
    K.DELETE_RECORDS: (_delete_records, lambda it, _: it.topics[0].partitions[0].low_watermark == 1),
    K.INIT_PRODUCER_ID: (_init_producer_id, lambda it, _: it.producer_id >= 0),
    K.OFFSET_FOR_LEADER_EPOCH: (
        _offset_for_leader_epoch,
        lambda it, _: it.topics[0].partitions[0].end_offset == 1,
    ),
    K.DESCRIBE_CONFIGS: (_describe_configs, lambda it, _: it.results[0].configs[0].name == "retention.ms"),
    K.ALTER_CONFIGS: (_alter_configs, lambda it, scene: it.responses[0].resource_name == scene.topic),
    K.DESCRIBE_LOG_DIRS: (
        _describe_log_dirs,
        lambda it, _: it.results[0].topics[0].partitions[0].partition_size > 0,
    ),
    K.CREATE_PARTITIONS: (_create_partitions, lambda it, scene: it.results[0].name == scene.topic),
    K.DELETE_GROUPS: (_delete_groups, lambda it, scene: it.results[0].group_id == scene.group),
    K.INCREMENTAL_ALTER_CONFIGS: (
        _incremental_alter_configs,
        lambda it, scene: it.responses[0].resource_name == scene.topic,
    ),
    K.ELECT_LEADERS: (
        _elect_leaders,
        lambda it, scene: it.replica_election_results[0].topic == scene.topic,
    ),
    K.ALTER_PARTITION_REASSIGNMENTS: (
        _alter_reassignments,
        lambda it, scene: it.responses[0].name == scene.topic,
    ),
    K.LIST_PARTITION_REASSIGNMENTS: (_list_reassignments, lambda it, _: it.topics == []),
    K.OFFSET_DELETE: (_offset_delete, lambda it, _: it.topics[0].partitions[0].partition_index == 0),
    K.DESCRIBE_CLUSTER: (_describe_cluster, lambda it, _: it.brokers and it.cluster_id),
    K.CONSUMER_GROUP_HEARTBEAT: (_consumer_group_heartbeat, lambda it, _: it.member_epoch > 0),
    K.CONSUMER_GROUP_DESCRIBE: (_consumer_group_describe, lambda it, _: it.groups[0].members),
    K.DESCRIBE_TOPIC_PARTITIONS: (
        _describe_topic_partitions,
        lambda it, scene: it.topics[0].name == scene.topic and it.topics[0].partitions,
    ),
}
"""Of each API how it is asked, and what makes sense as an answer."""


@pytest.mark.parametrize(("key", "version"), EVERY, ids=[f"{key.name}-{version}" for key, version in EVERY])
def test_every_version_that_is_served_is_answered(
    against: str, broker: Server, topic: MakeTopic, key: ApiKey, version: int
) -> None:
    if against != "ours":
        lowest, highest = served_by(broker.port).get(key, (1, 0))
        if key is K.PRODUCE and against == "kafka-4.3.1":
            lowest = BATCHES_SINCE  # shown from 0, for the sake of librdkafka
        if not lowest <= version <= highest:
            pytest.skip(f"{against} does not serve it")
    scene = Scene(broker.port, topic(), key, version)
    ask, makes_sense = ASKED[key]
    answer = scene.ask(key, version, ask(scene, version))
    assert not errors(answer)
    assert makes_sense(answer, scene), answer
