"""Adding partitions to topics."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, boolean, field, int16, int32, message, string, struct


@struct
class CreatePartitionsAssignment:
    """The brokers of one new partition."""

    broker_ids: list[int] = field(array(int32), "0+")


@struct
class CreatePartitionsTopic:
    """A topic and how many partitions it shall have in all."""

    name: str = field(string, "0+")
    count: int = field(int32, "0+")
    assignments: list[CreatePartitionsAssignment] | None = field(
        array(CreatePartitionsAssignment), "0+", nullable="0+"
    )


@message(api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """Topics to grow, or only to check."""

    topics: list[CreatePartitionsTopic] = field(array(CreatePartitionsTopic), "0+")
    timeout_ms: int = field(int32, "0+")
    validate_only: bool = field(boolean, "0+")


@struct
class CreatePartitionsTopicResult:
    """A topic, and why it was not grown."""

    name: str = field(string, "0+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+", default=None)


@message(api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """What became of each topic."""

    throttle_time_ms: int = field(int32, "0+")
    results: list[CreatePartitionsTopicResult] = field(array(CreatePartitionsTopicResult), "0+")
