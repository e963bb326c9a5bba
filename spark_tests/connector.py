"""Spark's Kafka connector with the broker filled in, and streaming queries whose rows a test can look at.

Options are keyword arguments; an underscore stands for a dot: `kafka_compression_type="zstd"`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from compat_tests.conftest import properties_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

PATIENCE = {
    # A reader at the end of a topic waits this long for more before it may ask anything else.
    "kafka.fetch.max.wait.ms": "20",
    "kafka.reconnect.backoff.max.ms": "200",
}


@dataclass(slots=True)
class Arrived:
    """The rows that reached a streaming query's sink, by batch; a batch that is repeated replaces itself."""

    batches: dict[int, list[Row]] = field(default_factory=dict)

    def add(self, frame: DataFrame, batch: int) -> None:
        self.batches[batch] = frame.collect()

    @property
    def rows(self) -> list[Row]:
        return [row for batch in sorted(self.batches) for row in self.batches[batch]]

    @property
    def sizes(self) -> list[int]:
        """How many rows each batch brought, batches without any left out."""
        return [len(self.batches[batch]) for batch in sorted(self.batches) if self.batches[batch]]

    @property
    def places(self) -> list[tuple[int, int]]:
        """Partition and offset of every row, sorted: what a test compares for gaps and duplicates."""
        return sorted((row.partition, row.offset) for row in self.rows)

    @property
    def values(self) -> list[str]:
        return [value_of(row) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Connector:
    """One broker as Spark sees it; stops the queries it started when it is closed."""

    spark: SparkSession
    bootstrap: str
    _queries: list[StreamingQuery] = field(default_factory=list)

    def read(self, **options: object) -> DataFrame:
        """A batch read, planned and not yet run."""
        return self.spark.read.format("kafka").options(**self._options(options)).load()

    def stream(self, **options: object) -> DataFrame:
        """A streaming read, from the beginning where nothing else is said."""
        begin = (
            {} if any(name.startswith("starting") for name in options) else {"startingOffsets": "earliest"}
        )
        return self.spark.readStream.format("kafka").options(**self._options(begin | options)).load()

    def write(self, frame: DataFrame, **options: object) -> None:
        """A batch write, done when the broker acknowledged all of it."""
        frame.write.format("kafka").options(**self._options(options)).save()

    def start(
        self, frame: DataFrame, arrived: Arrived, checkpoint: Path, *, available_now: bool = False
    ) -> StreamingQuery:
        """Run a query that hands its rows to the test."""
        return self._start(frame.writeStream.foreachBatch(arrived.add), checkpoint, available_now)

    def start_into(
        self, frame: DataFrame, checkpoint: Path, *, available_now: bool = False, **options: object
    ) -> StreamingQuery:
        """Run a query that writes its rows to Kafka."""
        writer = frame.writeStream.format("kafka").options(**self._options(options))
        return self._start(writer, checkpoint, available_now)

    def drain(self, frame: DataFrame, checkpoint: Path) -> Arrived:
        """Run a query over what is there now, to its end; raises what ended it."""
        arrived = Arrived()
        query = self.start(frame, arrived, checkpoint, available_now=True)
        assert query.awaitTermination(60), "the query did not come to its end"
        return arrived

    def close(self) -> None:
        for query in self._queries:
            with contextlib.suppress(StreamingQueryException):
                query.stop()

    def _start(self, writer: DataStreamWriter, checkpoint: Path, available_now: bool) -> StreamingQuery:
        trigger = {"availableNow": True} if available_now else {"processingTime": "0 seconds"}
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()
        self._queries.append(query)
        return query

    def _options(self, options: dict[str, object]) -> dict[str, str]:
        return PATIENCE | {"kafka.bootstrap.servers": self.bootstrap} | properties_of(options)


def value_of(row: Row) -> str:
    return bytes(row.value).decode()


def values(frame: DataFrame) -> list[str]:
    """The values of a batch read, in the order partitions hold them."""
    rows = sorted(frame.collect(), key=lambda row: (row.topic, row.partition, row.offset))
    return [value_of(row) for row in rows]


@contextlib.contextmanager
def fails(naming: str) -> Iterator[None]:
    """Spark gives up inside, and somewhere in its chain of causes says `naming`."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - Spark raises a different type for each place it fails in
        told = "\n".join(_causes(error))
        assert naming in told, f"failed with something else:\n{told}"
    else:
        raise AssertionError(f"did not fail; it should have named {naming!r}")


def _causes(error: BaseException) -> Iterator[str]:
    yield str(error)
    java = getattr(error, "java_exception", None)
    while java is not None:
        yield str(java.toString())
        java = java.getCause()
    if error.__cause__ is not None:
        yield from _causes(error.__cause__)
