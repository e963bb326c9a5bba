"""What can happen to the brokers of a cluster and their ZooKeeper, drawn at random, and how it is mended."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compat_tests.cluster.brokers import NUMBERS, SESSION_MS

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from compat_tests.cluster.brokers import Cluster

KINDS = ("kill", "kill", "kill two", "stop", "pause", "cut", "expire", "zookeeper")
"""The commonest in the world is the commonest here."""
_VICTIMS = {"kill two": 2, "zookeeper": 0}
"""Brokers it happens to, where that is not one."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that happens to some brokers, or to ZooKeeper, and lasts for some seconds."""

    kind: str
    victims: tuple[int, ...]
    seconds: float

    @classmethod
    def drawn(cls, chance: random.Random) -> Fault:
        """Shorter than a session or longer: what others may not have noticed is as dangerous."""
        kind = chance.choice(KINDS)
        victims = tuple(chance.sample(NUMBERS, _VICTIMS.get(kind, 1)))
        return cls(kind, victims, chance.uniform(0, 2 * SESSION_MS / 1000))

    @contextlib.contextmanager
    def strikes(self, cluster: Cluster) -> Iterator[None]:
        """It strikes on entry, and all is mended on exit."""
        if self.kind.startswith("kill"):
            cluster.kill(*self.victims)
        elif self.kind == "zookeeper":
            cluster.zookeeper.stop()
        for victim in self.victims:
            self._strike(cluster, victim)
        yield
        if self.kind == "zookeeper":
            cluster.zookeeper.start()
        for victim in self.victims:
            self._mend(cluster, victim)

    def _strike(self, cluster: Cluster, victim: int) -> None:
        if self.kind == "stop":
            cluster.stop(victim)
        elif self.kind == "pause":
            cluster.pause(victim)
        elif self.kind == "cut":
            cluster.land.cut(victim)
        elif self.kind == "expire" and victim in cluster.registered():
            cluster.expire(victim)

    def _mend(self, cluster: Cluster, victim: int) -> None:
        if self.kind in ("kill", "kill two", "stop"):
            cluster.start(victim)
        elif self.kind == "pause":
            cluster.wake(victim)
        elif self.kind == "cut":
            cluster.land.mend(victim)

    def __str__(self) -> str:
        return f"{self.kind} {self.victims} for {self.seconds:.1f} s"
