"""OffsetCommit (versions 0 to 10) and OffsetDelete (version 0): writing down how far a group has read.

Commits come from members, or from outside a group without members ("simple" commits, generation -1). Up to version 9
topics are named, from 10 on they have ids."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

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


class _Target(NamedTuple):
    """A topic somebody commits for."""

    name: str
    topic_id: UUID
    size: int | None
    partitions: Sequence[OffsetCommitRequestPartition]
    missing: ErrorCode
    """What to say if there is no such topic."""

    def problem(self, partition: int) -> ErrorCode:
        if self.size is None:
            return self.missing
        if not 0 <= partition < self.size:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    def has(self, partitions: Sequence[int]) -> bool:
        """Whether it has all of these."""
        return self.size is not None and min(partitions) >= 0 and max(partitions) < self.size


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
        targets = [self._target(topic, caller.version) for topic in request.topics]
        refusal = _refusal(group, request, targets, caller.version)
        expires = UNSET if request.retention_time_ms == UNSET else now_ms + request.retention_time_ms
        accepted, topics = [], []
        for target in targets:
            if not target.partitions and target.size is not None:
                continue  # of those without partitions only unknown ones are repeated
            offsets = _offsets_of(target, now_ms)
            errors = self._errors(target, offsets, refusal)
            if any(errors):
                offsets = _without(offsets, errors)
            if offsets.partitions:
                accepted.append(offsets)
            partitions, *_ = Columns.of(OffsetCommitRequestPartition, target.partitions).fields
            topics.append(
                OffsetCommitResponseTopic(
                    name=target.name,
                    topic_id=target.topic_id,
                    partitions=Columns(OffsetCommitResponsePartition, (partitions, errors)),
                )
            )
        if accepted:
            decision.committed = CommittedOffsets(request.group_id, accepted, expires)
        decision.reply(caller.token, OffsetCommitResponse(topics=topics))
        return not refusal

    def _errors(self, target: _Target, offsets: TopicOffsets, refusal: ErrorCode) -> Sequence[int]:
        limit = self._settings.offset_metadata_max_bytes
        metadata = offsets.metadata
        if not refusal and target.has(offsets.partitions) and not any(metadata):
            return (0,) * len(metadata)
        return [
            target.problem(partition)
            or refusal
            or (ErrorCode.OFFSET_METADATA_TOO_LARGE if len(note) > limit else ErrorCode.NONE)
            for partition, note in zip(offsets.partitions, metadata, strict=True)
        ]

    def _target(self, topic: OffsetCommitRequestTopic, version: int) -> _Target:
        if version < FIRST_VERSION_WITH_TOPIC_IDS:
            name, missing = topic.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            topic_id = self._topics.topic_id(name) or ZERO_UUID
        else:
            name, missing = self._topics.name(topic.topic_id) or "", ErrorCode.UNKNOWN_TOPIC_ID
            topic_id = topic.topic_id
        return _Target(name, topic_id, self._topics.partition_count(name), topic.partitions, missing)

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


def _offsets_of(target: _Target, now_ms: int) -> TopicOffsets:
    """What is asked for, with what a client may leave out filled in."""
    rows = Columns.of(OffsetCommitRequestPartition, target.partitions)
    partitions, offsets, epochs, timestamps, metadata = rows.fields
    if None in metadata:
        metadata = [note or "" for note in metadata]
    if UNSET in timestamps:
        timestamps = [now_ms if timestamp == UNSET else timestamp for timestamp in timestamps]
    return TopicOffsets(target.name, target.topic_id, partitions, offsets, epochs, metadata, timestamps)


def _without(offsets: TopicOffsets, errors: Sequence[int]) -> TopicOffsets:
    """Those without an error."""
    good = [not error for error in errors]
    columns: list[Any] = [tuple(compress(column, good)) for column in offsets[2:]]
    return TopicOffsets(offsets.topic, offsets.topic_id, *columns)


def _refusal(
    group: Group | None, request: OffsetCommitRequest, targets: Sequence[_Target], version: int
) -> ErrorCode:
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
            for target in targets:
                for partition in target.partitions:
                    check(target.topic_id, partition.partition_index)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
