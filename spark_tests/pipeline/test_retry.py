"""Failed records wait, are tried again, and end as dead letters that can be put back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.pipeline.retry import RetryJob, redrive, retry
from spark_tests.broker_side import fill, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server
    from pykafka_broker.pipeline.topics import Kafka

PICKY = "spark_tests.pipeline.handlers:picky"


def test_a_record_is_tried_again_later_and_in_the_end_is_a_dead_letter(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic
) -> None:
    name = topic()
    fill(broker, name, ["fine", "third", "never"], key=b"key", headers=[("own", b"1")])
    job = RetryJob(at, name, PICKY, tiers=2, first_delay=0.5, factor=2)
    told: list[str] = []
    done = retry(segments, job, report=told.append)
    assert (done.succeeded, done.retried, done.dead) == (2, 4, 1)
    first, second, dead = (stored(broker, job.tier(number)) for number in (1, 2, 3))
    assert [[m.value() for m in tier] for tier in (first, second, dead)] == [
        [b"third", b"never"],
        [b"third", b"never"],
        [b"never"],
    ]
    assert second[0].timestamp()[1] - first[0].timestamp()[1] >= 500, "half a second in the first tier"
    assert dead[0].timestamp()[1] - second[1].timestamp()[1] >= 1000, "a second in the next"
    assert dead[0].key() == b"key"
    assert dict(dead[0].headers()) == {
        "own": b"1",
        "retry-origin": f"{name}-0@2".encode(),
        "retry-attempt": b"3",
        "retry-reason": b"Refused: attempt 3 of b'never'",
    }
    assert retry(segments, job).succeeded == 0, "nothing is handled twice"


def test_dead_letters_go_back_once_and_start_over(
    segments: SparkSession, at: Kafka, broker: Server, topic: MakeTopic
) -> None:
    name = topic()
    fill(broker, name, ["never"], key=b"key", headers=[("own", b"1")])
    job = RetryJob(at, name, PICKY, tiers=0)
    assert retry(segments, job).dead == 1
    assert redrive(segments, at, name) == 1
    assert redrive(segments, at, name) == 0
    back = stored(broker, name)[1]
    assert (back.key(), back.value()) == (b"key", b"never")
    assert back.headers() == [("own", b"1"), ("retry-redriven", b"1")]
    assert retry(segments, job).dead == 1
    assert redrive(segments, at, name) == 1
    assert dict(stored(broker, name)[2].headers())["retry-redriven"] == b"2"


def test_a_handler_or_topic_that_is_not_there_is_named(
    segments: SparkSession, at: Kafka, topic: MakeTopic
) -> None:
    name = topic()
    for handler, message in (
        ("no_such_module:f", "No module named 'no_such_module'"),
        ("json:missing", "has no attribute 'missing'"),
        ("json:__name__", "is not a function"),
    ):
        with pytest.raises(PipelineError, match=message):
            retry(segments, RetryJob(at, name, handler))
    with pytest.raises(PipelineError, match="no topic nowhere at"):
        retry(segments, RetryJob(at, "nowhere", PICKY))
    with pytest.raises(PipelineError, match=f"no topic {name}-dead at"):
        redrive(segments, at, name)
