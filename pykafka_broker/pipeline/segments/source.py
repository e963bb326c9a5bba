"""The Spark data source `kafka-segments`, batch and stream.

```
spark.dataSource.register(KafkaSegments)
spark.read.format("kafka-segments").option("subscribe", "matches").load("/var/lib/kafka")
```
Options, named and meant as those of Spark's `kafka` source where it has them:

- `path` or `log.dirs`: the broker's log directories, with commas between them
- `subscribe`: topics, with commas; or `subscribePattern`: a regular expression for whole names
- `startingOffsets`, `endingOffsets`: `earliest`, `latest`, or JSON `{"topic": {"0": 17}}` (-2 earliest, -1 latest)
- `includeHeaders`: false
- `isolationLevel`: `read_committed` (the default here), or `read_uncommitted`
- `failOnDataLoss`: true: an offset asked for that retention has removed is an error
- `splitBytes`: how much of a segment one task reads, about 128 MB

A schema with fewer columns (`.schema("value binary")`) is the quickest way to read fewer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from pykafka_broker.pipeline.errors import PipelineError
from pykafka_broker.pipeline.segments.files import Partition, Tail, find_partitions
from pykafka_broker.pipeline.segments.splits import Split, log_directories, plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql.types import StructType

    from pykafka_broker.pipeline.segments.columns import Columns

NAME = "kafka-segments"
COLUMNS = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
HEADERS_COLUMN = "headers array<struct<key:string,value:binary>>"
SPLIT_BYTES = 128 << 20
EARLIEST, LATEST = -2, -1

Offsets = dict[str, dict[str, int]]
"""As Spark writes them: topic, then partition as text."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a read, understood."""

    log_dirs: str
    topics: tuple[str, ...] | None
    pattern: str | None
    starting: str
    ending: str
    headers: bool
    committed: bool
    fail_on_data_loss: bool
    split_bytes: int

    @classmethod
    def of(cls, options: Mapping[str, str], starting: str) -> Settings:
        """PipelineError for what makes no sense."""
        log_dirs = options.get("path") or options.get("log.dirs")
        subscribe, pattern = options.get("subscribe"), options.get("subscribePattern")
        if not log_dirs:
            raise PipelineError(f"{NAME} needs the broker's log.dirs: give them as the path or as log.dirs")
        if (subscribe is None) == (pattern is None):
            raise PipelineError(f"{NAME} needs one of subscribe and subscribePattern")
        isolation = options.get("isolationLevel", "read_committed")
        if isolation not in {"read_committed", "read_uncommitted"}:
            raise PipelineError(f"isolationLevel {isolation}: read_committed and read_uncommitted are known")
        return cls(
            log_dirs=log_dirs,
            topics=None if subscribe is None else tuple(name.strip() for name in subscribe.split(",")),
            pattern=pattern,
            starting=options.get("startingOffsets", starting),
            ending=options.get("endingOffsets", "latest"),
            headers=_flag(options, "includeHeaders", default=False),
            committed=isolation == "read_committed",
            fail_on_data_loss=_flag(options, "failOnDataLoss", default=True),
            split_bytes=int(options.get("splitBytes", SPLIT_BYTES)),
        )


