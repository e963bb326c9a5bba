"""Producer ids for idempotent and transactional producers."""

from __future__ import annotations

from pykafka_broker.protocol.types import boolean, field, int16, int32, int64, message, string


@message(api_key=22, versions="0-6", flexible="2+")
class InitProducerIdRequest:
    """Without a transactional id: just a fresh producer id."""

    transactional_id: str | None = field(string, "0+", nullable="0+")
    transaction_timeout_ms: int = field(int32, "0+")
    producer_id: int = field(int64, "3+", default=-1)
    producer_epoch: int = field(int16, "3+", default=-1)
    enable2_pc: bool = field(boolean, "6+")
    keep_prepared_txn: bool = field(boolean, "6+")


@message(api_key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse:
    """The producer id and the epoch to use with it."""

    throttle_time_ms: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    producer_id: int = field(int64, "0+", default=-1)
    producer_epoch: int = field(int16, "0+")
    ongoing_txn_producer_id: int = field(int64, "6+", default=-1)
    ongoing_txn_producer_epoch: int = field(int16, "6+", default=-1)
