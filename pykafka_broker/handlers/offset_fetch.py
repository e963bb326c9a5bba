"""OffsetFetch 0-10: committed offsets of one group, or from version 8 on of several, each answered for itself. A group
may have no name here, as in Kafka.

In version 0 nothing committed is UNKNOWN_TOPIC_OR_PARTITION, and there are no notes: it was made for ZooKeeper.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from pykafka_broker.coordinator.group_coordinator import OFFSETS_TOPIC
from pykafka_broker.coordinator.offsets_fetch import NO_OFFSET, groups_of, response_of
from pykafka_broker.handlers.services import Call, Services, error_code
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchResponseGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafka_broker.protocol.messages.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchResponse,
    )

Answer = OffsetFetchResponseGroup | Coroutine[Any, Any, OffsetFetchResponseGroup]


def handle(
    services: Services, call: Call, request: OffsetFetchRequest
) -> OffsetFetchResponse | Coroutine[Any, Any, OffsetFetchResponse]:
    asked = groups_of(request, call.version)
    answers = [_fetch(services, call, group, request.require_stable) for group in asked]
    found = [answer for answer in answers if isinstance(answer, OffsetFetchResponseGroup)]
    if len(found) == len(answers):
        return _answer(services, call, request, found)
    return _answer_later(services, call, request, answers)


async def _answer_later(
    services: Services, call: Call, request: OffsetFetchRequest, answers: Sequence[Answer]
) -> OffsetFetchResponse:
    waiting = [answer for answer in answers if not isinstance(answer, OffsetFetchResponseGroup)]
    settled = iter(await asyncio.gather(*waiting))
    found = [answer if isinstance(answer, OffsetFetchResponseGroup) else next(settled) for answer in answers]
    return _answer(services, call, request, found)


def _answer(
    services: Services, call: Call, request: OffsetFetchRequest, groups: list[OffsetFetchResponseGroup]
) -> OffsetFetchResponse:
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


def _fetch(services: Services, call: Call, asked: OffsetFetchRequestGroup, require_stable: bool) -> Answer:
    try:
        shard = services.groups.shard(asked.group_id)
        answer = shard.fetch_offsets(asked, call.version, require_stable=require_stable)
        settling = services.groups.settling(asked.group_id)
    except KafkaError as error:
        return _refused(asked, error)
    return answer if settling is None else _settled(asked, answer, settling)


async def _settled(
    asked: OffsetFetchRequestGroup, answer: OffsetFetchResponseGroup, settling: Coroutine[Any, Any, None]
) -> OffsetFetchResponseGroup:
    """What may yet be lost with this broker is not told."""
    try:
        await settling
    except KafkaError as error:
        return _refused(asked, error)
    return answer


def _refused(asked: OffsetFetchRequestGroup, error: KafkaError) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error_code(error))