@dataclass
class LogView:
    """The partitions asked for and where they end, followed from look to look. Owned by one reader."""

    settings: Settings
    _tails: dict[tuple[str, int], Tail] = field(default_factory=dict)

    def look(self) -> dict[tuple[str, int], Tail]:
        """Every partition there is now, and its end."""
        settings = self.settings
        found: list[Partition] = find_partitions(
            log_directories(settings.log_dirs), settings.topics, settings.pattern
        )
        for partition in found:
            tail = self._tails.setdefault((partition.topic, partition.number), Tail(partition))
            tail.advance()
        return {(p.topic, p.number): self._tails[p.topic, p.number] for p in found}

    def end_of(self, tail: Tail) -> int:
        return tail.last_stable_offset if self.settings.committed else tail.end_offset

    def resolve(self, wanted: str) -> Offsets:
        """`earliest`, `latest` or JSON as offsets of every partition there is."""
        tails = self.look()
        special = {"earliest": EARLIEST, "latest": LATEST}.get(wanted.strip().lower())
        named: Offsets = {} if special is not None else _parse(wanted)
        resolved: Offsets = {}
        for (topic, number), tail in tails.items():
            offset = special if special is not None else named.get(topic, {}).get(str(number))
            if offset is None:
                raise PipelineError(f"no offset for partition {number} of {topic}: name every partition")
            if offset == EARLIEST:
                offset = tail.partition.first_offset()
            elif offset == LATEST:
                offset = self.end_of(tail)
            resolved.setdefault(topic, {})[str(number)] = offset
        return resolved

    def splits(self, starting: Offsets, ending: Offsets) -> list[InputPartition]:
        """Tasks for what lies between; a partition that `starting` does not know begins at its start."""
        splits: list[InputPartition] = []
        for (topic, number), tail in self.look().items():
            upto = ending.get(topic, {}).get(str(number))
            if upto is None:
                continue
            earliest = tail.partition.first_offset()
            first = starting.get(topic, {}).get(str(number), earliest)
            if first < earliest < upto and self.settings.fail_on_data_loss:
                raise PipelineError(
                    f"{topic}-{number}: offsets {first} to {earliest - 1} are no longer on disk;"
                    " failOnDataLoss=false reads what is left"
                )
            splits += plan(
                tail.partition,
                max(first, earliest),
                min(upto, tail.end_offset),
                tail.position,
                self.settings.split_bytes,
                committed=self.settings.committed,
            )
        return splits


class KafkaSegments(DataSource):
    """Log segments of this broker, or of Apache Kafka, read from disk."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        headers = _flag(self.options, "includeHeaders", default=False)
        return f"{COLUMNS}, {HEADERS_COLUMN}" if headers else COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        return SegmentsReader(Settings.of(self.options, "earliest"), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return SegmentsStreamReader(Settings.of(self.options, "latest"), schema)


class SegmentsReader(DataSourceReader):
    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.view = LogView(settings)
        self.names = schema.fieldNames()

    def partitions(self) -> Sequence[InputPartition]:
        settings = self.view.settings
        splits = self.view.splits(self.view.resolve(settings.starting), self.view.resolve(settings.ending))
        return splits or [_nothing()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _batches(partition, self.names)


class SegmentsStreamReader(DataSourceStreamReader):
    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.view = LogView(settings)
        self.names = schema.fieldNames()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self.view.resolve(self.view.settings.starting)

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self.view.resolve("latest")

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self.view.splits(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _batches(partition, self.names)


def _batches(split: InputPartition, names: list[str]) -> Iterator[pa.RecordBatch]:
    assert isinstance(split, Split)
    for columns in split.columns(headers="headers" in names):
        begin, end = np.searchsorted(columns.offset, [split.first, split.upto])
        if begin < end:
            batch = pa.RecordBatch.from_arrays([_column(split, columns, name) for name in names], names)
            yield batch.slice(begin, end - begin)


def _column(split: Split, columns: Columns, name: str) -> pa.Array:
    count = len(columns.offset)
    match name:
        case "key":
            return columns.key
        case "value":
            return columns.value
        case "topic":
            return pa.repeat(split.topic, count)
        case "partition":
            return pa.repeat(pa.scalar(split.partition, pa.int32()), count)
        case "offset":
            return pa.array(columns.offset)
        case "timestamp":
            return pa.array(columns.timestamp * 1000).view(pa.timestamp("us", "UTC"))
        case "timestampType":
            return pa.array(columns.timestamp_type)
        case "headers":
            return columns.headers
    raise PipelineError(f"{NAME} has no column {name}")


def _nothing() -> Split:
    """A task without records: Spark wants one."""
    return Split("", -1, "/dev/null", 0, 0, 0, 0)


def _parse(text: str) -> Offsets:
    try:
        return {
            topic: {str(int(number)): int(offset) for number, offset in partitions.items()}
            for topic, partitions in json.loads(text).items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise PipelineError(
            f'offsets {text!r}: expected earliest, latest or {{"topic": {{"0": 17}}}}'
        ) from error


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    return options.get(name, str(default)).lower() == "true"
