"""The columns of the report: the features a test of a client may prove."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Area:
    """Features that share a table, of the clients named; of all that no other area names where it names none."""

    name: str
    features: tuple[str, ...]
    clients: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Later:
    """Something Kafka has that no test here proves yet; `api` is the key of a request it cannot do without."""

    name: str
    api: int


AREAS = (
    Area(
        "Connecting and living with a broker",
        ("connect and negotiate", "restart and reconnect", "1,000 partitions"),
    ),
    Area(
        "Producing",
        (
            "produce: acks",
            "produce: codecs",
            "produce: headers",
            "produce: timestamps",
            "produce: idempotence",
            "empty and null values",
            "big messages",
        ),
    ),
    Area("Consuming", ("consume assigned", "seek by offset", "seek by timestamp")),
    Area(
        "Groups",
        (
            "groups: join, leave, rebalance",
            "groups: static members",
            "groups: new protocol",
            "commit and fetch offsets",
        ),
    ),
    Area(
        "Administration",
        (
            "admin: topics",
            "admin: partitions",
            "admin: configs",
            "admin: delete records",
            "admin: cluster",
            "admin: groups",
        ),
    ),
    Area("Errors", ("errors: unknown topic", "errors: too large", "errors: refused", "errors: fenced")),
    Area(
        "Kafka Streams",
        (
            "streams: word count",
            "streams: stream-table join",
            "streams: windowed join",
            "streams: stopped and started",
            "streams: killed and replaced",
            "streams: instances share the work",
            "streams: broker killed and restarted",
            "streams: internal topics",
        ),
        ("Kafka Streams",),
    ),
    Area(
        "Kafka Connect",
        (
            "connect: standalone",
            "connect: distributed",
            "connect: stopped and started",
            "connect: killed and replaced",
            "connect: offsets altered",
            "connect: internal topics",
        ),
        ("Kafka Connect",),
    ),
    Area(
        "Flink's Kafka connector",
        ("flink: source to sink", "flink: killed and restored"),
        ("Flink Kafka connector",),
    ),
)
FEATURES = tuple(feature for area in AREAS for feature in area.features)


def areas_of(client: str) -> tuple[Area, ...]:
    """The tables in which a client has a row."""
    return tuple(area for area in AREAS if client in area.clients) or tuple(
        area for area in AREAS if not area.clients
    )


LATER = (
    Later("transactions", 24),
    Later("security: SASL", 17),
    Later("security: ACLs", 29),
    Later("share groups", 78),
    Later("streams groups (KIP-1071)", 88),
)
