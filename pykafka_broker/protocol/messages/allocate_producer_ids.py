"""A broker asks the controller for a block of producer ids."""

from __future__ import annotations

from pykafka_broker.protocol.types import field, int16, int32, int64, message


@message(api_key=67, versions="0", flexible="0+")
class AllocateProducerIdsRequest:
    """The broker that asks."""

    broker_id: int = field(int32, "0+")
    broker_epoch: int = field(int64, "0+", default=-1)


@message(api_key=67, versions="0", flexible="0+")
class AllocateProducerIdsResponse:
    """The block, which nobody else is given."""

    throttle_time_ms: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    producer_id_start: int = field(int64, "0+")
    producer_id_len: int = field(int32, "0+")
