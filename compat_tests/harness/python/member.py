"""What every Python program here shares: its orders, its lines out, its lines in."""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Orders:
    """The program's argument; the package's docstring says what each means."""

    bootstrap: str
    group: str
    topic: str
    members: list[str]
    session_ms: int
    heartbeat_ms: int
    protocol: str
    assignor: str | None
    metadata: str | None
    static: bool
    hold: bool


class Report:
    """Writes events; lines of different threads do not mix."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def tell(self, member: str, event: str, **what: object) -> None:
        line = json.dumps({"member": member, "event": event, "at": time.time(), **what})
        with self._lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def assigned(self, member: str, partitions: Iterable[int]) -> None:
        self.tell(member, "assigned", partitions=sorted(partitions))

    def revoked(self, member: str, partitions: Iterable[int]) -> None:
        self.tell(member, "revoked", partitions=sorted(partitions))

    def records(self, member: str, partition: int, records: list[tuple[int, str]]) -> None:
        self.tell(member, "records", partition=partition, records=records)

    def committed(self, member: str, positions: Mapping[int, int]) -> None:
        self.tell(member, "committed", positions=positions)

    def trouble(self, member: str, error: object) -> None:
        self.tell(member, "trouble", text=repr(error))


def orders_and_report() -> tuple[Orders, Report]:
    """Read the argument, say ready, and wait for "go" where the program is held."""
    orders, report = Orders(**json.loads(sys.argv[1])), Report()
    report.tell("", "ready")
    if orders.hold:
        sys.stdin.readline()
    return orders, report


def listen(stops: Mapping[str, Callable[[], object]], kill: Callable[[], object] | None = None) -> None:
    """Obey the lines that come in until they end, or until `kill`; then everybody leaves."""
    for line in sys.stdin:
        word, _, name = line.strip().partition(" ")
        if word == "leave":
            stops[name]()
        elif word == "kill" and kill is not None:
            kill()
            break
    for stop in stops.values():
        stop()


def run_in_threads(
    orders: Orders,
    report: Report,
    consume: Callable[[Orders, Report, str, threading.Event], None],
    kill: Callable[[], object] | None = None,
) -> None:
    """One thread a member, each until it is told to leave."""
    stops = {name: threading.Event() for name in orders.members}
    threads = [threading.Thread(target=consume, args=(orders, report, n, stop)) for n, stop in stops.items()]
    for thread in threads:
        thread.start()
    listen({name: stop.set for name, stop in stops.items()}, kill)
    for thread in threads:
        thread.join()
