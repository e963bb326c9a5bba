"""Kafka's own VerifiableProducer: a Java producer with default retries, which tells of each record."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Self

from compat_tests.cluster.history import History, Record
from compat_tests.servers import java_command, wait_until

if TYPE_CHECKING:
    from pathlib import Path


class JavaProducer:
    """Writes numbers until it is left; owner of its process."""

    def __init__(self, bootstrap: str, topic: str, directory: Path, rate: int = 300) -> None:
        self._told = directory / "verifiable-producer.out"
        settings = directory / "producer.properties"
        # The tool asks for no retries at all; this is what a producer does by default.
        settings.write_text("retries=2147483647\n")
        where = ["--bootstrap-server", bootstrap, "--topic", topic, "--producer.config", str(settings)]
        tool = "org.apache.kafka.tools.VerifiableProducer"
        self._command = java_command("3.9.1", "128m", tool, *where, "--throughput", str(rate), "--acks", "-1")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._told.open("wb") as sink:
            self._process = subprocess.Popen(self._command, stdout=sink, stderr=subprocess.STDOUT)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    def goes_on(self, records: int = 300) -> None:
        wanted = len(self.history().acknowledged) + records

        def sent() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self._told.read_text()[-2000:]
            return len(self.history().acknowledged) >= wanted

        wait_until(sent, f"Java sends {records} more", 60)

    def errors(self) -> list[dict]:
        return [event for event in self._events() if event["name"] == "producer_send_error"]

    def history(self) -> History:
        """What it sent is what was acknowledged: it is of use where there were no errors."""
        history = History()
        for event in self._events():
            if event["name"] == "producer_send_success":
                value = event["value"].encode()
                history.acknowledged.append(Record(event["partition"], event["offset"], value))
        for record in sorted(history.acknowledged, key=lambda r: int(r.value)):
            history.sent[record.partition].append(record.value)
        return history

    def _events(self) -> list[dict]:
        whole = self._told.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
