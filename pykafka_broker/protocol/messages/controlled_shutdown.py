"""A broker asks the controller to move its leaders away before it stops."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, field, int16, int32, int64, message, string, struct


@message(api_key=7, versions="0-3", flexible="3+")
class ControlledShutdownRequest:
    """The broker that wants to stop."""

    broker_id: int = field(int32, "0+")
    broker_epoch: int = field(int64, "2+", default=-1)


@struct
class RemainingPartition:
    """A partition that could not be moved."""

    topic_name: str = field(string, "0+")
    partition_index: int = field(int32, "0+")


@message(api_key=7, versions="0-3", flexible="3+")
class ControlledShutdownResponse:
    """What it still leads; once that is nothing it may go."""

    error_code: int = field(int16, "0+")
    remaining_partitions: list[RemainingPartition] = field(array(RemainingPartition), "0+")
