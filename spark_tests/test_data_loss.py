"""`failOnDataLoss` both ways: a query whose next records are gone ends, or goes on with what is left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from compat_tests.samples import BEGIN_MS
from spark_tests.broker_side import delete_records, expire_old_records, fill, recreate_topic
from spark_tests.connector import Connector, fails

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server

HOUR_MS = 3_600_000


def lose_by_delete_records(broker: Server, topic: str) -> None:
    fill(broker, topic, range(10, 16))
    delete_records(broker, topic, before=13)


def lose_by_retention(broker: Server, topic: str) -> None:
    """The first three are years old and in a segment of their own: time between records closes a segment."""
    fill(broker, topic, range(10, 13), timestamp=BEGIN_MS)
    fill(broker, topic, range(13, 16), timestamp=int(time.time() * 1000))
    expire_old_records(broker, topic, until=13)


@pytest.mark.feature("Spark: failOnDataLoss")
@pytest.mark.parametrize("lose", [lose_by_delete_records, lose_by_retention])
def test_records_gone_before_they_were_read(
    kafka: Connector,
    broker: Server,
    topic: MakeTopic,
    checkpoint: Path,
    lose: Callable[[Server, str], None],
) -> None:
    name = topic(segment_ms=HOUR_MS)
    fill(broker, name, range(10), timestamp=BEGIN_MS)
    strict = kafka.stream(subscribe=name, failOnDataLoss=True)
    assert len(kafka.drain(strict, checkpoint).values) == 10
    lose(broker, name)
    with fails(naming="Some data may have been lost"):
        kafka.drain(strict, checkpoint)
    lenient = kafka.stream(subscribe=name, failOnDataLoss=False)
    assert kafka.drain(lenient, checkpoint).values == ["13", "14", "15"]
    fill(broker, name, ["16"])
    assert kafka.drain(strict, checkpoint).values == ["16"]


@pytest.mark.feature("Spark: failOnDataLoss")
def test_a_topic_made_anew_with_fewer_records(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name = topic()
    fill(broker, name, range(10))
    strict = kafka.stream(subscribe=name, failOnDataLoss=True)
    assert len(kafka.drain(strict, checkpoint).values) == 10
    recreate_topic(broker, name)
    fill(broker, name, ["again 0", "again 1"])
    with fails(naming="offset was changed from 10 to 2"):
        kafka.drain(strict, checkpoint)
    lenient = kafka.stream(subscribe=name, failOnDataLoss=False)
    kafka.drain(lenient, checkpoint)
    fill(broker, name, ["again 2"])
    assert kafka.drain(lenient, checkpoint).values == ["again 2"]


@pytest.mark.feature("Spark: failOnDataLoss")
def test_a_topic_made_anew_with_fewer_partitions(
    kafka: Connector, broker: Server, topic: MakeTopic, checkpoint: Path
) -> None:
    name = topic(partitions=2)
    fill(broker, name, ["0"])
    fill(broker, name, ["1"], partition=1)
    strict = kafka.stream(subscribe=name, failOnDataLoss=True)
    assert kafka.drain(strict, checkpoint).places == [(0, 0), (1, 0)]
    recreate_topic(broker, name)
    fill(broker, name, ["again 0", "again 1"])
    with fails(naming="have been deleted"):
        kafka.drain(strict, checkpoint)
    lenient = kafka.stream(subscribe=name, failOnDataLoss=False)
    assert kafka.drain(lenient, checkpoint).values == ["again 1"]
