"""What a follower says to a leader, as Kafka 3.9 says it between brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from pykafka_broker.protocol.messages.list_offsets import ListOffsetsResponse
    from pykafka_broker.replication.follower_ports import FollowerSettings
    from pykafka_broker.replication.follower_session import PartitionKey, Turn
    from pykafka_broker.replication.follower_state import Progress

NEWEST_FETCH: Final = 17
LATEST: Final = -1
EARLIEST: Final = -2


def fetch_request(settings: FollowerSettings, turn: Turn, named: Iterable[Progress]) -> FetchRequest:
    """The follower is named in both ways, for the version that is spoken to choose."""
    topics: dict[UUID, FetchTopic] = {}
    for progress in named:
        topic = topics.get(progress.topic_id)
        if topic is None:
            topic = topics[progress.topic_id] = FetchTopic(topic_id=progress.topic_id)
        topic.partitions.append(
            FetchPartition(
                partition=progress.index,
                current_leader_epoch=progress.leader_epoch,
                fetch_offset=progress.offset,
                last_fetched_epoch=progress.last_epoch,
                log_start_offset=progress.told_start,
                partition_max_bytes=settings.max_bytes,
            )
        )
    return FetchRequest(
        replica_id=settings.broker_id,
        replica_state=ReplicaState(replica_id=settings.broker_id, replica_epoch=settings.broker_epoch()),
        max_wait_ms=settings.wait_max_ms,
        min_bytes=settings.min_bytes,
        max_bytes=settings.response_max_bytes,
        session_id=turn.session_id,
        session_epoch=turn.epoch,
        topics=list(topics.values()),
        forgotten_topics_data=_forgotten(turn.dropped),
    )


def _forgotten(keys: tuple[PartitionKey, ...]) -> list[ForgottenTopic]:
    topics: dict[UUID, ForgottenTopic] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(index)
    return list(topics.values())


def offset_request(settings: FollowerSettings, progress: Progress, timestamp: int) -> ListOffsetsRequest:
    """Where the leader's log ends (LATEST) or begins (EARLIEST); a replica is told of the uncommitted end."""
    wanted = ListOffsetsPartition(
        partition_index=progress.index, current_leader_epoch=progress.leader_epoch, timestamp=timestamp
    )
    return ListOffsetsRequest(
        replica_id=settings.broker_id,
        topics=[ListOffsetsTopic(name=progress.topic, partitions=[wanted])],
    )


def offset_in(response: ListOffsetsResponse) -> int:
    answer = response.topics[0].partitions[0]
    if answer.error_code != ErrorCode.NONE:
        raise KafkaError(next(code for code in ErrorCode if code == answer.error_code))
    return answer.offset
