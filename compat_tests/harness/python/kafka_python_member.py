"""Members by kafka-python."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import KafkaConnectionError, KafkaError
from kafka.structs import OffsetAndMetadata
from member import Orders, Report, orders_and_report, run_in_threads

if TYPE_CHECKING:
    import threading

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
with contextlib.suppress(ImportError):  # releases before 2.0 have none
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    ASSIGNORS["sticky"] = StickyPartitionAssignor
with contextlib.suppress(ImportError):  # releases before 3.0 rebalance all at once
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

    ASSIGNORS["cooperative-sticky"] = CooperativeStickyAssignor

NO_EPOCH = (-1,) * (len(OffsetAndMetadata._fields) - 2)
"""Positions have a leader epoch since 2.1."""


class Listener(ConsumerRebalanceListener):
    def __init__(self, report: Report, name: str) -> None:
        self._report, self._name = report, name

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._report.assigned(self._name, [place.partition for place in assigned])

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._report.revoked(self._name, [place.partition for place in revoked])


def consume(orders: Orders, report: Report, name: str, stop: threading.Event) -> None:
    extra: dict[str, object] = {"group_instance_id": name} if orders.static else {}
    if orders.assignor:
        extra["partition_assignment_strategy"] = [ASSIGNORS[orders.assignor]]
    consumer = KafkaConsumer(
        bootstrap_servers=orders.bootstrap,
        group_id=orders.group,
        client_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=orders.session_ms,
        heartbeat_interval_ms=orders.heartbeat_ms,
        fetch_max_wait_ms=100,
        request_timeout_ms=orders.session_ms + 5000,
        reconnect_backoff_max_ms=500,
        **extra,
    )
    consumer.subscribe([orders.topic], listener=Listener(report, name))
    while not stop.is_set():
        try:
            # Not shorter: 3.0.12 may forget to join again when a poll ends in the middle of it, whichever the broker.
            seen = consumer.poll(timeout_ms=1000)
        except KafkaConnectionError as error:  # now and then 3.0.12 tells who polls that no broker was there
            report.trouble(name, error)
            continue
        for place, records in seen.items():
            report.records(name, place.partition, [(r.offset, r.value.decode()) for r in records])
        if not seen:
            continue
        positions = {
            place: OffsetAndMetadata(records[-1].offset + 1, orders.metadata or "", *NO_EPOCH)
            for place, records in seen.items()
        }
        try:
            consumer.commit(positions)
        except KafkaError as error:
            report.trouble(name, error)
        else:
            report.committed(name, {place.partition: kept.offset for place, kept in positions.items()})
    consumer.close()
    report.tell(name, "left")


if __name__ == "__main__":
    run_in_threads(*orders_and_report(), consume)
