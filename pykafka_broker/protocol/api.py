"""Frames around messages: headers with their exceptions, and the table of every API that is declared."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pykafka_broker.protocol.codec import encode_into, encoder
from pykafka_broker.protocol.decoder import skip_tags
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from pykafka_broker.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from pykafka_broker.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from pykafka_broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka_broker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from pykafka_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from pykafka_broker.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from pykafka_broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from pykafka_broker.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from pykafka_broker.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from pykafka_broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from pykafka_broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from pykafka_broker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from pykafka_broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from pykafka_broker.protocol.messages.fetch import FetchRequest, FetchResponse
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from pykafka_broker.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pykafka_broker.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from pykafka_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykafka_broker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from pykafka_broker.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from pykafka_broker.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from pykafka_broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from pykafka_broker.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from pykafka_broker.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from pykafka_broker.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from pykafka_broker.protocol.types import spec_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafka_broker.protocol.encoder import Encode
    from pykafka_broker.protocol.types import Buffer

_START = struct.Struct(">hhi")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_SIZE_AND_CORRELATION = struct.Struct(">ii")


class ApiKey(enum.IntEnum):
    """The number of every API, declared here or not."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


@dataclass(frozen=True, slots=True)
class Api:
    """An API and every version of it that is declared; whether a broker serves it is not decided here."""

    key: ApiKey
    request: type[Any]
    response: type[Any]
    versions: range
    flexible: range

    def response_has_tags(self, version: int) -> bool:
        """ApiVersions is answered with the oldest header, so that any client can read why it was refused."""
        return version in self.flexible and self.key is not ApiKey.API_VERSIONS


def _api(key: ApiKey, request: type[Any], response: type[Any]) -> Api:
    spec = spec_of(request)
    return Api(key, request, response, spec.versions, spec.flexible)


