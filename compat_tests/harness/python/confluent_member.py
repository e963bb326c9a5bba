"""Members by confluent-kafka, with either protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition
from member import Orders, Report, orders_and_report, run_in_threads

if TYPE_CHECKING:
    import threading


def settings(orders: Orders, name: str, report: Report) -> dict[str, object]:
    chosen: dict[str, object] = {
        "bootstrap.servers": orders.bootstrap,
        "group.id": orders.group,
        "client.id": name,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 500,
        "error_cb": lambda error: report.trouble(name, error),
    }
    if orders.static:
        chosen["group.instance.id"] = name
    if orders.protocol == "classic":
        chosen |= {"session.timeout.ms": orders.session_ms, "heartbeat.interval.ms": orders.heartbeat_ms}
        chosen |= {"partition.assignment.strategy": orders.assignor} if orders.assignor else {}
    else:
        chosen["group.protocol"] = orders.protocol  # releases before 2.4 do not know the word
        chosen |= {"group.remote.assignor": orders.assignor} if orders.assignor else {}
    return chosen


def consume(orders: Orders, report: Report, name: str, stop: threading.Event) -> None:
    consumer = Consumer(settings(orders, name, report))

    def assigned(_: Consumer, places: list[TopicPartition]) -> None:
        report.assigned(name, [place.partition for place in places])

    def revoked(_: Consumer, places: list[TopicPartition]) -> None:
        report.revoked(name, [place.partition for place in places])

    consumer.subscribe([orders.topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    while not stop.is_set():
        seen: dict[int, list[tuple[int, str]]] = {}
        for message in consumer.consume(200, 0.1):
            if message.error():
                report.trouble(name, message.error())
            else:
                seen.setdefault(message.partition(), []).append((message.offset(), message.value().decode()))
        for partition, records in seen.items():
            report.records(name, partition, records)
        commit(consumer, orders, report, name, {p: records[-1][0] + 1 for p, records in seen.items()})
    consumer.close()
    report.tell(name, "left")


def commit(consumer: Consumer, orders: Orders, report: Report, name: str, positions: dict[int, int]) -> None:
    if not positions:
        return
    extra = {"metadata": orders.metadata} if orders.metadata is not None else {}
    places = [TopicPartition(orders.topic, p, offset, **extra) for p, offset in positions.items()]
    try:
        done = consumer.commit(offsets=places, asynchronous=False)
    except KafkaException as error:
        report.trouble(name, error)
    else:
        report.committed(name, {place.partition: place.offset for place in done if place.error is None})


if __name__ == "__main__":
    run_in_threads(*orders_and_report(), consume)
