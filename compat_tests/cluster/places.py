"""Where the brokers of a cluster live and which roads lead there: on loopback, behind relays, in a namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from compat_tests.servers import HOST, free_port

if TYPE_CHECKING:
    from compat_tests.servers import Zookeeper


@dataclass(frozen=True, slots=True)
class Place:
    """Where one broker listens, how others come to it, and how it comes to ZooKeeper."""

    port: int
    advertised: int
    zookeeper: str
    host: str = HOST
    launcher: tuple[str, ...] = ()


class Land(Protocol):
    """Gives brokers their places, and may cut one of them off."""

    def place(self, number: int) -> Place: ...

    def knows(self, number: int, pid: int) -> None:
        """Broker `number` now runs as this process."""

    def cut(self, number: int) -> None:
        """Nothing passes between the broker and anybody else from now on; nobody is told."""

    def mend(self, number: int) -> None: ...

    def close(self) -> None: ...


class Loopback:
    """All on one machine, with nothing between them: cannot be cut."""

    def __init__(self, zookeeper: Zookeeper) -> None:
        self._zookeeper = zookeeper

    def place(self, number: int) -> Place:
        port = free_port()
        return Place(port, port, self._zookeeper.connect)

    def knows(self, number: int, pid: int) -> None:
        """Of no use here."""

    def cut(self, number: int) -> None:
        raise NotImplementedError(f"there is no road to broker {number} that could be cut")

    mend = cut

    def close(self) -> None:
        """Nothing was opened."""
