"""Batch writes: where records go, what they carry, and how a refusal is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.samples import CODECS
from spark_tests.broker_side import codecs_on_disk, stored, stored_values
from spark_tests.connector import Connector, fails, value_of, values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.conftest import MakeTopic
    from compat_tests.servers import Server


@pytest.mark.feature("Spark: batch write")
def test_key_value_partition_and_headers_are_stored(
    kafka: Connector, broker: Server, spark: SparkSession, topic: MakeTopic
) -> None:
    name = topic(partitions=2)
    frame = spark.sql(
        """
        SELECT * FROM VALUES
          (1, 'k',  'v',  array(named_struct('key', 'h', 'value', X'01'),
                                named_struct('key', 'h', 'value', X''))),
          (0, NULL, 'no key', NULL),
          (0, '',   NULL, array())
        AS (partition, key, value, headers)
        """
    ).coalesce(1)
    kafka.write(frame, topic=name, includeHeaders=True)
    assert [(m.partition(), m.offset(), m.key(), m.value(), m.headers()) for m in stored(broker, name)] == [
        (0, 0, None, b"no key", None),
        (0, 1, b"", None, None),
        (1, 0, b"k", b"v", [("h", b"\x01"), ("h", b"")]),
    ]


@pytest.mark.feature("Spark: batch write")
def test_each_row_may_name_its_topic(
    kafka: Connector, broker: Server, spark: SparkSession, topic: MakeTopic
) -> None:
    one, two = topic(), topic()
    rows = f"SELECT if(id % 2 = 0, '{one}', '{two}') AS topic, string(id) AS value FROM range(0, 6, 1, 1)"
    kafka.write(spark.sql(rows))
    assert stored_values(broker, one) == ["0", "2", "4"]
    assert stored_values(broker, two) == ["1", "3", "5"]


@pytest.mark.feature("Spark: codecs")
@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_written_as_asked_and_read_back(
    kafka: Connector, broker: Server, spark: SparkSession, topic: MakeTopic, codec: str
) -> None:
    name = topic()
    frame = spark.range(0, 300, 1, 1).selectExpr(f"concat('{codec} compresses this ', id) AS value")
    kafka.write(frame, topic=name, kafka_compression_type=codec, kafka_linger_ms=50)
    expected = [f"{codec} compresses this {number}" for number in range(300)]
    assert codecs_on_disk(broker, name) == {codec}
    assert values(kafka.read(subscribe=name)) == expected
    assert stored_values(broker, name) == expected


@pytest.mark.feature("Spark: batch write")
@pytest.mark.parametrize(("acks", "idempotence"), [("0", False), ("1", False), ("all", False), ("all", True)])
def test_every_level_of_acknowledgement_stores_all(
    kafka: Connector, spark: SparkSession, topic: MakeTopic, acks: str, idempotence: bool
) -> None:
    name = topic()
    frame = spark.range(0, 50, 1, 1).selectExpr("string(id) AS value")
    kafka.write(frame, topic=name, kafka_acks=acks, kafka_enable_idempotence=str(idempotence).lower())
    assert values(kafka.read(subscribe=name)) == [str(number) for number in range(50)]


@pytest.mark.feature("Spark: batch write")
def test_writing_makes_the_topic(kafka: Connector, spark: SparkSession, fresh_name: str) -> None:
    kafka.write(spark.sql("SELECT 'made' AS value"), topic=fresh_name)
    assert [value_of(row) for row in kafka.read(subscribe=fresh_name).collect()] == ["made"]


@pytest.mark.feature("Spark: batch write")
def test_a_record_larger_than_the_topic_allows_is_refused(
    kafka: Connector, broker: Server, spark: SparkSession, topic: MakeTopic
) -> None:
    name = topic(max_message_bytes=1000)
    with fails(naming="RecordTooLargeException"):
        kafka.write(spark.sql("SELECT repeat('x', 2000) AS value"), topic=name)
    kafka.write(spark.sql("SELECT 'small' AS value"), topic=name)
    assert stored_values(broker, name) == ["small"]


@pytest.mark.feature("Spark: batch write")
def test_a_keyless_record_is_refused_by_a_compacted_topic(
    kafka: Connector, broker: Server, spark: SparkSession, topic: MakeTopic
) -> None:
    name = topic(cleanup_policy="compact")
    with fails(naming="InvalidRecordException"):
        kafka.write(spark.sql("SELECT 'no key' AS value"), topic=name)
    kafka.write(spark.sql("SELECT 'k' AS key, 'v' AS value"), topic=name)
    assert stored_values(broker, name) == ["v"]


@pytest.mark.feature("Spark: batch write")
def test_a_partition_that_is_not_there_fails_the_write(
    kafka: Connector, spark: SparkSession, topic: MakeTopic
) -> None:
    frame = spark.sql("SELECT 7 AS partition, 'lost' AS value")
    with fails(naming="not present in metadata"):
        kafka.write(frame, topic=topic(), kafka_max_block_ms=300)


@pytest.mark.feature("Spark: back-pressure")
def test_a_writer_faster_than_the_broker_waits_and_loses_nothing(
    kafka: Connector, broker: Server, spark: SparkSession, topic: MakeTopic
) -> None:
    name = topic()
    frame = spark.range(0, 3000, 1, 1).selectExpr("concat(id, ':', repeat('x', 1000)) AS value")
    kafka.write(frame, topic=name, kafka_buffer_memory=65536, kafka_send_buffer_bytes=8192)
    numbers = [int(value.partition(":")[0]) for value in stored_values(broker, name)]
    assert numbers == list(range(3000))
