"""A broker killed with -9 under running queries, and started again with the same port and directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from compat_tests.conftest import create_topic
from compat_tests.servers import wait_until
from spark_tests.broker_side import fill, stored_values
from spark_tests.connector import Arrived

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import MakeBroker
    from spark_tests.conftest import Connect


@pytest.mark.feature("Spark: a broker that dies")
def test_a_query_in_the_middle_of_a_topic_survives_the_broker(
    connect: Connect, own_broker: MakeBroker, checkpoint: Path
) -> None:
    broker = own_broker()
    kafka = connect(broker)
    name = create_topic(broker.bootstrap, "read", 2)
    for partition in (0, 1):
        fill(broker, name, range(40), partition=partition)
    arrived = Arrived()
    query = kafka.start(kafka.stream(subscribe=name, maxOffsetsPerTrigger=4), arrived, checkpoint)
    wait_until(lambda: len(arrived.batches) >= 2, "the query is on its way")
    broker.kill()
    assert len(arrived.rows) < 80, "all was read already: the broker died under nothing"
    broker.start()
    fill(broker, name, range(40, 50))
    query.processAllAvailable()
    assert arrived.places == [(0, offset) for offset in range(50)] + [(1, offset) for offset in range(40)]


@pytest.mark.feature("Spark: a broker that dies")
def test_a_copy_from_topic_to_topic_survives_the_broker(
    connect: Connect, own_broker: MakeBroker, checkpoint: Path
) -> None:
    broker = own_broker()
    kafka = connect(broker)
    source, target = create_topic(broker.bootstrap, "source"), create_topic(broker.bootstrap, "target")
    fill(broker, source, range(30))
    stream = kafka.stream(subscribe=source, maxOffsetsPerTrigger=5).select("value")
    query = kafka.start_into(stream, checkpoint, topic=target)
    wait_until(lambda: query.lastProgress is not None, "the first batch is copied")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    broker.kill()
    for number in range(30, 40):
        producer.produce(source, str(number))
    broker.start()
    assert producer.flush(60) == 0
    query.processAllAvailable()
    assert stored_values(broker, target) == [str(number) for number in range(40)]
