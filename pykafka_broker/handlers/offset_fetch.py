"""OffsetFetch 0-10: committed offsets of one group, or from version 8 on of several, each answered for itself. A group
may have no name here, as in Kafka.

In version 0 nothing committed is UNKNOWN_TOPIC_OR_PARTITION, and there are no notes: it was made for ZooKeeper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.coordinator.group_coordinator import OFFSETS_TOPIC
from pykafka_broker.coordinator.offsets_fetch import NO_OFFSET, groups_of, response_of
from pykafka_broker.handlers.services import Call, Services, error_code
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchResponseGroup

if TYPE_CHECKING:
    from pykafka_broker.protocol.messages.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchResponse,
    )


def handle(services: Services, call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    groups = [
        _fetch(services, call, asked, require_stable=request.require_stable)
        for asked in groups_of(request, call.version)
    ]
    response = response_of(groups, request, call.version)
    if call.version == 0:
        _put_in_old_words(services, response)
    return response


def _put_in_old_words(services: Services, response: OffsetFetchResponse) -> None:
    response.topics = [topic for topic in response.topics if topic.partitions]
    nobody_committed = OFFSETS_TOPIC not in services.metadata.view.topics
    for topic in response.topics:
        for partition in topic.partitions:
            absent = partition.error_code == ErrorCode.NONE and partition.committed_offset == NO_OFFSET
            if absent or nobody_committed:
                partition.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            partition.metadata = ""


def _fetch(
    services: Services, call: Call, asked: OffsetFetchRequestGroup, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    try:
        shard = services.groups.shard(asked.group_id)
        return shard.fetch_offsets(asked, call.version, require_stable=require_stable)
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error_code(error))
