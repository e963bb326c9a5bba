"""OffsetFetch, versions 0 to 10: how far a group has read. Up to version 7 a request asks for one group, from 8 on for
several; up to 9 topics are named, from 10 on they have ids. Nothing committed is -1, also where there is no group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from pykafka_broker.protocol.types import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from pykafka_broker.coordinator.group import Group
    from pykafka_broker.coordinator.offsets import ByPartition, Committed, Offsets
    from pykafka_broker.coordinator.topics import Topics

FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_TOPIC_IDS = 10
FIRST_VERSION_WITH_ERROR = 2
NO_OFFSET = -1


def groups_of(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    """What is asked, group by group, whichever way the version says it."""
    if version >= FIRST_VERSION_WITH_GROUPS:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def response_of(
    groups: Sequence[OffsetFetchResponseGroup], request: OffsetFetchRequest, version: int
) -> OffsetFetchResponse:
    """The answers, in the form of the version. The oldest can say only partition by partition what is wrong."""
    if version >= FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(groups=list(groups))
    (group,) = groups
    if group.error_code and version < FIRST_VERSION_WITH_ERROR:
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetFetchResponsePartition(
                            partition_index=index,
                            committed_offset=NO_OFFSET,
                            metadata="",
                            error_code=group.error_code,
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in request.topics or ()
            ]
        )
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


class OffsetFetches:
    """Answers questions for committed offsets. Owns nothing."""

    def __init__(self, topics: Topics, offsets: Offsets) -> None:
        self._topics = topics
        self._offsets = offsets

    def fetch(
        self, group: Group | None, request: OffsetFetchRequestGroup, version: int, *, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """The offsets of one group. Where `require_stable`, one that an open transaction may change is refused."""
        group_id = request.group_id
        if group is not None:
            try:
                group.check_fetch(request.member_id, request.member_epoch)
            except KafkaError as error:
                return OffsetFetchResponseGroup(group_id=group_id, error_code=error.code)
        committed = {} if group is None else self._offsets.of_group(group_id)
        wanted = self._everything(committed) if request.topics is None else request.topics
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        topics = []
        for topic in wanted:
            name, topic_id = self._resolve(topic, by_id=by_id)
            if name is None:
                if request.topics is not None:
                    topics.append(_unknown(topic))
                continue
            offsets = committed.get(name) or {}
            partitions = []
            for index in topic.partition_indexes:
                if require_stable and self._offsets.is_pending(group_id, name, index):
                    partitions.append(_partition(index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT))
                    continue
                found = offsets.get(index)
                if found is not None and by_id and found.topic_id not in (topic_id, ZERO_UUID):
                    found = None  # committed for a topic of this name that is gone
                partitions.append(_partition(index, found))
            topics.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions))
        return OffsetFetchResponseGroup(group_id=group_id, topics=topics)

    def _everything(self, committed: Mapping[str, ByPartition]) -> list[OffsetFetchRequestTopics]:
        return [
            OffsetFetchRequestTopics(
                name=name,
                topic_id=self._topics.topic_id(name) or ZERO_UUID,
                partition_indexes=list(partitions),
            )
            for name, partitions in committed.items()
        ]

    def _resolve(self, topic: OffsetFetchRequestTopics, *, by_id: bool) -> tuple[str | None, UUID]:
        """The topic's name and id; without a name if it is meant by an id that no topic has."""
        return (self._topics.name(topic.topic_id) if by_id else topic.name), topic.topic_id


def _unknown(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    partitions = [_partition(index, None, ErrorCode.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes]
    return OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=partitions)


def _partition(
    index: int, found: Committed | None, error: ErrorCode = ErrorCode.NONE
) -> OffsetFetchResponsePartitions:
    if found is None:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=error
        )
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
    )
