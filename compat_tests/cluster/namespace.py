"""A broker in a network namespace of its own: one cable leads there, and it can be pulled."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from typing import TYPE_CHECKING

from compat_tests.cluster.places import Place
from compat_tests.provision import Unavailable
from compat_tests.servers import free_port

if TYPE_CHECKING:
    from compat_tests.servers import Zookeeper

FAR = 3
"""The number of the broker that lives at the other end of the cable."""


class Namespace:
    """Broker 3 alone in a namespace, all else on this side; owner of the namespace and the cable.

    ZooKeeper must listen on every address. Raises Unavailable where namespaces cannot be made.
    """

    def __init__(self, zookeeper: Zookeeper) -> None:
        if os.geteuid() != 0:
            raise Unavailable("only root makes network namespaces")
        if shutil.which("ip") is None:
            raise Unavailable("there is no `ip` to make a network namespace with")
        name = uuid.uuid4().hex[:8]
        self._name, self._here, self._there = f"pykafka-{name}", f"pk{name}a", f"pk{name}b"
        subnet = uuid.uuid4().int % 64 * 4
        self._near, self._far = f"192.0.2.{subnet + 1}", f"192.0.2.{subnet + 2}"
        self._zookeeper = zookeeper
        self._ip("netns", "add", self._name)
        try:
            self._lay_cable()
        except Unavailable:
            self.close()
            raise

    def _lay_cable(self) -> None:
        inside = ("-n", self._name)
        self._ip("link", "add", self._here, "type", "veth", "peer", "name", self._there, "netns", self._name)
        self._ip("address", "add", f"{self._near}/30", "dev", self._here)
        self._ip(*inside, "address", "add", f"{self._far}/30", "dev", self._there)
        self._ip("link", "set", self._here, "up")
        self._ip(*inside, "link", "set", "lo", "up")
        self._ip(*inside, "link", "set", self._there, "up")

    def place(self, number: int) -> Place:
        port, keeper = free_port(), f"{self._near}:{self._zookeeper.port}"
        if number == FAR:
            return Place(port, port, keeper, self._far, ("ip", "netns", "exec", self._name))
        return Place(port, port, keeper, self._near)

    def knows(self, number: int, pid: int) -> None:
        """Of no use here."""

    def cut(self, number: int) -> None:
        assert number == FAR, "there is one cable"
        self._ip("-n", self._name, "link", "set", self._there, "down")

    def mend(self, number: int) -> None:
        assert number == FAR, "there is one cable"
        self._ip("-n", self._name, "link", "set", self._there, "up")

    def close(self) -> None:
        self._ip("netns", "delete", self._name)

    @staticmethod
    def _ip(*arguments: str) -> None:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
