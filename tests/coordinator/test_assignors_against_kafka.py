"""The assignors held against those of Apache Kafka 4.3.1, on random groups: the same in every partition."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any
from uuid import UUID

from compat_tests import provision
from pykafka_broker.coordinator.assignors import ASSIGNORS, MemberWish, Wishes

GROUPS = 400
# Java walks a HashSet of few and small numbers in their order; so one order can be given to both sides.
TOPICS, PARTITIONS = range(2, 10), 12


def random_group(rng: random.Random) -> dict[str, Any]:
    alike = rng.random() < 0.5
    counts = {topic: rng.randint(1, PARTITIONS) for topic in TOPICS}
    shared = sorted(rng.sample(TOPICS, rng.randint(1, 4)))
    names = [f"m{n:02}" for n in range(rng.randint(1, 8))]
    rng.shuffle(names)
    owners = {
        (t, p): rng.choice([*names, None]) for t, n in counts.items() for p in range(n) if rng.random() < 0.7
    }
    members = []
    for name in names:
        assigned: dict[int, list[int]] = {}
        for (topic, partition), owner in owners.items():
            if owner == name:
                assigned.setdefault(topic, []).append(partition)
        mine = shared if alike else sorted(rng.sample(TOPICS, rng.randint(1, 5)))
        instance = f"i{rng.random()}" if rng.random() < 0.3 else None
        members.append({"id": name, "instance": instance, "topics": mine, "assigned": assigned})
    assignor = rng.choice(["uniform", "uniform", "range"])
    return {"assignor": assignor, "alike": alike, "counts": counts, "members": members}


def ours(group: dict[str, Any]) -> dict[str, dict[str, list[int]]]:
    members = {
        member["id"]: MemberWish(
            dict.fromkeys(UUID(int=topic) for topic in member["topics"]).keys(),
            {UUID(int=topic): frozenset(partitions) for topic, partitions in member["assigned"].items()},
            member["instance"],
        )
        for member in group["members"]
    }
    sizes = {UUID(int=topic): count for topic, count in group["counts"].items()}
    told = ASSIGNORS[group["assignor"]](Wishes(members, sizes, group["alike"]))
    return {
        member: {str(topic.int): sorted(partitions) for topic, partitions in mine.items()}
        for member, mine in told.items()
    }


def test_assignors_agree_with_apache_kafka() -> None:
    rng = random.Random(848)
    groups = [random_group(rng) for _ in range(GROUPS)]
    with provision.or_skip():
        classpath = provision.kafka_classpath("4.3.1")
        java = provision.java()
    program = Path(__file__).with_name("AssignInJava.java")
    answers = subprocess.run(
        [str(java), "-cp", classpath, str(program)],
        input="\n".join(map(json.dumps, groups)),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout.splitlines()
    assert len(answers) == GROUPS
    for group, answer in zip(groups, answers, strict=True):
        assert ours(group) == json.loads(answer), group
