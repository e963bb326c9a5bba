"""Moving replicas between the log directories of a broker."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int16, int32, message, string, struct


@struct
class AlterReplicaLogDirTopic:
    """Partitions of one topic."""

    name: str = field(string, "0+")
    partitions: list[int] = field(array(int32), "0+")


@struct
class AlterReplicaLogDir:
    """A directory and the topics to move there."""

    path: str = field(string, "0+")
    topics: list[AlterReplicaLogDirTopic] = field(array(AlterReplicaLogDirTopic), "0+")


@message(api_key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    """Directories and what shall be in them."""

    dirs: list[AlterReplicaLogDir] = field(array(AlterReplicaLogDir), "0+")


@struct
class AlterReplicaLogDirPartitionResult:
    """A partition and whether its move was begun."""

    partition_index: int = field(int32, "0+")
    error_code: int = field(int16, "0+")


@struct
class AlterReplicaLogDirTopicResult:
    """The partitions of one topic."""

    topic_name: str = field(string, "0+")
    partitions: list[AlterReplicaLogDirPartitionResult] = field(
        array(AlterReplicaLogDirPartitionResult), "0+"
    )


@message(api_key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    """Whether each move was begun."""

    throttle_time_ms: int = field(int32, "0+")
    results: list[AlterReplicaLogDirTopicResult] = field(array(AlterReplicaLogDirTopicResult), "0+")
