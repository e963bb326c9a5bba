"""A Java program as a child process that is told things, says things, is stopped and is killed."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

from compat_tests import provision
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from pathlib import Path

LOGGER = ("org.slf4j", "slf4j-simple", "1.7.36")
"""It says on standard error what the frameworks warn of, so that a failure can be understood."""
START_SECONDS = 120
STOP_SECONDS = 90


def java(classpath: str, heap: str, *arguments: str) -> list[str]:
    """The command of a main class and its arguments, started as fast as Java can."""
    quick = [f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [str(provision.java()), *quick, quiet, "-cp", classpath, *arguments]


class Program:
    """Owns the process; what it says is kept in a file of its own."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._log = log
        self._sink = log.open("ab")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=self._sink, stderr=subprocess.STDOUT, cwd=log.parent
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def lines(self, beginning: str = "") -> list[str]:
        """What it has said so far, of lines that begin so."""
        whole = self._log.read_text(errors="replace").rpartition("\n")[0]
        return [line for line in whole.splitlines() if line.startswith(beginning)]

    def wait_for(self, beginning: str, seconds: float = START_SECONDS) -> str:
        """The first line that begins so; fails with its last words if it ends before it said that."""

        def said() -> bool:
            assert self.alive or self.lines(beginning), f"it ended:\n{self.tail()}"
            return bool(self.lines(beginning))

        try:
            wait_until(said, f"the program says {beginning!r}", seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.tail()}") from None
        return self.lines(beginning)[0]

    def ask(self, word: str) -> str:
        """Say a word; the newest answer, a line that begins with that word."""
        assert self._process.stdin is not None
        before = len(self.lines(word))
        self._process.stdin.write(f"{word}\n".encode())
        self._process.stdin.flush()
        wait_until(lambda: len(self.lines(word)) > before, f"an answer to {word}")
        return self.lines(word)[-1].removeprefix(word).strip()

    def finish(self) -> None:
        """A clean end by the end of its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._ended() == 0, self.tail()

    def stop(self) -> None:
        """A clean end by SIGTERM."""
        self._process.send_signal(signal.SIGTERM)
        self._ended()

    def kill(self) -> None:
        """kill -9: it says nothing to anybody."""
        self._process.kill()
        self._ended()

    def close(self) -> None:
        """Leave nothing behind, whatever state it is in."""
        if self.alive:
            self.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._sink.close()

    def tail(self, lines: int = 60) -> str:
        """The last of what it said."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def _ended(self) -> int:
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"it did not end in {STOP_SECONDS} s:\n{self.tail()}") from None
