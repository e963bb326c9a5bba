"""Plays football: sends the events of four matches to a topic, as they happen or as fast as they can be made up.

python play.py --minutes 20              # twenty minutes of football at once
python play.py --minutes 20 --speed 60   # a minute each second
"""

from __future__ import annotations

import argparse
import json
import random
import time
from datetime import UTC, datetime, timedelta

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

MATCHES = [("Lisbon", "Porto"), ("Oslo", "Bergen"), ("Turin", "Naples"), ("Kyoto", "Osaka")]
KINDS = ["pass"] * 30 + ["foul"] * 4 + ["shot"] * 5 + ["goal"]


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--bootstrap", default="127.0.0.1:9092")
    arguments.add_argument("--topic", default="matches")
    arguments.add_argument("--minutes", type=int, default=20)
    arguments.add_argument("--speed", type=float, help="how much faster than real time; at once if not given")
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()

    admin = AdminClient({"bootstrap.servers": given.bootstrap})
    if given.topic not in admin.list_topics(timeout=10).topics:
        admin.create_topics([NewTopic(given.topic, num_partitions=4)])[given.topic].result(10)
    producer = Producer({"bootstrap.servers": given.bootstrap})
    kick_off = datetime.now(UTC).replace(second=0, microsecond=0)
    if not given.speed:
        kick_off -= timedelta(minutes=given.minutes)
    luck, sent = random.Random(given.seed), 0
    for second in range(given.minutes * 60):
        at = kick_off + timedelta(seconds=second)
        for teams in MATCHES:
            if luck.random() < 0.6:
                team = luck.choices(teams, weights=(3, 2))[0]
                event = {
                    "match": "-".join(teams),
                    "team": team,
                    "kind": luck.choice(KINDS),
                    "at": at.isoformat().replace("+00:00", "Z"),
                }
                milliseconds = int(at.timestamp() * 1000)
                producer.produce(
                    given.topic, json.dumps(event).encode(), event["match"].encode(), timestamp=milliseconds
                )
                sent += 1
        producer.poll(0)
        if given.speed:
            time.sleep(1 / given.speed)
    producer.flush()
    print(f"{sent} events of {given.minutes} minutes in {given.topic}")


if __name__ == "__main__":
    main()
