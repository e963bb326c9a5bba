"""Faults at random from a printed seed: whatever clients were told stays true.

A minute by default. By hand for hours, or again what failed (the seed decides which faults, in which order):
`PYKAFKA_FAULT_SECONDS=7200 PYKAFKA_FAULT_SEED=42 pytest -m long compat_tests/cluster/test_random_faults.py`
"""

from __future__ import annotations

import os
import random
import sys
import time
from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.faults import Fault
from compat_tests.cluster.ordeal import Ordeal

if TYPE_CHECKING:
    from compat_tests.cluster.brokers import Cluster

pytestmark = pytest.mark.long
ROUND_SECONDS = 60
"""After so long all is held against the log and a new topic begins: hours need no more memory than a minute."""


def test_random_faults_break_no_promise(
    cuttable_with_zookeeper: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = cuttable_with_zookeeper
    seconds = float(os.environ.get("PYKAFKA_FAULT_SECONDS") or ROUND_SECONDS)
    seed = int(os.environ.get("PYKAFKA_FAULT_SEED") or random.randrange(1 << 32))

    def say(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}")
            sys.stdout.flush()

    say(f"faults for {seconds:.0f} s, seed {seed}")
    chance = random.Random(seed)
    until = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < until:
        rounds += 1
        with Ordeal(cluster, f"round-{rounds}") as ordeal:
            end_of_round = min(until, time.monotonic() + ROUND_SECONDS)
            while time.monotonic() < end_of_round:
                fault = Fault.drawn(chance)
                say(f"round {rounds}: {fault}")
                with fault.strikes(cluster):
                    time.sleep(fault.seconds)
                # Now and then the next fault finds the cluster still busy with the last one.
                if chance.random() < 0.7:
                    ordeal.carries_on(chance.randrange(1, 300))
        say(f"round {rounds}: {len(ordeal.history.acknowledged)} records acknowledged, all promises kept")
