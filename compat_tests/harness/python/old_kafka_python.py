"""kafka-python 1.4 at work, by itself: bootstrap, version to speak, topic, group, count.

Tells, in lines of JSON: the offsets it was given for each codec in turn, the records it read, and where its group is.
"""

from __future__ import annotations

import json
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

CODECS = (None, "gzip", "snappy", "lz4")


def main(bootstrap: str, speak: str, topic: str, group: str, count: int) -> None:
    version = tuple(map(int, speak.split(".")))
    common = {"bootstrap_servers": bootstrap, "api_version": version if any(version) else None}
    sent = 0
    for codec in CODECS:
        producer = KafkaProducer(compression_type=codec, acks="all", **common)
        futures = [
            producer.send(topic, f"v{n}".encode(), f"k{n}".encode()) for n in range(sent, sent + count)
        ]
        producer.flush(30)
        tell("sent", [future.get(30).offset for future in futures])
        producer.close(10)
        sent += count
    seen = read(topic, group, sent // 2, common)
    seen += read(topic, group, sent - len(seen), common)
    tell("read", seen)


def read(topic: str, group: str, count: int, common: dict) -> list:
    """The next `count` records of the group, and a commit behind them."""
    settings = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = KafkaConsumer(topic, max_poll_records=10, consumer_timeout_ms=20_000, **settings, **common)
    seen = []
    for record in consumer:
        seen.append([record.offset, record.key.decode(), record.value.decode()])
        if len(seen) == count:
            break
    consumer.commit()
    tell("committed", consumer.committed(TopicPartition(topic, 0)))
    consumer.close()
    return seen


def tell(what: str, value: object) -> None:
    print(json.dumps({what: value}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]))
