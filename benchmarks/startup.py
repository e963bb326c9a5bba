"""Start-up to the first answered request, and the memory held before anything happened."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contenders import Contender, make
from benchmarks.measures import MB
from benchmarks.rounds import Goal, Lab, Metric, Row, Sample, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

MEMORY = "Resident memory"
SECONDS = Metric("seconds", "s", Goal(0.15, at_least=False))
ANONYMOUS = Metric("anonymous", "anonymous MB", Goal(0.15, at_least=False))
MAPPED = Metric("file", "mapped files MB")
SETTLE_SECONDS = 3.0


def startup(lab: Lab) -> list[Section]:
    """Start each broker alone, on a directory it has used before, until Metadata is answered; then idle."""
    idle = Row("idle, just started", (ANONYMOUS, MAPPED))
    with tempfile.TemporaryDirectory(dir=lab.directory) as home:
        contenders = [Contender(name, make(name, Path(home, name))) for name in lab.names]

        def run(contender: Contender, number: int) -> Sample:
            try:
                started = time.perf_counter()
                contender.server.start()
                seconds = time.perf_counter() - started
                if number:
                    # Not a wait for a condition: the reading is meant to be of a broker nobody talks to.
                    time.sleep(SETTLE_SECONDS)
                    idle.samples.setdefault(contender.name, []).append(memory_sample(contender))
                contender.server.stop()
                return {"seconds": seconds}
            finally:
                contender.server.close()

        row = lab.alternate(Row("process started to first Metadata answer", (SECONDS,)), contenders, run)
        idle.missing |= row.missing
    note = "Round 0, which prepares the directory, is not counted; the others follow a clean stop."
    return [Section("Start-up", [row], note), Section(MEMORY, [idle], MEMORY_NOTE)]


MEMORY_NOTE = (
    "Anonymous is RssAnon of /proc: heap, buffers, stacks. Mapped files is RssFile: pages of programs, indexes and"
    " segments that the kernel can drop, no goal set. Apache Kafka has the 1 GB heap of its start script."
)


def resident(title: str, contenders: Sequence[Contender]) -> Row:
    """A row of what the servers hold now; one that has died says so."""
    row = Row(title, (ANONYMOUS, MAPPED))
    for contender in contenders:
        if contender.server.alive:
            row.samples[contender.name] = [memory_sample(contender)]
        else:
            row.missing[contender.name] = "failed: the server ended"
    return row


def memory_sample(contender: Contender) -> Sample:
    """What one server holds now, in MB."""
    memory = contender.process.memory()
    return {"anonymous": memory.anonymous / MB, "file": memory.file / MB}
