"""What can have configs, by its number in requests, and which broker is meant by a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Services

TOPIC: Final = 2
BROKER: Final = 4
_KINDS: Final = (TOPIC, BROKER, 8, 16, 32)  # loggers of a broker, clients that report metrics, groups


def exists(kind: int) -> bool:
    """Whether there is such a kind of resource in Kafka; not all of them are served here."""
    return kind in _KINDS


def broker_named(services: Services, name: str) -> int | None:
    """None for all brokers. A broker can be altered only by asking itself, as in Kafka."""
    if not name:
        return None
    if not name.lstrip("-").isdecimal():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != services.broker_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {services.broker_id}, but received {name}",
        )
    return services.broker_id
