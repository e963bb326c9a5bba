"""Members by aiokafka, as tasks of one loop."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError
from member import Orders, Report, listen, orders_and_report

try:
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
except ImportError:  # releases before 0.9 took them from kafka-python
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Listener(ConsumerRebalanceListener):
    def __init__(self, report: Report, name: str) -> None:
        self._report, self._name = report, name

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._report.assigned(self._name, [place.partition for place in assigned])

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._report.revoked(self._name, [place.partition for place in revoked])


async def consume(orders: Orders, report: Report, name: str, stop: asyncio.Event) -> None:
    extra: dict[str, object] = {"group_instance_id": name} if orders.static else {}
    if orders.assignor:
        extra["partition_assignment_strategy"] = [ASSIGNORS[orders.assignor]]
    consumer = AIOKafkaConsumer(
        bootstrap_servers=orders.bootstrap,
        group_id=orders.group,
        client_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=orders.session_ms,
        heartbeat_interval_ms=orders.heartbeat_ms,
        fetch_max_wait_ms=100,
        **extra,
    )
    consumer.subscribe([orders.topic], listener=Listener(report, name))
    await consumer.start()
    while not stop.is_set():
        seen = await consumer.getmany(timeout_ms=100)
        for place, records in seen.items():
            report.records(name, place.partition, [(r.offset, r.value.decode()) for r in records])
        positions = {
            place: (records[-1].offset + 1, orders.metadata or "") for place, records in seen.items()
        }
        if not positions:
            continue
        try:
            await consumer.commit(positions)
        except KafkaError as error:
            report.trouble(name, error)
        else:
            report.committed(name, {place.partition: offset for place, (offset, _) in positions.items()})
    await consumer.stop()
    report.tell(name, "left")


async def main() -> None:
    orders, report = orders_and_report()
    loop = asyncio.get_running_loop()
    stops = {name: asyncio.Event() for name in orders.members}

    def stopper(stop: asyncio.Event) -> object:
        return lambda: loop.call_soon_threadsafe(stop.set)

    # The lines are read by a thread of the process: a read of stdin cannot be awaited.
    listening = asyncio.to_thread(listen, {name: stopper(stop) for name, stop in stops.items()})
    await asyncio.gather(listening, *(consume(orders, report, name, stop) for name, stop in stops.items()))


if __name__ == "__main__":
    asyncio.run(main())