APIS: Final[Mapping[int, Api]] = MappingProxyType(
    {
        api.key: api
        for api in (
            _api(ApiKey.PRODUCE, ProduceRequest, ProduceResponse),
            _api(ApiKey.FETCH, FetchRequest, FetchResponse),
            _api(ApiKey.LIST_OFFSETS, ListOffsetsRequest, ListOffsetsResponse),
            _api(ApiKey.METADATA, MetadataRequest, MetadataResponse),
            _api(ApiKey.LEADER_AND_ISR, LeaderAndIsrRequest, LeaderAndIsrResponse),
            _api(ApiKey.STOP_REPLICA, StopReplicaRequest, StopReplicaResponse),
            _api(ApiKey.UPDATE_METADATA, UpdateMetadataRequest, UpdateMetadataResponse),
            _api(ApiKey.CONTROLLED_SHUTDOWN, ControlledShutdownRequest, ControlledShutdownResponse),
            _api(ApiKey.OFFSET_COMMIT, OffsetCommitRequest, OffsetCommitResponse),
            _api(ApiKey.OFFSET_FETCH, OffsetFetchRequest, OffsetFetchResponse),
            _api(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest, FindCoordinatorResponse),
            _api(ApiKey.JOIN_GROUP, JoinGroupRequest, JoinGroupResponse),
            _api(ApiKey.HEARTBEAT, HeartbeatRequest, HeartbeatResponse),
            _api(ApiKey.LEAVE_GROUP, LeaveGroupRequest, LeaveGroupResponse),
            _api(ApiKey.SYNC_GROUP, SyncGroupRequest, SyncGroupResponse),
            _api(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest, DescribeGroupsResponse),
            _api(ApiKey.LIST_GROUPS, ListGroupsRequest, ListGroupsResponse),
            _api(ApiKey.API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse),
            _api(ApiKey.CREATE_TOPICS, CreateTopicsRequest, CreateTopicsResponse),
            _api(ApiKey.DELETE_TOPICS, DeleteTopicsRequest, DeleteTopicsResponse),
            _api(ApiKey.DELETE_RECORDS, DeleteRecordsRequest, DeleteRecordsResponse),
            _api(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest, InitProducerIdResponse),
            _api(ApiKey.OFFSET_FOR_LEADER_EPOCH, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
            _api(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest, DescribeConfigsResponse),
            _api(ApiKey.ALTER_CONFIGS, AlterConfigsRequest, AlterConfigsResponse),
            _api(ApiKey.ALTER_REPLICA_LOG_DIRS, AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse),
            _api(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest, DescribeLogDirsResponse),
            _api(ApiKey.CREATE_PARTITIONS, CreatePartitionsRequest, CreatePartitionsResponse),
            _api(ApiKey.DELETE_GROUPS, DeleteGroupsRequest, DeleteGroupsResponse),
            _api(ApiKey.ELECT_LEADERS, ElectLeadersRequest, ElectLeadersResponse),
            _api(
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                IncrementalAlterConfigsRequest,
                IncrementalAlterConfigsResponse,
            ),
            _api(
                ApiKey.ALTER_PARTITION_REASSIGNMENTS,
                AlterPartitionReassignmentsRequest,
                AlterPartitionReassignmentsResponse,
            ),
            _api(
                ApiKey.LIST_PARTITION_REASSIGNMENTS,
                ListPartitionReassignmentsRequest,
                ListPartitionReassignmentsResponse,
            ),
            _api(ApiKey.OFFSET_DELETE, OffsetDeleteRequest, OffsetDeleteResponse),
            _api(ApiKey.ALTER_PARTITION, AlterPartitionRequest, AlterPartitionResponse),
            _api(ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest, UpdateFeaturesResponse),
            _api(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest, DescribeClusterResponse),
            _api(ApiKey.DESCRIBE_PRODUCERS, DescribeProducersRequest, DescribeProducersResponse),
            _api(ApiKey.ALLOCATE_PRODUCER_IDS, AllocateProducerIdsRequest, AllocateProducerIdsResponse),
            _api(
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                ConsumerGroupHeartbeatRequest,
                ConsumerGroupHeartbeatResponse,
            ),
            _api(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
            _api(
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                DescribeTopicPartitionsRequest,
                DescribeTopicPartitionsResponse,
            ),
        )
    }
)


@dataclass(slots=True)
class RequestHeader:
    """What stands before the body of every request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


def read_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """The header of a request, and where its body starts. `frame` is without the size.

    Of an API that is not declared only key, version and correlation id are read.
    """
    try:
        key, version, correlation_id = _START.unpack_from(frame)
        api = APIS.get(key)
        if api is None or (version == 0 and _lacks_client_id(key, version)):
            return RequestHeader(key, version, correlation_id), _START.size
        # The client id is never compact, not even in the flexible header.
        (length,) = _INT16.unpack_from(frame, _START.size)
        client_id, pos = None, _START.size + _INT16.size
        if length >= 0:
            start, pos = pos, pos + length
            if pos > len(frame):
                raise MalformedError(f"the client id claims a length of {length}, past the bytes at hand")
            client_id = str(frame[start:pos], "utf-8", "replace")
        if version in api.flexible:
            pos = skip_tags(frame, pos, len(frame))
    except (struct.error, IndexError):
        raise MalformedError("the request ends within its header") from None
    return RequestHeader(key, version, correlation_id, client_id), pos


def _lacks_client_id(key: int, version: int) -> bool:
    """The one request older than the client id."""
    return key == ApiKey.CONTROLLED_SHUTDOWN and version == 0


def frame_request(header: RequestHeader, request: object) -> list[Buffer]:
    """A request ready to be sent, its size in front."""
    key, version = header.api_key, header.api_version
    head = bytearray(_INT32.size) + _START.pack(key, version, header.correlation_id)
    if not _lacks_client_id(key, version):
        client_id = None if header.client_id is None else header.client_id.encode()
        head += _INT16.pack(-1 if client_id is None else len(client_id)) + (client_id or b"")
        if version in spec_of(type(request)).flexible:
            head.append(0)
    buffers: list[Buffer] = []
    encode_into(request, version, head, buffers)
    _INT32.pack_into(head, 0, sum(map(len, buffers)) - _INT32.size)
    return buffers


def frame_response(api_key: int, version: int, correlation_id: int, response: object) -> list[Buffer]:
    """A response ready to be sent, its size in front."""
    size, write = _response_form(api_key, version, type(response))  # type: ignore[arg-type]  # mypy doubts that it is hashable
    head = bytearray(size)
    buffers: list[Buffer] = []
    write(response, head, buffers)
    size = len(head) if len(buffers) == 1 else sum(map(len, buffers))
    _SIZE_AND_CORRELATION.pack_into(head, 0, size - _INT32.size, correlation_id)
    return buffers


@cache
def _response_form(api_key: int, version: int, cls: Any) -> tuple[int, Encode]:
    """How long the header of a response is, its size in front, and what writes the rest."""
    return _SIZE_AND_CORRELATION.size + APIS[api_key].response_has_tags(version), encoder(cls, version)


def read_response_header(api_key: int, version: int, frame: memoryview) -> tuple[int, int]:
    """The correlation id of a response, and where its body starts. `frame` is without the size."""
    try:
        (correlation_id,) = _INT32.unpack_from(frame)
        pos = _INT32.size
        if APIS[api_key].response_has_tags(version):
            pos = skip_tags(frame, pos, len(frame))
    except (struct.error, IndexError):
        raise MalformedError("the response ends within its header") from None
    return correlation_id, pos
