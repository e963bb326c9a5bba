"""OffsetCommit (versions 0 to 10) and OffsetDelete (version 0): writing down how far a group has read.

Commits come from members, or from outside a group without members ("simple" commits, generation -1). Up to version 9
topics are named, from 10 on they have ids."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

from pykafka_broker.coordinator.offsets import tombstone
from pykafka_broker.coordinator.records import CommittedOffsets, TopicOffsets
from pykafka_broker.protocol.columns import Columns
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pykafka_broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from pykafka_broker.protocol.types import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from pykafka_broker.coordinator.effects import Caller
    from pykafka_broker.coordinator.group import Decision, Group
    from pykafka_broker.coordinator.offsets import Offsets
    from pykafka_broker.coordinator.settings import GroupSettings
    from pykafka_broker.coordinator.topics import Topics

FIRST_VERSION_WITH_TOPIC_IDS = 10
FIRST_VERSION_THAT_KNOWS_MISSING_GROUPS = 9
UNSET = -1


class OffsetCommits:
    """Answers OffsetCommit and OffsetDelete. Owns nothing."""

    def __init__(self, settings: GroupSettings, topics: Topics, offsets: Offsets) -> None:
        self._settings = settings
        self._topics = topics
        self._offsets = offsets

    def commit(
        self,
        group: Group | None,
        request: OffsetCommitRequest,
        caller: Caller,
        now_ms: int,
        decision: Decision,
    ) -> bool:
        """Whether the group let the caller commit; single offsets may be refused all the same."""
        version = caller.version
        refusal = self._refusal(group, request, version)
        expires = UNSET if request.retention_time_ms == UNSET else now_ms + request.retention_time_ms
        accepted, topics = [], []
        for topic in request.topics:
            name, topic_id, size = self._place(topic, version)
            rows = Columns.of(OffsetCommitRequestPartition, topic.partitions)
            partitions, committed, epochs, timestamps, metadata = rows.fields
            if not partitions and size is not None:
                continue  # of those without partitions only unknown ones are repeated
            times, notes = _filled_in(timestamps, metadata, now_ms)
            offsets = TopicOffsets(name, topic_id, partitions, committed, epochs, notes, times)
            errors: Sequence[int] = (0,) * len(partitions)
            if refusal or size is None or not _within(partitions, size) or any(notes):
                missing = _missing(version) if size is None else ErrorCode.NONE
                errors = self._errors(offsets, size or 0, missing, refusal)
                offsets = _without(offsets, errors) if any(errors) else offsets
            if offsets.partitions:
                accepted.append(offsets)
            results = Columns(OffsetCommitResponsePartition, (partitions, errors))
            topics.append(OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=results))
        if accepted:
            decision.committed = CommittedOffsets(request.group_id, accepted, expires)
        decision.reply(caller.token, OffsetCommitResponse(topics=topics))
        return not refusal

    def _refusal(self, group: Group | None, request: OffsetCommitRequest, version: int) -> ErrorCode:
        """What forbids the whole commit."""
        generation = request.generation_id_or_member_epoch
        if group is None:
            if generation < 0:
                return ErrorCode.NONE
            known = version >= FIRST_VERSION_THAT_KNOWS_MISSING_GROUPS
            return ErrorCode.GROUP_ID_NOT_FOUND if known else ErrorCode.ILLEGAL_GENERATION
        try:
            check = group.check_commit(
                request.member_id, request.group_instance_id, generation, version, transactional=False
            )
            if check is not None:
                for topic in request.topics:
                    _, topic_id, _ = self._place(topic, version)
                    for row in topic.partitions:
                        check(topic_id, row.partition_index)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def _errors(
        self, offsets: TopicOffsets, size: int, missing: ErrorCode, refusal: ErrorCode
    ) -> Sequence[int]:
        """What is wrong with each; `missing` is what to say where there is no such topic."""
        limit = self._settings.offset_metadata_max_bytes
        return [
            missing
            or (ErrorCode.NONE if 0 <= partition < size else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            or refusal
            or (ErrorCode.OFFSET_METADATA_TOO_LARGE if _length(note) > limit else ErrorCode.NONE)
            for partition, note in zip(offsets.partitions, offsets.metadata, strict=True)
        ]

    def _place(self, topic: OffsetCommitRequestTopic, version: int) -> tuple[str, UUID, int | None]:
        """The topic's name and id, and how many partitions it has; None if there is no such topic."""
        if version < FIRST_VERSION_WITH_TOPIC_IDS:
            name = topic.name
            topic_id = self._topics.topic_id(name) or ZERO_UUID
        else:
            topic_id = topic.topic_id
            name = self._topics.name(topic_id) or ""
        return name, topic_id, self._topics.partition_count(name)

    def delete(
        self, group: Group | None, request: OffsetDeleteRequest, caller: Caller, decision: Decision
    ) -> None:
        try:
            if not request.group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            if group is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
            group.check_offset_delete()
        except KafkaError as refused:
            decision.reply(caller.token, OffsetDeleteResponse(error_code=refused.code))
            return
        response = OffsetDeleteResponse()
        committed = self._offsets.of_group(request.group_id)
        for topic in request.topics:
            count = self._topics.partition_count(topic.name)
            if not topic.partitions and count is not None:
                continue  # of those without partitions only unknown ones are repeated
            in_use = group.subscribes_to(topic.name)
            results = []
            for partition in topic.partitions:
                index, error = partition.partition_index, ErrorCode.NONE
                if count is None or not 0 <= index < count:
                    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif in_use:
                    error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                elif index in committed.get(topic.name, ()) or self._offsets.is_pending(
                    request.group_id, topic.name, index
                ):
                    decision.records.append(tombstone(request.group_id, topic.name, index))
                results.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error))
            response.topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
        decision.reply(caller.token, response)


def _filled_in(
    timestamps: Sequence[int], metadata: Sequence[str | None], now_ms: int
) -> tuple[Sequence[int], Sequence[str]]:
    """Timestamps and metadata, with what a client may leave out, as most of them do."""
    count = len(timestamps)
    times = (now_ms,) * count
    if timestamps.count(UNSET) != count:
        times = tuple([now_ms if timestamp == UNSET else timestamp for timestamp in timestamps])
    return times, [note or "" for note in metadata] if any(metadata) else ("",) * count


def _without(offsets: TopicOffsets, errors: Sequence[int]) -> TopicOffsets:
    """Those without an error."""
    good = [not error for error in errors]
    columns: list[Any] = [tuple(compress(column, good)) for column in offsets[2:]]
    return TopicOffsets(offsets.topic, offsets.topic_id, *columns)


def _length(note: str) -> int:
    """As Java counts it: what lies beyond its 16 bits counts twice."""
    return len(note) if note.isascii() else len(note.encode("utf-16-le", "surrogatepass")) // 2


def _within(partitions: Sequence[int], size: int) -> bool:
    """Whether a topic of this size has all of these."""
    if len(partitions) == 1:
        return 0 <= partitions[0] < size
    return min(partitions) >= 0 and max(partitions) < size


def _missing(version: int) -> ErrorCode:
    """What to say where there is no such topic."""
    named = version < FIRST_VERSION_WITH_TOPIC_IDS
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if named else ErrorCode.UNKNOWN_TOPIC_ID
