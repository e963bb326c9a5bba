"""The controller's requests as Kafka 3.9 speaks them between brokers, and what the answers say."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from pykafka_broker.cluster.controller.requests import LeaderAndIsr, Response, StopReplica, UpdateMetadata
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from pykafka_broker.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from pykafka_broker.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

    from pykafka_broker.cluster.controller.requests import Request
    from pykafka_broker.cluster.view import BrokerInfo

_CODES = {int(code): code for code in ErrorCode}
_SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True)
class Wired:
    message: object
    newest: int
    """The version that Kafka 3.9 speaks."""


def to_wire(request: Request, listener: str) -> Wired:
    """`listener` names the one that brokers reach each other by."""
    match request:
        case LeaderAndIsr():
            return Wired(_leader_and_isr(request, listener), 7)
        case UpdateMetadata():
            return Wired(_update_metadata(request), 8)
        case StopReplica():
            return Wired(_stop_replica(request), 4)
        case _:
            assert_never(request)


def from_wire(request: Request, response: Any) -> Response:
    """What the answer to the request says; partitions it does not name are left out."""
    error = _code(response.error_code)
    match request:
        case LeaderAndIsr():
            names = {p.topic_id: p.topic for p in request.partitions}
            found = {
                (names[topic.topic_id], p.partition_index): _code(p.error_code)
                for topic in response.topics
                if topic.topic_id in names
                for p in topic.partition_errors
            }
            return Response(error, found)
        case UpdateMetadata():
            return Response(error, {})
        case StopReplica():
            asked = {(p.topic, p.partition) for p in request.partitions if p.delete}
            named = {(p.topic_name, p.partition_index): p.error_code for p in response.partition_errors}
            if error is not ErrorCode.NONE:
                named = dict.fromkeys(asked, error) | named
            return Response(error, {tp: _code(code) for tp, code in named.items() if tp in asked})
        case _:
            assert_never(request)


def _code(number: int) -> ErrorCode:
    return _CODES.get(number, ErrorCode.UNKNOWN_SERVER_ERROR)


def _leader_and_isr(request: LeaderAndIsr, listener: str) -> LeaderAndIsrRequest:
    topics: dict[tuple[str, uuid.UUID], list[LeaderAndIsrPartitionState]] = defaultdict(list)
    for p in request.partitions:
        info = p.info
        topics[p.topic, p.topic_id].append(
            LeaderAndIsrPartitionState(
                partition_index=p.partition,
                controller_epoch=request.controller_epoch,
                leader=info.leader,
                leader_epoch=info.leader_epoch,
                isr=list(info.isr),
                partition_epoch=info.partition_epoch,
                replicas=list(info.replicas),
                adding_replicas=list(info.adding),
                removing_replicas=list(info.removing),
                is_new=p.is_new,
                leader_recovery_state=int(info.recovering),
            )
        )
    return LeaderAndIsrRequest(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=[
            LeaderAndIsrTopicState(topic_name=name, topic_id=topic_id, partition_states=states)
            for (name, topic_id), states in topics.items()
        ],
        live_leaders=list(_live_leaders(request.leaders, listener)),
    )


def _live_leaders(leaders: Iterable[BrokerInfo], listener: str) -> Iterable[LeaderAndIsrLiveLeader]:
    for broker in leaders:
        if listener in broker.endpoints:
            host, port = broker.endpoints[listener]
            yield LeaderAndIsrLiveLeader(broker_id=broker.id, host_name=host, port=port)


def _update_metadata(request: UpdateMetadata) -> UpdateMetadataRequest:
    topics: dict[tuple[str, uuid.UUID], list[UpdateMetadataPartitionState]] = defaultdict(list)
    for p in request.partitions:
        topics[p.topic, p.topic_id].append(
            UpdateMetadataPartitionState(
                partition_index=p.partition,
                controller_epoch=request.controller_epoch,
                leader=p.leader,
                leader_epoch=p.leader_epoch,
                isr=list(p.isr),
                zk_version=p.partition_epoch,
                replicas=list(p.replicas),
                offline_replicas=list(p.offline_replicas),
            )
        )
    return UpdateMetadataRequest(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=[
            UpdateMetadataTopicState(topic_name=name, topic_id=topic_id, partition_states=states)
            for (name, topic_id), states in topics.items()
        ],
        live_brokers=[_live_broker(broker) for broker in request.brokers],
    )


def _live_broker(broker: BrokerInfo) -> UpdateMetadataBroker:
    endpoints = [
        UpdateMetadataEndpoint(
            port=port,
            host=host,
            listener=name,
            security_protocol=_SECURITY_PROTOCOLS[broker.security.get(name, "PLAINTEXT")],
        )
        for name, (host, port) in broker.endpoints.items()
    ]
    return UpdateMetadataBroker(id=broker.id, endpoints=endpoints, rack=broker.rack)


def _stop_replica(request: StopReplica) -> StopReplicaRequest:
    topics: dict[str, list[StopReplicaPartitionState]] = defaultdict(list)
    for p in request.partitions:
        topics[p.topic].append(
            StopReplicaPartitionState(
                partition_index=p.partition, leader_epoch=p.leader_epoch, delete_partition=p.delete
            )
        )
    return StopReplicaRequest(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        topic_states=[
            StopReplicaTopicState(topic_name=name, partition_states=states) for name, states in topics.items()
        ],
    )
