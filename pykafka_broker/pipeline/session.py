"""The Spark session a command runs in: local unless told otherwise, with Spark's Kafka connector."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from pykafka_broker.pipeline.errors import PipelineError, one_line
from pykafka_broker.pipeline.segments.source import KafkaSegments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
"""Fetched through Ivy where no jars are given."""
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    # Dates of an archive's directories and the output of SQL do not depend on where a command runs.
    "spark.sql.session.timeZone": "UTC",
}


@contextlib.contextmanager
def pipeline_session(
    master: str = "local[*]",
    jars: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    verbose: bool = True,
) -> Iterator[SparkSession]:
    """A session that ends with the block; one that is already there is used and left running.

    Unless `verbose`, nothing its JVM prints is shown, except when it does not start.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield prepared(running)
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("pykafka-pipeline").config(map=_SETTINGS)
    source = ("spark.jars", jars) if jars else ("spark.jars.packages", CONNECTOR)
    builder = builder.config(*source)
    if master.startswith("local"):
        builder = builder.config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        # Spark's 200 are for clusters: each is a task, and in a query with state a database of its own.
        builder = builder.config("spark.sql.shuffle.partitions", str(os.cpu_count() or 2))
    builder = builder.config(map=dict(settings or {}))
    if verbose:
        session = builder.getOrCreate()
    else:
        # An error a stage reports in one line need not be logged in fifty.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        with _quiet_start():
            session = builder.getOrCreate()
    try:
        yield prepared(session)
    finally:
        session.stop()


def prepared(spark: SparkSession) -> SparkSession:
    """The session with `kafka-segments` known, state kept in RocksDB, and times in Parquet that other tools read."""
    spark.dataSource.register(KafkaSegments)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_STORE)
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    return spark


@contextlib.contextmanager
def _quiet_start() -> Iterator[None]:
    """What a JVM started inside prints goes to a file, now and later; PipelineError tells its last line if it fails."""
    with tempfile.TemporaryFile("w+") as said:
        shown = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield
        except Exception as error:
            said.seek(0)
            words = [line.strip() for line in said if line.strip() and not line.startswith("\tat ")]
            last = words[-1] if words else one_line(error)
            raise PipelineError(f"Spark does not start: {last} (--verbose shows all)") from error
        finally:
            os.dup2(shown, 2)
            os.close(shown)
