"""JSON values as columns, with those that do not decode told apart instead of lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import ParseException
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, StringType, StructType

from pykafka_broker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_CORRUPT = "_corrupt_record"
JSON = "json"
UNDECODED = "undecoded"


def parse_schema(text: str) -> StructType:
    """`team string, minute int`. PipelineError where it cannot be understood."""
    try:
        found = DataType.fromDDL(text)
    except ParseException as error:
        raise PipelineError(f"schema {text!r}: {str(error).strip().splitlines()[0]}") from error
    if not isinstance(found, StructType) or not found.fields:
        raise PipelineError(f"schema {text!r}: expected columns, as in 'team string, minute int'")
    return found


def with_json(frame: DataFrame, schema: str) -> DataFrame:
    """The frame with a column `json` of this schema, and `undecoded`: whether a value was there and did not fit.

    `json` is null where the value is, and where it did not decode.
    """
    wanted = parse_schema(schema)
    parsing = StructType([*wanted.fields]).add(_CORRUPT, StringType())
    parsed = sf.from_json(
        sf.col("value").cast("string"), parsing, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    )
    decoded = frame.withColumn("_parsed", parsed)
    bad = sf.col("value").isNotNull() & (
        sf.col("_parsed").isNull() | sf.col(f"_parsed.{_CORRUPT}").isNotNull()
    )
    return (
        decoded.withColumn(UNDECODED, sf.coalesce(bad, sf.lit(False)))
        .withColumn(JSON, sf.when(sf.col("value").isNotNull() & ~bad, _without_corrupt(wanted)))
        .drop("_parsed")
    )


def _without_corrupt(schema: StructType) -> Column:
    return sf.struct(*[sf.col("_parsed").getField(name).alias(name) for name in schema.fieldNames()])
