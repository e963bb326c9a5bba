"""What a member makes of news: the view after UpdateMetadata, and after configs changed. No I/O."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pykafka_broker.cluster.controller.requests import LEADER_DURING_DELETE
from pykafka_broker.cluster.view import INTERNAL_TOPICS, NO_LEADER, BrokerInfo, PartitionInfo, TopicInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pykafka_broker.cluster.config_changes import ConfigChanged
    from pykafka_broker.cluster.view import ClusterView
    from pykafka_broker.protocol.messages.update_metadata import (
        UpdateMetadataBroker,
        UpdateMetadataPartitionState,
        UpdateMetadataRequest,
        UpdateMetadataTopicState,
    )

_SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_UNKNOWN_YET: Final = PartitionInfo(NO_LEADER, -1, (), (), -1)


def apply_update(
    view: ClusterView, request: UpdateMetadataRequest, configs: Mapping[str, Mapping[str, str]]
) -> ClusterView:
    """Brokers are told whole, partitions only where they changed. `configs` are those of topics that are new."""
    changed: list[TopicInfo] = []
    removed: list[str] = []
    for state in request.topic_states:
        if any(p.leader == LEADER_DURING_DELETE for p in state.partition_states):
            known = view.topics.get(state.topic_name)
            if known is not None and known.topic_id == state.topic_id:
                removed.append(state.topic_name)
        else:
            changed.append(_topic(view, state, configs))
    told = replace(view, controller_id=request.controller_id, controller_epoch=request.controller_epoch)
    told = told.with_brokers({broker.id: _broker(broker) for broker in request.live_brokers})
    return told.with_topics(changed, removed) if changed or removed else told


def _topic(
    view: ClusterView, state: UpdateMetadataTopicState, configs: Mapping[str, Mapping[str, str]]
) -> TopicInfo:
    known = view.topics.get(state.topic_name)
    if known is None or known.topic_id != state.topic_id:
        known = TopicInfo(
            state.topic_name,
            state.topic_id,
            (),
            configs.get(state.topic_name, {}),
            is_internal=state.topic_name in INTERNAL_TOPICS,
        )
    partitions = list(known.partitions)
    for told in state.partition_states:
        while len(partitions) <= told.partition_index:
            partitions.append(_UNKNOWN_YET)
        partitions[told.partition_index] = _partition(told)
    return replace(known, partitions=tuple(partitions))


def _partition(told: UpdateMetadataPartitionState) -> PartitionInfo:
    return PartitionInfo(
        told.leader,
        told.leader_epoch,
        tuple(told.isr),
        tuple(told.replicas),
        told.zk_version,
        offline=tuple(told.offline_replicas),
    )


def _broker(told: UpdateMetadataBroker) -> BrokerInfo:
    endpoints = {e.listener: (e.host, e.port) for e in told.endpoints}
    security = {e.listener: _SECURITY_PROTOCOLS[e.security_protocol] for e in told.endpoints}
    return BrokerInfo(told.id, MappingProxyType(endpoints), told.rack, -1, MappingProxyType(security))


def apply_configs(view: ClusterView, changes: Iterable[ConfigChanged]) -> ClusterView:
    for change in changes:
        if change.topic is None:
            view = view.with_broker_config(change.broker, change.config)
        elif change.topic in view.topics:
            view = view.with_topics([replace(view.topics[change.topic], config=change.config)])
    return view
