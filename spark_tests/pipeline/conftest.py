"""What the pipeline's tests share besides Spark and the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykafka_broker.pipeline.session import prepared
from pykafka_broker.pipeline.topics import Kafka

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from compat_tests.servers import Server


@pytest.fixture(scope="session")
def segments(spark: SparkSession) -> SparkSession:
    """Spark as a pipeline sees it: with the format `kafka-segments`."""
    return prepared(spark)


@pytest.fixture
def at(broker: Server) -> Kafka:
    """The shared broker, as stages are told of it."""
    return Kafka(broker.bootstrap, {"fetch.max.wait.ms": "20"})


@pytest.fixture
def vault(tmp_path: Path) -> str:
    """Where a test keeps its archive."""
    return str(tmp_path / "vault")
